/** One conversation: what was said, and what the model saw of it. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { links } from "../links.js";
import { Empty, Failed } from "../parts/empty.js";
import { useTitle } from "../parts/title.js";
import { oneLine } from "../parts/text.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { choosing } from "./branches.js";
import { Header } from "./header.js";
import { Kept } from "./kept.js";
import { List } from "./list.js";
import { useTalk } from "./state.js";

/** Milliseconds that a message is marked after a jump. */
const FLASH = 2500;

/** @param {{session: string, exchange: string | null, message: string | null}} props */
export function Conversation({ session: id, exchange, message }) {
  const talk = useTalk(id, exchange);
  const { navigate } = useApp();
  const [inspecting, setInspecting] = useState(false);
  const kept = useRef(new Map()).current;
  const jumping = useJumping(talk, message);
  useTitle(oneLine(talk.session?.title ?? id));
  const doing = useDoing(talk);
  if (talk.session === null && talk.error) return html`<${Missing} error=${talk.error} retry=${talk.changed} />`;
  return html`<${Kept.Provider} value=${kept}>
    <div class=${`talk ${inspecting ? "inspecting" : ""}`}>
      <${Header} session=${talk.session} id=${id} actions=${[]} inspecting=${inspecting}
        inspect=${() => setInspecting(!inspecting)} />
      <section class="talk-main" aria-label=${t("talk.messages")}>
        <${List} talk=${talk} doing=${doing} summaryActions=${[]} ...${jumping} />
      </section>
      <aside class="talk-side" aria-label=${t("talk.inspect")}></aside>
    </div>
  </${Kept.Provider}>`;
}

/** @param {{error: any, retry: () => void}} props */
const Missing = ({ error, retry }) =>
  error.status === 404
    ? html`<${Empty} title=${t("talk.gone")}><p><a href=${links.sessions}>${t("nav.sessions")}</a></p></${Empty}>`
    : html`<${Failed} error=${error} retry=${retry} />`;
