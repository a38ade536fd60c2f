/** What an erasure takes away or has taken away, as a table. */

import { save } from "../api.js";
import { n, t, time } from "../i18n/index.js";
import { html } from "../vendor/preact.js";

/** In the order of the table; memories are by kind. */
const COUNTS = ["sessions", "messages", "exchanges", "summaries", "memories", "items", "feedback", "proposals", "index_passages", "spooled"];

/** @param {{receipt: any}} props */
export const Receipt = ({ receipt }) => html`<div class="receipt">
  ${!receipt.dry_run && receipt.erased_at && html`<p class="muted small">${t("receipt.at", { time: time(receipt.erased_at) })}</p>`}
  <table class="figures">
    <caption class="sr-only">${t("receipt.caption")}</caption>
    <tbody>${rows(receipt.counts ?? {}).map(([name, count]) => html`<tr key=${name} class=${count ? "" : "zero"}>
      <th scope="row">${name}</th><td class="num">${n(count)}</td></tr>`)}</tbody>
  </table>
  ${receipt.marked_until && html`<p class="muted small">${t("receipt.marked", { time: time(receipt.marked_until) })}</p>`}
</div>`;

/** @param {Record<string, any>} counts @returns {[string, number][]} */
function rows(counts) {
  return COUNTS.flatMap((name) => {
    const count = counts[name] ?? 0;
    if (typeof count === "number") return [/** @type {[string, number]} */ ([t(`receipt.${name}`), count])];
    return Object.entries(count).map(([kind, many]) => /** @type {[string, number]} */ ([kindName(kind), many]));
  });
}

/** @param {string} kind */
function kindName(kind) {
  const name = t(`kind.${kind}`);
  return name === `kind.${kind}` ? kind : name;
}

/** Save a receipt as a file. @param {any} receipt @param {string} name */
export const saveReceipt = (receipt, name) =>
  save(new Blob([`${JSON.stringify(receipt, null, 2)}\n`], { type: "application/json" }), `${name}.json`);
