/** One session in the list. */

import { n, short, t } from "../i18n/index.js";
import { links } from "../links.js";
import { oneLine } from "../parts/text.js";
import { Ago } from "../parts/time.js";
import { html } from "../vendor/preact.js";

/** @typedef {{id: string, at: number, user: string | null, title: string | null, preview: string | null, messages: number, tokens: number, gone?: boolean}} SessionRow */

/** What the list shows of a session; no more is kept of it. @param {any} session @returns {SessionRow} */
export const rowOf = (session) => ({
  id: session.id,
  at: session.last_active_at,
  user: session.user_id,
  title: session.title,
  preview: session.preview ?? null,
  messages: session.messages,
  tokens: session.tokens,
});

/** The heads of the columns, for eyes: each row says its own to screen readers. */
export const Columns = () => html`<div class="columns" aria-hidden="true">
  <span>${t("session")}</span><span>${t("user")}</span>
  <span class="end">${t("messages")}</span><span class="end">${t("tokens")}</span>
  <span class="end">${t("active")}</span>
</div>`;

/** @param {{row: SessionRow | undefined, fresh: boolean, onOpen: () => void}} props */
export function Row({ row, fresh, onOpen }) {
  if (!row) return html`<div class="row"></div>`;
  const name = row.title ?? row.preview;
  return html`<a class=${`row ${row.gone ? "gone" : ""}`} href=${links.session(row.id)} onClick=${onOpen}>
    <span class="row-name">
      <span class=${`dot ${fresh ? "on" : ""}`}>${fresh && html`<span class="sr-only">${t("sessions.fresh")}</span>`}</span>
      <bdi class=${`row-title ${row.title ? "" : "untitled"}`}>${name ? oneLine(name) : html`<span class="muted">${t("sessions.untitled")}</span>`}</bdi>
      <span class="row-second"><bdi class="mono">${row.id}</bdi>${row.title && row.preview && html`<bdi>${oneLine(row.preview)}</bdi>`}</span>
    </span>
    <span class="row-user">${row.user === null ? html`<span class="muted">–</span>` : html`<span class="sr-only">${t("user")}</span><bdi>${row.user}</bdi>`}</span>
    <span class="row-number num" title=${t("messages.n", { n: row.messages })}>${n(row.messages)}<span class="row-unit"> ${t("messages.unit", { n: row.messages })}</span></span>
    <span class="row-number row-tokens num" title=${t("tokens.n", { n: row.tokens })}>${short(row.tokens)}<span class="row-unit"> ${t("tokens.unit", { n: row.tokens })}</span></span>
    ${row.gone ? html`<span class="row-time">${t("sessions.gone")}</span>` : html`<${Ago} at=${row.at} class="row-time" />`}
  </a>`;
}
