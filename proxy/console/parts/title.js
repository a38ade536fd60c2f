/** The page's title. */

import { useEffect } from "../vendor/preact.js";

/** Name the page while a screen is shown. @param {string} title */
export function useTitle(title) {
  useEffect(() => void (document.title = `${title} · memory-proxy`), [title]);
}
