/** JSON as a tree that folds; what is no JSON is shown as the text it is. */

import { html, useState } from "../vendor/preact.js";
import { t } from "../i18n/index.js";
import { Exact, isBranch, read, written } from "./exact.js";
import { visible } from "./text.js";

const FEW = 50;
const DEEPEST = 60;

/**
 * @param {{value?: unknown, text?: string, open?: number}} props
 *   `text`: JSON as it came, instead of a value; `open`: so many levels are unfolded
 */
export function Json({ value, text, open = 1 }) {
  if (text === undefined) return html`<div class="json"><${Value} value=${value} level=${0} open=${open} /></div>`;
  const read = parsed(text);
  if (!read.broken) return html`<${Json} value=${read.value} open=${open} />`;
  return html`<div class="json broken">
    <p class="note">${t("json.broken")}</p>
    <pre dir="auto"><bdi>${visible(text)}</bdi></pre>
  </div>`;
}

/** @param {string} text @returns {{broken: boolean, value: unknown}} */
export function parsed(text) {
  try {
    return { broken: false, value: read(text) };
  } catch {
    return { broken: true, value: null };
  }
}

/** @param {{value: unknown, level: number, open: number, name?: string}} props */
function Value({ value, level, open, name }) {
  if (!isBranch(value)) return leaf(name, value);
  return html`<${Branch} value=${value} level=${level} open=${open} name=${name} />`;
}

/** @param {{value: object, level: number, open: number, name?: string}} props */
function Branch({ value, level, open, name }) {
  const [unfolded, setUnfolded] = useState(level < open);
  const [shown, setShown] = useState(FEW);
  const list = Array.isArray(value);
  const names = Object.keys(value);
  const size = list ? `[${names.length}]` : `{${names.length}}`;
  if (names.length === 0) return leaf(name, list ? [] : {});
  if (level >= DEEPEST) return leaf(name, "…");
  return html`<div class="json-branch">
    <button type="button" class="json-fold" aria-expanded=${unfolded}
      onClick=${() => setUnfolded(!unfolded)}>
      <span aria-hidden="true">${unfolded ? "▾" : "▸"}</span>${label(name)}<span class="muted">${size}</span>
    </button>
    ${unfolded && html`<div class="json-inside">
      ${names.slice(0, shown).map((key) => html`<${Value} key=${key} name=${key} level=${level + 1}
        open=${open} value=${/** @type {any} */ (value)[key]} />`)}
      ${names.length > shown && html`<button type="button" class="link-button"
        onClick=${() => setShown(shown + 10 * FEW)}>${t("json.more", { n: names.length - shown })}</button>`}
    </div>`}
  </div>`;
}

/** @param {string | undefined} name */
const label = (name) =>
  name === undefined ? "" : html`<bdi class="json-name">${visible(name)}</bdi><span class="muted">: </span>`;

/** @param {string | undefined} name @param {unknown} value */
const leaf = (name, value) => html`<div class="json-leaf">${label(name)}<bdi class=${`json-${kindOf(value)}`}>${
  typeof value === "string" ? visible(value) : written(value)
}</bdi></div>`;

/** @param {unknown} value */
const kindOf = (value) => (value === null ? "null" : value instanceof Exact ? "number" : typeof value);
