/** A dialog in which a JSON value is changed as text. */

import { t } from "../i18n/index.js";
import { html, useState } from "../vendor/preact.js";
import { Dialog } from "./dialog.js";
import { parsed } from "./json.js";

/**
 * @param {{title: string, value: unknown, save: (value: any) => Promise<void>, onClose: () => void}} props
 *   `save`: its error is shown, and the dialog stays
 */
export function JsonEditor({ title, value, save, onClose }) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const [problem, setProblem] = useState("");
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const read = parsed(text);
    if (read.broken) return setProblem(t("json.invalid"));
    try {
      await save(read.value);
      onClose();
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} class="wide">
    <form onSubmit=${submit}>
      <div class="dialog-body">
        <textarea class="mono" rows="16" spellcheck=${false} aria-label=${title} value=${text}
          aria-invalid=${problem !== ""} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
        <p class="problem" role="alert">${problem}</p>
      </div>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick=${onClose}>${t("cancel")}</button>
        <button type="submit" class="button primary">${t("save")}</button>
      </footer>
    </form>
  </${Dialog}>`;
}
