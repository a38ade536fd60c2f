/** What memory's own work with models has cost, by feature. */

import { n, t } from "../i18n/index.js";
import { usePoll } from "../parts/poll.js";
import { html } from "../vendor/preact.js";

const EVERY = 30_000;
const FIGURES = /** @type {const} */ (["calls", "failed", "input_tokens", "output_tokens"]);

/** @param {{days: number}} props */
export function Usage({ days }) {
  const { data } = usePoll("/usage", { from: dayOf(days - 1), to: dayOf(0) }, EVERY);
  if (data === null) return null;
  const features = byFeature(data.data);
  return html`<section class="card pad usage">
    <header class="section-head"><h2>${t("usage.title")}</h2></header>
    ${features.length === 0 ? html`<p class="muted">${t("usage.none")}</p>` : html`<div class="scroll-x" tabindex="0" role="region" aria-label=${t("usage.title")}>
      <table class="figures columns-table">
        <thead><tr><th scope="col">${t("usage.feature")}</th>${FIGURES.map((name) => html`<th scope="col" class="num" key=${name}>${t(`usage.${name}`)}</th>`)}
          <th scope="col" class="num">${t("usage.cost")}</th></tr></thead>
        <tbody>${features.map(([feature, spent]) => line(feature, spent))}${line(t("usage.total"), data.total, "total")}</tbody>
      </table></div>`}
  </section>`;
}

/** @param {string} name @param {any} spent @param {string} [kind] */
const line = (name, spent, kind = "") => html`<tr key=${name} class=${kind}><th scope="row">${name}</th>
  ${FIGURES.map((each) => html`<td class="num" key=${each}>${n(spent[each])}</td>`)}
  <td class="num">$${spent.cost_usd.toFixed(4)}</td></tr>`;

/** @param {any[]} accounts a day and a feature each @returns {[string, any][]} */
export function byFeature(accounts) {
  /** @type {Map<string, Record<string, number>>} */
  const sums = new Map();
  for (const { feature, ...spent } of accounts) {
    const sum = sums.get(feature) ?? {};
    for (const name of [...FIGURES, "cost_usd"]) sum[name] = (sum[name] ?? 0) + spent[name];
    sums.set(feature, sum);
  }
  return [...sums].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** So many days ago, in UTC. @param {number} ago */
const dayOf = (ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
