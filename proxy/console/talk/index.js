/** One conversation: what was said, and what the model saw of it. */

import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { links } from "../links.js";
import { Inspector } from "../inspector/index.js";
import { Empty, Failed } from "../parts/empty.js";
import { useKeys } from "../parts/keys.js";
import { oneLine } from "../parts/text.js";
import { useTitle } from "../parts/title.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { useDoing } from "./actions.js";
import { Dialogs } from "./dialogs.js";
import { Find } from "./find.js";
import { Header } from "./header.js";
import { useJumping } from "./jumping.js";
import { Kept } from "./kept.js";
import { List } from "./list.js";
import { useTalk } from "./state.js";

/** @param {{session: string, exchange: string | null, message: string | null}} props */
export function Conversation({ session: id, exchange, message }) {
  const talk = useTalk(id, exchange);
  const { navigate } = useApp();
  const [inspecting, setInspecting] = useState(exchange !== null);
  const side = useFocusAlong(inspecting);
  const kept = useRef(new Map()).current;
  const { go, ...jumping } = useJumping(talk, message);
  const { doing, open, setOpen, close, ofSession, ofSummary } = useDoing(talk, () => setInspecting(true));
  useTitle(oneLine(talk.session?.title ?? id));
  const why = (/** @type {string} */ wanted) => {
    navigate(links.session(id, { exchange: wanted }));
    const last = talk.whys.known.get(wanted)?.message_ids.at(-1);
    if (last) go(last, true);
  };
  const onJump = (/** @type {string} */ to, /** @type {string | null} */ other) => {
    if (other !== null && other !== id) return navigate(links.session(other, { message: to }));
    setInspecting(false);
    go(to);
  };
  useStepping(talk, why);
  const missing = talk.error && (talk.session === null || talk.error.status === 404);
  return html`<${Kept.Provider} value=${kept}>
    ${missing ? html`<${Missing} error=${talk.error} retry=${talk.changed} />` : html`<div class=${`talk ${inspecting ? "inspecting" : ""}`}>
      <${Header} session=${talk.session} id=${id} actions=${ofSession} inspecting=${inspecting}
        inspect=${() => setInspecting(!inspecting)}><${Find} talk=${talk} go=${go} /></${Header}>
      <section class="talk-main" aria-label=${t("talk.messages")}>
        <${List} talk=${talk} doing=${doing} summaryActions=${ofSummary} ...${jumping} />
      </section>
      <aside class="talk-side" ref=${side} tabindex="-1" aria-label=${t("talk.inspect")}>
        ${talk.session && html`<${Inspector} session=${talk.session} etag=${talk.etag} exchange=${talk.exchange} missing=${talk.missing}
          exchanges=${talk.whys.list} whys=${talk.whys} onExchange=${why} onJump=${onJump} onChanged=${talk.changed} onOpen=${setOpen} />`}
      </aside>
    </div>`}
    <${Dialogs} open=${open} close=${close} talk=${talk} />
  </${Kept.Provider}>`;
}

/** The keys [ and ]: the exchange before and after. @param {import("./state.js").Talk} talk @param {(exchange: string) => void} why */
function useStepping({ exchange, whys }, why) {
  const step = (/** @type {number} */ by) => {
    const at = whys.list.findIndex((one) => one.id === exchange?.id);
    const next = whys.list[at + by];
    if (at >= 0 && next) why(next.id);
  };
  useKeys({ "[": () => step(1), "]": () => step(-1) });
}

/** The inspector has the focus where it covers what had it. @param {boolean} inspecting */
function useFocusAlong(inspecting) {
  const side = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    const left = document.activeElement?.closest(".talk-main");
    if (left && getComputedStyle(left).visibility === "hidden") side.current?.focus();
  }, [inspecting]);
  return side;
}

/** @param {{error: any, retry: () => void}} props */
const Missing = ({ error, retry }) =>
  error.status === 404
    ? html`<${Empty} title=${t("talk.gone")}><p><a href=${links.sessions}>${t("nav.sessions")}</a></p></${Empty}>`
    : html`<${Failed} error=${error} retry=${retry} />`;
