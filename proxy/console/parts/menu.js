/** A button with a list of actions; the browser's popover, closed with Escape, Tab or a click beside. */

import { html, useId, useRef, useState } from "../vendor/preact.js";

/** @typedef {{label: string, onClick: () => void, danger?: boolean, disabled?: boolean, checked?: boolean}} Action */

/** @param {{label: string, children?: any, actions: Action[], class?: string, end?: boolean}} props `label`: for screen readers */
export function Menu({ label, children, actions, class: name = "icon-button", end = true }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const [open, setOpen] = useState(false);
  const id = useId();
  const toggles = (/** @type {any} */ event) => setOpen(event.newState === "open");
  const toggled = (/** @type {any} */ event) => {
    if (event.newState !== "open") return;
    place(button.current, list.current, end);
    buttons(list.current)[0]?.focus();
  };
  const choose = (/** @type {Action} */ action) => {
    list.current?.hidePopover();
    button.current?.focus();
    action.onClick();
  };
  return html`<span class="menu">
    <button ref=${button} type="button" class=${name} aria-haspopup="menu" aria-expanded=${open}
      aria-controls=${id} aria-label=${label} title=${label} popovertarget=${id}>${children ?? "⋯"}</button>
    <div ref=${list} id=${id} class="menu-list" popover="auto" role="menu" aria-label=${label}
      onBeforeToggle=${toggles} onToggle=${toggled} onKeyDown=${(/** @type {KeyboardEvent} */ event) => move(event, list.current)}>
      ${open && actions.map((action) => html`<button type="button" key=${action.label} tabindex="-1"
        role=${action.checked === undefined ? "menuitem" : "menuitemradio"}
        aria-checked=${action.checked} class=${`menu-item ${action.danger ? "danger" : ""}`}
        disabled=${action.disabled} onClick=${() => choose(action)}>
        ${action.checked !== undefined && html`<span class="menu-check" aria-hidden="true">${action.checked ? "✓" : ""}</span>`}
        ${action.label}</button>`)}
    </div>
  </span>`;
}

/** @param {HTMLElement | null} list */
const buttons = (list) =>
  /** @type {HTMLButtonElement[]} */ ([...(list?.querySelectorAll("button:not(:disabled)") ?? [])]);

/** @param {KeyboardEvent} event @param {HTMLElement | null} list */
function move(event, list) {
  if (event.key === "Tab") list?.hidePopover(); // on from its button, which has the focus then
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  const all = buttons(list);
  const at = all.findIndex((each) => each === document.activeElement);
  all[(at + step + all.length) % all.length]?.focus();
}

/** Below the button, inside the window. @param {HTMLElement | null} button @param {HTMLElement | null} list @param {boolean} end */
function place(button, list, end) {
  if (!button || !list) return;
  const at = button.getBoundingClientRect();
  const [width, height] = [list.offsetWidth, list.offsetHeight];
  const left = end ? at.right - width : at.left;
  const below = at.bottom + 4 + height <= innerHeight;
  list.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  list.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - 4 - height)}px`;
}
