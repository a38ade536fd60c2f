/** Answers that come late do nothing to what is shown by then. */

import { useLayoutEffect, useRef } from "../vendor/preact.js";

/**
 * What is shown now by who asks this: null once it is gone from the screen.
 * @template T @param {T} what @returns {{current: T | null}}
 */
export function useShown(what) {
  const shown = useRef(/** @type {T | null} */ (what));
  shown.current = what;
  useLayoutEffect(() => () => void (shown.current = null), []);
  return shown;
}
