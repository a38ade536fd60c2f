/** A dialog in which a JSON value is changed as text. */

import { t } from "../i18n/index.js";
import { html, useState } from "../vendor/preact.js";
import { Dialog } from "./dialog.js";
import { written } from "./exact.js";
import { Json, parsed } from "./json.js";
import { useShown } from "./shown.js";

/**
 * @param {{title: string, value: unknown, theirs?: unknown, save: (value: any) => Promise<void>, onClose: () => void}} props
 *   `theirs`: what somebody else has made of it meanwhile; `save`: its error is shown, and the
 *   dialog stays
 */
export function JsonEditor({ title, value, theirs, save, onClose }) {
  const open = useShown(true);
  const [text, setText] = useState(() => written(value, 2));
  const [problem, setProblem] = useState("");
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const read = parsed(text);
    if (read.broken) return setProblem(t("json.invalid"));
    setProblem("");
    try {
      await save(read.value);
      if (open.current) onClose();
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} class="wide">
    <form onSubmit=${submit}>
      <div class="dialog-body">
        ${theirs !== undefined && html`<div class="note warn conflict" role="alert">
          <p><b>${t("conflict.title")}</b> ${t("conflict.hint")}</p><${Json} value=${theirs} open=${3} />
          <button type="button" class="button" onClick=${() => setText(written(theirs, 2))}>${t("conflict.theirs")}</button>
        </div>`}
        <textarea class="mono" rows="16" spellcheck=${false} aria-label=${title} value=${text}
          aria-invalid=${problem !== ""} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
        <p class="problem" role="alert">${problem}</p>
      </div>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick=${onClose}>${t("cancel")}</button>
        <button type="submit" class="button primary">${t(theirs === undefined ? "save" : "conflict.mine")}</button>
      </footer>
    </form>
  </${Dialog}>`;
}
