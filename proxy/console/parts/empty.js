/** What is shown where there is nothing: nothing yet, nothing found, something broken. */

import { html } from "../vendor/preact.js";
import { t } from "../i18n/index.js";

/** @param {{title: string, children?: any, mark?: string}} props */
export const Empty = ({ title, children, mark = "○" }) => html`<div class="empty">
  <div class="empty-mark" aria-hidden="true">${mark}</div>
  <h2>${title}</h2>
  ${children}
</div>`;

/** @param {{error: {status: number, code: string, message: string}, retry?: () => void}} props */
export const Failed = ({ error, retry }) => html`<div class="empty failed" role="alert">
  <div class="empty-mark" aria-hidden="true">!</div>
  <h2>${t(error.status === 0 ? "error.unreachable" : "error.title")}</h2>
  <p>${error.message}</p>
  ${error.status > 0 && html`<p class="muted mono">${error.status} ${error.code}</p>`}
  ${retry && html`<button type="button" class="button" onClick=${retry}>${t("retry")}</button>`}
</div>`;

/** What is shown may be as it was: the last question failed. @param {{error: {message: string} | null}} props */
export const Stale = ({ error }) =>
  error && html`<p class="note warn live-note" role="status">${t("error.stale")} ${error.message}</p>`;

/** @param {{label?: string}} props */
export const Loading = ({ label }) => html`<div class="loading" role="status">
  <span class="spinner" aria-hidden="true"></span>${label ?? t("loading")}
</div>`;
