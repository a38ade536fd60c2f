/** Stored text as it is: nothing is rendered but code in fences and addresses. */

import { n, t } from "../i18n/index.js";
import { visible } from "../parts/text.js";
import { html, useEffect, useMemo } from "../vendor/preact.js";
import { useKept } from "./kept.js";
import { blocksOf, folded, piecesOf, segmentsOf } from "./segments.js";

/** Code is looked for in no longer text. */
const LONG = 60_000;
/** Pieces that one more frame brings. */
const STEP = 2;

/** @param {{text: string, name: string}} props `name`: whose text it is, in the conversation */
export function Text({ text, name }) {
  const few = useMemo(() => folded(text), [text]);
  const [all, setAll] = useKept(`${name} all`, false);
  const words = all ? text : text.slice(0, few);
  return html`<div class="text" dir="auto">
    ${words.length > LONG ? html`<${Long} text=${words} name=${name} />` : html`<${Blocks} text=${words} />`}
    ${few < text.length && html`<button type="button" class="link-button more-text" onClick=${() => setAll(!all)}>
      ${all ? t("talk.text.less") : t("talk.text.all", { n: text.length })}</button>`}
  </div>`;
}

/** @param {{text: string}} props */
function Blocks({ text }) {
  return useMemo(() => html`${blocksOf(visible(text)).map((block, at) => html`<${Block} key=${at} block=${block} />`)}`, [text]);
}

/** @param {{block: import("./segments.js").Block}} props */
function Block({ block }) {
  if (block.kind === "text") return html`${piecesOf(block.text).map((piece, at) => paragraph(piece, at))}`;
  return html`<figure class="code">${block.language && html`<figcaption><bdi>${block.language}</bdi></figcaption>`}
    <pre tabindex="0" aria-label=${t("talk.code")}>${piecesOf(block.text).map((piece, at) => html`<code key=${at}>${piece}</code>`)}</pre></figure>`;
}

/** Piece by piece, so that nothing stands still; each is laid out when it comes into view. @param {{text: string, name: string}} props */
function Long({ text, name }) {
  const pieces = useMemo(() => piecesOf(text), [text]);
  const made = useMemo(() => /** @type {import("../vendor/preact.js").VNode[]} */ ([]), [text]);
  const [shown, setShown] = useKept(`${name} pieces`, STEP);
  useEffect(() => {
    if (shown >= pieces.length) return;
    const frame = requestAnimationFrame(() => setShown(shown + STEP));
    return () => cancelAnimationFrame(frame);
  }, [shown, pieces]);
  // The same nodes again: what is there already is not looked at.
  while (made.length < Math.min(shown, pieces.length)) {
    made.push(paragraph(visible(pieces[made.length] ?? ""), made.length, "piece"));
  }
  return html`${made.slice()}
    ${shown < pieces.length && html`<p class="muted small num">${n(Math.round((100 * shown) / pieces.length))} %</p>`}`;
}

/** @param {string} text @param {number} key @param {string} [look] */
const paragraph = (text, key, look) => html`<p key=${key} class=${look}><bdi>${linked(text)}</bdi></p>`;

/** @param {string} text */
const linked = (text) =>
  segmentsOf(text).map(({ text: words, href }) =>
    href === null ? words : html`<a href=${href} target="_blank" rel="noreferrer noopener">${words}</a>`);
