/** Tabs, by the pattern of WAI-ARIA: arrows move, the panel follows. */

import { html, useId } from "../vendor/preact.js";

/**
 * @param {{tabs: {name: string, label: any}[], chosen: string, choose: (name: string) => void, label: string, children?: any}} props
 */
export function Tabs({ tabs, chosen, choose, label, children }) {
  const id = useId();
  const move = (/** @type {KeyboardEvent} */ event) => {
    const step = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1 })[event.key];
    if (step === undefined) return;
    event.preventDefault();
    // From the one with the focus: the chosen one follows it a moment later, with the address.
    const at = tabs.findIndex((tab) => `${id}-${tab.name}` === document.activeElement?.id);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    choose(next.name);
    document.getElementById(`${id}-${next.name}`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
      ${tabs.map((tab) => html`<button type="button" role="tab" class="tab" key=${tab.name}
        id=${`${id}-${tab.name}`} aria-selected=${tab.name === chosen} aria-controls=${`${id}-panel`}
        tabindex=${tab.name === chosen ? 0 : -1} onClick=${() => choose(tab.name)}>${tab.label}</button>`)}
    </div>
    <div class="tab-panel" role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${chosen}`}>${children}</div>`;
}
