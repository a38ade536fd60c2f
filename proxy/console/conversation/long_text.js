/** Stored text of any length: folded, then shown in portions; code in its own type. */

import { n, t } from "../i18n/index.js";
import { visible } from "../parts/text.js";
import { html, memo, useEffect, useMemo, useState } from "./preact_more.js";
import { FEW, LINES, STEP, blocksOf, cutAt, fencesOf, partedAt } from "./clipping.js";

/** @param {{text: string, wanted?: string, plain?: boolean}} props `wanted`: words to be marked, lower case; `plain`: no fences */
export function LongText({ text, wanted = "", plain = false }) {
  const [limit, setLimit] = useState(0);
  const [all, setAll] = useState(false);
  const least = useMemo(() => sought(text, wanted), [text, wanted]);
  const end = limit === 0 && least === 0 ? cutAt(text, FEW, LINES) : cutAt(text, Math.max(limit, least));
  useEffect(() => {
    if (!all || end >= text.length) return;
    const frame = requestAnimationFrame(() => setLimit(end + 2 * STEP));
    return () => cancelAnimationFrame(frame);
  }, [all, end, text]);
  const parts = useMemo(() => (plain ? [{ code: false, text: text.slice(0, end) }] : fencesOf(text.slice(0, end))), [text, end, plain]);
  return html`<div class="words">
    ${parts.map((part, index) => html`<${Part} key=${index} code=${part.code} text=${part.text} wanted=${wanted} />`)}
    ${end < text.length && !all && html`<${Rest} shown=${end} total=${text.length} more=${() => setLimit(end + STEP)} all=${() => setAll(true)} />`}
    ${all && end < text.length && html`<p class="muted small" role="status">${t("talk.showing", { shown: end, total: text.length })}</p>`}
  </div>`;
}

/** How much has to be shown so that what is sought is seen. @param {string} text @param {string} wanted */
function sought(text, wanted) {
  if (wanted === "" || text.length <= FEW) return 0;
  const at = text.toLowerCase().indexOf(wanted);
  return at < 0 || at < FEW / 2 ? 0 : at + wanted.length + FEW / 4;
}

/** @param {{shown: number, total: number, more: () => void, all: () => void}} props */
const Rest = ({ shown, total, more, all }) => html`<p class="rest">
  ${total - shown > STEP && html`<button type="button" class="link-button" onClick=${more}>${t("talk.more", { n: STEP })}</button>`}
  <button type="button" class="link-button" onClick=${all}>${t("talk.all", { n: n(total) })}</button>
</p>`;

/** @param {{code: boolean, text: string, wanted: string}} props */
const Part = ({ code, text, wanted }) => html`<div class=${code ? "code" : "prose"} dir=${code ? "ltr" : "auto"}>
  ${blocksOf(text).map((block, index) => html`<${Block} key=${index} text=${block} wanted=${wanted} />`)}
</div>`;

const Block = memo(
  /** @param {{text: string, wanted: string}} props */
  ({ text, wanted }) => {
    const pieces = partedAt(visible(text), wanted);
    const said = pieces.map((piece, index) => (index % 2 === 1 ? html`<mark key=${index}>${piece}</mark>` : piece));
    return html`<div class="block" dir="auto"><bdi>${said}</bdi></div>`;
  },
);
