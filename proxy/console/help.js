/** The shortcuts. */

import { t } from "./i18n/index.js";
import { Dialog } from "./parts/dialog.js";
import { html } from "./vendor/preact.js";

const KEYS = /** @type {const} */ ([
  ["/", "help.search"],
  ["↓", "help.found"],
  ["j k", "help.move"],
  ["Enter", "help.open"],
  ["[ ]", "help.step"],
  ["Esc", "help.leave"],
  ["Esc", "help.back"],
  ["?", "help.help"],
]);

/** @param {{onClose: () => void, version: string}} props */
export const Help = ({ onClose, version }) => html`<${Dialog} title=${t("help.title")} onClose=${onClose}>
  <div class="dialog-body">
    <dl class="keys">${KEYS.map(([keys, text]) => html`<div key=${text}>
      <dt>${keys.split(" ").map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt><dd>${t(text)}</dd>
    </div>`)}</dl>
    <p class="muted small">memory-proxy ${version}</p>
  </div>
</${Dialog}>`;
