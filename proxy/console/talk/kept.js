/** What is unfolded stays so while the list takes it out of the page and back. */

import { createContext, useContext, useState } from "../vendor/preact.js";

export const Kept = createContext(/** @type {Map<string, any>} */ (new Map()));

/** @template T @param {string} name @param {T} initial @returns {[T, (value: T) => void]} */
export function useKept(name, initial) {
  const kept = useContext(Kept);
  const [, redraw] = useState(0);
  const change = (/** @type {T} */ value) => {
    kept.set(name, value);
    redraw((count) => count + 1);
  };
  return [kept.has(name) ? kept.get(name) : initial, change];
}
