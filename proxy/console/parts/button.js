/** Buttons that can be off. */

import { html } from "../vendor/preact.js";

/**
 * Off it keeps the focus, which `disabled` would take away from whoever has just pressed it.
 * @param {{off: boolean, onClick?: () => void, [attribute: string]: any}} props
 */
export const Button = ({ off, onClick, ...attributes }) =>
  html`<button type="button" ...${attributes} aria-disabled=${off} onClick=${off ? still : onClick}></button>`;

/** @param {Event} event */
const still = (event) => event.preventDefault();
