/** The tokens of a prompt as one bar: at a glance what they were spent on. */

import { n, t } from "../i18n/index.js";
import { html } from "../vendor/preact.js";

/** Percent of a bar below which a number has no room in it. */
const NARROW = 12;

/** @param {{spent: import("./figures.js").Spent[], label: string}} props */
export function Bar({ spent, label }) {
  const all = spent.reduce((sum, each) => sum + each.tokens, 0);
  if (all === 0) return html`<p class="muted">${t("why.nothing")}</p>`;
  const share = (/** @type {number} */ tokens) => (100 * tokens) / all;
  return html`<figure class="spent">
    <figcaption class="sr-only">${label}</figcaption>
    <div class="spent-bar" aria-hidden="true">${spent.map(({ kind, tokens }) => html`<span key=${kind}
      class=${`spent-part of-${kind}`} style=${{ flexGrow: tokens }} title=${`${t(`spent.${kind}`)}: ${n(tokens)}`}>
      ${share(tokens) >= NARROW && n(tokens)}</span>`)}</div>
    <dl class="spent-legend">${spent.map(({ kind, tokens }) => html`<div key=${kind}>
      <dt><i class=${`swatch of-${kind}`}></i>${t(`spent.${kind}`)}</dt>
      <dd class="num">${n(tokens)} <span class="muted">${n(Math.round(share(tokens)))} %</span></dd></div>`)}</dl>
  </figure>`;
}
