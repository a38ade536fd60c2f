/** Taking memory out as a file. */

import { useApp } from "../context.js";
import { bytes, t } from "../i18n/index.js";
import { Dialog } from "../parts/dialog.js";
import { html, useEffect, useState } from "../vendor/preact.js";

/** "memory-2026-01-31.ndjson" @param {string} name */
export const filename = (name) =>
  `${name.replace(/[^\w.-]+/g, "_").slice(0, 80)}-${new Date().toISOString().slice(0, 10)}.ndjson`;

/** Downloads as soon as it is shown. @param {{path: string, name: string, title: string, onClose: () => void}} props */
export function Exporting({ path, name, title, onClose }) {
  const { api } = useApp();
  const [received, setReceived] = useState(0);
  const [state, setState] = useState(/** @type {{done: boolean, problem: string}} */ ({ done: false, problem: "" }));
  useEffect(() => {
    api.download(path, {}, filename(name), setReceived).then(
      () => setState({ done: true, problem: "" }),
      (error) => setState({ done: true, problem: error.message }),
    );
  }, []);
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <div class="dialog-body">
      ${!state.done && html`<progress aria-label=${title}></progress>`}
      <p role="status">${state.done ? (state.problem ? t("export.failed") : t("export.done")) : t("export.running")}
        ${" "}<b class="num">${bytes(received)}</b></p>
      ${state.problem && html`<p class="note bad" role="alert">${state.problem}</p>`}
      <p class="muted small">${t("export.what")}</p>
    </div>
    <footer class="dialog-foot"><button type="button" class="button primary" onClick=${onClose}>${t("close")}</button></footer>
  </${Dialog}>`;
}
