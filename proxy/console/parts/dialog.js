/** Dialogs: the browser's own, which keep the focus and close with Escape. */

import { html, useId, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { t } from "../i18n/index.js";

/**
 * A dialog, open as long as it is shown.  What was typed in it is not lost to a click beside it, nor
 * to a key: Escape leaves first for the heading, and then closes.
 * @param {{title: string, onClose?: () => void, children?: any, class?: string}} props without `onClose` it stays until it is answered
 */
export function Dialog({ title, onClose, children, class: name = "" }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const head = useRef(/** @type {HTMLElement | null} */ (null));
  const box = useRef(/** @type {Node | null} */ (null)); // the last that was changed
  const focused = useRef(/** @type {HTMLElement | null} */ (null)); // the last but for the heading
  const heading = useId();
  useLayoutEffect(() => {
    const before = document.activeElement; // at once: the next key may be a Tab
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      dialog?.close(); // first: as long as it is open, nothing behind it can have the focus
      if (before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  useLayoutEffect(() => {
    // What was pressed may have been off for a while, or be gone with what it asked for: the focus stays inside.
    for (const { current } of [focused, head]) {
      if (!element.current?.contains(document.activeElement)) current?.focus();
    }
  });
  const changed = () => box.current?.isConnected === true; // what was sent makes room for what became of it
  const outside = (/** @type {MouseEvent} */ event) => {
    if (event.target !== element.current) return;
    if (!onClose || changed()) event.preventDefault(); // the focus stays too
    else onClose();
  };
  const entered = (/** @type {any} */ { target }) => target === head.current || (focused.current = target);
  // Not on `cancel`, of which a browser lets only the first be prevented.
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || (onClose && (!changed() || event.target === head.current))) return;
    event.preventDefault();
    head.current?.focus();
  };
  return html`<dialog ref=${element} class=${`dialog ${name}`} aria-labelledby=${heading}
    onCancel=${(/** @type {Event} */ event) => (event.preventDefault(), onClose?.())}
    onInput=${(/** @type {any} */ event) => (box.current = event.target)} onKeyDown=${press} onFocusIn=${entered} onMouseDown=${outside}>
    <div class="dialog-inside">
      <header class="dialog-head">
        <h2 ref=${head} id=${heading} tabindex="-1">${title}</h2>
        ${onClose && html`<button type="button" class="icon-button" onClick=${onClose} aria-label=${t("close")}>✕</button>`}
      </header>
      ${children}
    </div>
  </dialog>`;
}

/**
 * A question before something is done.
 * @param {{question: import("../context.js").Question, answer: (yes: boolean) => void}} props
 */
export function Confirm({ question, answer }) {
  const [typed, setTyped] = useState("");
  const ready = question.typed === undefined || typed === question.typed;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (ready) answer(true);
  };
  return html`<${Dialog} title=${question.title} onClose=${() => answer(false)} class="confirm">
    <form onSubmit=${submit}>
      <div class="dialog-body">${question.body}</div>
      ${question.typed !== undefined && html`<label class="field">
        <span>${t("confirm.type")} <bdi class="mono typed">${question.typed}</bdi></span>
        <input name="typed" autocomplete="off" spellcheck=${false} value=${typed}
          onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} />
      </label>`}
      <footer class="dialog-foot">
        <button type="button" class="button" onClick=${() => answer(false)}>${t("cancel")}</button>
        <button type="submit" disabled=${!ready}
          class=${`button ${question.danger ? "danger" : "primary"}`}>${question.action}</button>
      </footer>
    </form>
  </${Dialog}>`;
}
