/** A box to search in: tells what is typed once the typing pauses. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "../i18n/index.js";
import { useKeys } from "./keys.js";

/**
 * What is in a box: what is typed there, told once the typing pauses, or a value from outside.
 * @param {string} value @param {(text: string) => void} tell @param {number} ms
 * @returns {[string, (text: string) => void]}
 */
export function useTyped(value, tell, ms) {
  const [text, setText] = useState(value);
  // Before the box is seen with it: nothing typed meanwhile is lost.
  useLayoutEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => tell(text), ms);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText];
}

/**
 * @param {{value: string, onSearch: (text: string) => void, label: string, ms?: number, slash?: boolean, onEnter?: (text: string) => void}} props
 *   `slash`: the key / leads here
 */
export function SearchBox({ value, onSearch, label, ms = 250, slash = true, onEnter }) {
  const [text, setText] = useTyped(value, onSearch, ms);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** @type {Record<string, (event: KeyboardEvent) => void>} */
  const keys = slash ? { "/": () => input.current?.focus() } : {};
  useKeys(keys);
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") (onEnter ?? onSearch)(text);
    if (event.key !== "Escape") return;
    event.preventDefault(); // or the browser clears it
    input.current?.blur();
  };
  return html`<div class="search">
    <span class="search-icon" aria-hidden="true">⌕</span>
    <input ref=${input} type="search" value=${text} aria-label=${label} placeholder=${label}
      autocomplete="off" spellcheck=${false} onKeyDown=${press}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    ${slash && text === "" && html`<kbd aria-hidden="true" title=${t("help.search")}>/</kbd>`}
  </div>`;
}
