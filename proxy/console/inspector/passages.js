/** What was recalled, and for what reasons: its words, its score, what the score is made of. */

import { seg } from "../api.js";
import { n, named, t } from "../i18n/index.js";
import { links } from "../links.js";
import { usePoll } from "../parts/poll.js";
import { oneLine } from "../parts/text.js";
import { textOf } from "../talk/contents.js";
import { html, useState } from "../vendor/preact.js";
import { partsOf } from "./figures.js";

/** Characters of a passage that are shown. */
const MAX_CHARACTERS = 220;
const FEW = 8;

/** `text`: where it is known already. @typedef {{kind: string, score: number, parts: any, tokens: number, message_id: string | null, session_id: string | null, memory_id?: string | null, text?: string}} Recalled */

/** @param {{recalled: readonly Recalled[], session: string, user: string | null, onJump: (message: string, session: string | null) => void}} props */
export function Passages({ recalled, session, user, onJump }) {
  const [all, setAll] = useState(false);
  const shown = all ? recalled : recalled.slice(0, FEW);
  return html`<ol class="passages">${shown.map((each, at) => html`<li key=${`${each.message_id ?? each.memory_id} ${at}`}>
      <${Passage} ...${{ recalled: each, session, user, onJump }} /></li>`)}</ol>
    ${recalled.length > shown.length && html`<button type="button" class="link-button" onClick=${() => setAll(true)}>
      ${t("why.more", { n: recalled.length - shown.length })}</button>`}`;
}

/** @param {{recalled: Recalled, session: string, user: string | null, onJump: (message: string, session: string | null) => void}} props */
function Passage({ recalled, session, user, onJump }) {
  const { kind, score, tokens, message_id: message, session_id: from, text } = recalled;
  const other = from !== null && from !== session;
  return html`<article class=${`passage ${message === null ? "is-known" : ""}`}>
    <header><span class="tag accent">${named("one", kind)}</span>
      ${score > 0 && html`<b class="num" title=${t("why.score")}>${score.toFixed(2)}</b>`}
      <span class="muted small num">${t("tokens.n", { n: tokens })}</span>
      ${other && html`<bdi class="tag passage-from">${from}</bdi>`}
      ${message !== null && html`<button type="button" class="link-button" onClick=${() => onJump(message, other ? from : null)}>
        ${t(other ? "why.open" : "why.jump")}</button>`}
      ${message === null && user !== null && html`<a href=${links.user(user, kind === "profile" ? kind : "memories")}>${t(kind === "profile" ? "person.profile" : "why.memories")}</a>`}</header>
    ${text === undefined ? html`<${Words} path=${pathOf(recalled, user)} />` : html`<${Excerpt} text=${text} />`}
    <${Parts} parts=${recalled.parts} />
  </article>`;
}

/** Where its words are; null: nowhere. @param {Recalled} recalled @param {string | null} user */
function pathOf({ message_id: message, session_id: from, memory_id: memory }, user) {
  if (message !== null && from !== null) return `/sessions/${seg(from)}/messages/${seg(message)}`;
  return memory && user !== null ? `/users/${seg(user)}/memories/${seg(memory)}` : null;
}

/** @param {{path: string | null}} props */
function Words({ path }) {
  const { data, error, loading } = usePoll(path, {}, 0);
  if (path === null) return null;
  if (error) return html`<p class="muted small">${t(error.status === 404 ? "why.gone" : "error.title")}</p>`;
  return html`<${Excerpt} text=${loading ? "…" : (data.text ?? textOf(data.message))} />`;
}

/** @param {{text: string}} props */
const Excerpt = ({ text }) => html`<p class="passage-text" dir="auto"><bdi>${oneLine(text.slice(0, MAX_CHARACTERS))}</bdi>${text.length > MAX_CHARACTERS && "…"}</p>`;

/** @param {{parts: any}} props */
function Parts({ parts }) {
  const all = partsOf(parts);
  if (all.length === 0) return null;
  return html`<details class="parts"><summary>${t("why.parts")}</summary>
    <dl>${all.map(({ name, value, share }) => html`<div key=${name}>
      <dt>${named("scorepart", name)}</dt>
      <dd><span class=${`part-bar ${value < 0 ? "less" : ""}`} style=${{ width: `${Math.round(share * 100)}%` }}></span></dd>
      <dd class="num">${n(Math.round(value * 100) / 100)}</dd></div>`)}</dl>
  </details>`;
}
