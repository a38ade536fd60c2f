/** Shortcuts: single keys, heard where nobody is typing. */

import { useLayoutEffect, useRef } from "../vendor/preact.js";

/** @param {EventTarget | null} target */
export const isTyping = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("input, textarea, select"));

/**
 * Hear these keys while the component is shown; never while typing (but for Escape), nor behind a
 * dialog.
 * @param {Record<string, (event: KeyboardEvent) => void>} keys by `KeyboardEvent.key`
 */
export function useKeys(keys) {
  const current = useRef(keys);
  current.current = keys;
  // Before it is seen: a key pressed at first sight is heard.
  useLayoutEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      const act = current.current[event.key];
      if (!act || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector("dialog[open], [popover]:popover-open")) return;
      if (isTyping(event.target) && event.key !== "Escape") return;
      event.preventDefault();
      act(event);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}
