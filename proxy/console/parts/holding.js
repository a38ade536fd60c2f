/** Where the focus goes when what had it goes. */

import { useLayoutEffect } from "../vendor/preact.js";

/**
 * An item with the focus may go from a box: then what is in its place has it, by its last button.
 * @param {{current: HTMLElement | null}} box @param {string} selector of its items
 * @param {() => HTMLElement | null | undefined} otherwise what has it where no item is left
 */
export function useHolding(box, selector, otherwise) {
  const items = () => [...(box.current?.querySelectorAll(selector) ?? [])];
  const at = items().findIndex((item) => item.contains(document.activeElement)); // before this is drawn
  useLayoutEffect(() => {
    if (at < 0 || document.activeElement !== document.body) return;
    const left = items();
    const buttons = left[Math.min(at, left.length - 1)]?.querySelectorAll("button") ?? [];
    ([...buttons].at(-1) ?? otherwise())?.focus({ preventScroll: true });
  });
}
