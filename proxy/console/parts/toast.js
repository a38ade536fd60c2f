/** Short messages at the edge; screen readers say them. */

import { html, useRef } from "../vendor/preact.js";
import { t } from "../i18n/index.js";
import { useHolding } from "./holding.js";

/** `passing`: until the proxy answers again. @typedef {{id: number, passing: boolean, message: string, kind: import("../context.js").Kind}} Toast */

/** Milliseconds: an error stays until it is closed, or until what it tells of has passed. */
export const SHOWN = 6000;

/** @param {{toasts: Toast[], close: (id: number) => void}} props */
export function Toasts({ toasts, close }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const before = useRef(/** @type {HTMLElement | null} */ (null));
  const entered = (/** @type {any} */ { relatedTarget: from }) => box.current?.contains(from) || (before.current = from);
  useHolding(box, ".toast", () => (before.current?.isConnected ? before.current : document.getElementById("main")));
  return html`<div class="toasts" ref=${box} onFocusIn=${entered}>
    <div role="status" aria-live="polite">
      ${toasts.filter((toast) => toast.kind !== "error").map((toast) => one(toast, close))}
    </div>
    <div role="alert">
      ${toasts.filter((toast) => toast.kind === "error").map((toast) => one(toast, close))}
    </div>
  </div>`;
}

/** @param {Toast} toast @param {(id: number) => void} close */
const one = (toast, close) => html`<div class=${`toast ${toast.kind}`} key=${toast.id}>
  <span class="toast-text">${toast.message}</span>
  <button type="button" class="icon-button" aria-label=${t("close")}
    onClick=${() => close(toast.id)}>✕</button>
</div>`;
