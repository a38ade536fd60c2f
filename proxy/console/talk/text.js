/** Stored text as it is: nothing is rendered but code in fences and addresses. */

import { n, t } from "../i18n/index.js";
import { visible } from "../parts/text.js";
import { html, useEffect } from "../vendor/preact.js";
import { useKept } from "./kept.js";
import { PIECE, blocksOf, folded, piecesOf, segmentsOf } from "./segments.js";

/** Characters that one more frame brings. */
const STEP = 4 * PIECE;

/** @param {{text: string, name: string}} props `name`: whose text it is, in the conversation */
export function Text({ text, name }) {
  const few = folded(text);
  const [shown, setShown] = useKept(`${name} shown`, few);
  const [all, setAll] = useKept(`${name} all`, false);
  const to = Math.max(few, Math.min(shown, text.length));
  useEffect(() => {
    if (!all || to >= text.length) return;
    const frame = requestAnimationFrame(() => setShown(to + STEP));
    return () => cancelAnimationFrame(frame);
  }, [all, to, text]);
  const fold = () => {
    setAll(false);
    setShown(few);
  };
  return html`<div class="text" dir="auto">
    ${blocksOf(visible(text.slice(0, to))).map((block, at) => html`<${Block} key=${at} block=${block} />`)}
    ${to < text.length && !all && html`<button type="button" class="link-button more-text" onClick=${() => setAll(true)}>
      ${t("talk.text.all", { n: text.length })}</button>`}
    ${all && text.length > few && html`<button type="button" class="link-button more-text" onClick=${fold}>
      ${to < text.length ? `${n(Math.round((100 * to) / text.length))} %` : t("talk.text.less")}</button>`}
  </div>`;
}

/** @param {{block: import("./segments.js").Block}} props */
function Block({ block }) {
  const pieces = piecesOf(block.text);
  if (block.kind === "code") {
    return html`<figure class="code">${block.language && html`<figcaption><bdi>${block.language}</bdi></figcaption>`}
      <pre tabindex="0" aria-label=${t("talk.code")}>${pieces.map((piece, at) => html`<code key=${at}>${piece}</code>`)}</pre></figure>`;
  }
  return html`${pieces.map((piece, at) => html`<p key=${at} class=${pieces.length > 1 ? "piece" : undefined}><bdi>${linked(piece)}</bdi></p>`)}`;
}

/** @param {string} text */
const linked = (text) =>
  segmentsOf(text).map(({ text: words, href }) =>
    href === null ? words : html`<a href=${href} target="_blank" rel="noreferrer noopener">${words}</a>`);
