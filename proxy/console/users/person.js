/** One person: figures, what is remembered, their sessions, export and erasure. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { day, n, short, t } from "../i18n/index.js";
import { links } from "../links.js";
import { Empty, Failed, Loading, Stale } from "../parts/empty.js";
import { usePoll } from "../parts/poll.js";
import { Tabs } from "../parts/tabs.js";
import { Ago } from "../parts/time.js";
import { useTitle } from "../parts/title.js";
import { Exporting } from "../portable/exporting.js";
import { html, useState } from "../vendor/preact.js";
import { Adding, Editing } from "./editing.js";
import { Erasing } from "./erasing.js";
import { KINDS, Memories } from "./memories.js";
import { Profile } from "./profile.js";
import { Saved } from "./saved.js";
import { Theirs } from "./theirs.js";

const TABS = /** @type {const} */ (["memories", "profile", "saved", "sessions"]);
const EVERY = 4000;

/** @param {{id: string}} props */
export function Person({ id }) {
  const { navigate, route } = useApp();
  const tab = TABS.find((name) => name === route.tab) ?? "memories";
  const [exporting, setExporting] = useState(false);
  const [erasing, setErasing] = useState(false);
  const [typed, setTyped] = useState(/** @type {import("./memories.js").Typed | null} */ (null));
  const path = `/users/${seg(id)}`;
  const person = usePoll(path, {}, EVERY);
  useTitle(id);
  const unknown = person.error?.status === 404;
  return html`<div class="page person">
    <header class="head">
      <h1><a class="up" href=${links.users}>${t("nav.users")}<span aria-hidden="true"> /</span> </a><bdi>${id}</bdi></h1>
      <div class="head-end">
        <button type="button" class="button" onClick=${() => setExporting(true)}>${t("export")}</button>
        <button type="button" class="button danger-quiet" onClick=${() => setErasing(true)}>${t("erase")}</button>
      </div>
    </header>
    ${unknown ? html`<${Empty} title=${t("person.unknown")}><p class="muted">${t("person.unknown.hint")}</p></${Empty}>` : html`
      <${Figures} person=${person} />
      <${Tabs} label=${id} chosen=${tab} choose=${(/** @type {string} */ name) => navigate(links.user(id, name))}
        tabs=${TABS.map((name) => ({ name, label: t(`person.${name}`) }))}>
        ${tab === "memories" && html`<${Memories} user=${id} counts=${person.data?.memories ?? {}} onType=${setTyped} />`}
        ${tab === "profile" && html`<${Profile} user=${id} />`}
        ${tab === "saved" && html`<${Saved} user=${id} />`}
        ${tab === "sessions" && html`<${Theirs} user=${id} />`}
      </${Tabs}>`}
    ${typed && html`<${typed.id === null ? Adding : Editing} path=${`${path}/memories${typed.id === null ? "" : `/${seg(typed.id)}`}`}
      onClose=${() => setTyped(null)} onDone=${typed.done} />`}
    ${exporting && html`<${Exporting} path=${`${path}/export`} name=${id} title=${t("export.person")}
      onClose=${() => setExporting(false)} />`}
    ${erasing && html`<${Erasing} user=${id} onClose=${() => setErasing(false)} onErased=${person.refresh}
      onLeave=${() => navigate(links.users)} />`}
  </div>`;
}

/** @param {{person: import("../parts/poll.js").Polled}} props */
function Figures({ person: { data, error, refresh } }) {
  if (data === null) return error ? html`<${Failed} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  const memories = KINDS.reduce((sum, kind) => sum + (data.memories?.[kind] ?? 0), 0);
  return html`<${Stale} error=${error} /><dl class="tiles">
    ${tile(t("sessions"), n(data.sessions))}
    ${tile(t("messages"), n(data.messages))}
    ${tile(t("tokens"), short(data.tokens), n(data.tokens))}
    ${tile(t("memories"), n(memories))}
    ${data.first_active_at && tile(t("person.first"), day(data.first_active_at))}
    ${tile(t("active"), html`<${Ago} at=${data.last_active_at} />`)}
  </dl>`;
}

/** @param {string} name @param {any} value @param {string} [title] */
export const tile = (name, value, title) => html`<div class="tile" key=${name}><dt>${name}</dt><dd class="num" title=${title}>${value}</dd></div>`;
