/** What the stripes beside the messages mean, of those that are there. */

import { t } from "../i18n/index.js";
import { html, useMemo } from "../vendor/preact.js";

/** By the name of the stripe, the sights that are drawn so. */
const STRIPES = /** @type {const} */ ([
  ["seen", ["seen"]],
  ["resent", ["resent"]],
  ["recalled", ["recalled"]],
  ["own", ["own", "answer"]],
  ["unseen", ["unseen", "evicted"]],
]);

/** @param {{marks: import("./marks.js").Marks}} props */
export function Legend({ marks }) {
  const there = useMemo(() => new Set([...marks.of.values()].map(({ sight }) => sight)), [marks]);
  const shown = STRIPES.filter(([, sights]) => sights.some((sight) => there.has(sight)));
  if (shown.length === 0) return null;
  return html`<p class="legend"><span class="muted">${t("legend")}</span>
    ${shown.map(([name]) => html`<span class=${`legend-key sight-${name}`} key=${name}><i class="band" aria-hidden="true"></i>${t(`legend.${name}`)}</span>`)}
  </p>`;
}
