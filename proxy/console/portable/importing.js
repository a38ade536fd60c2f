/** Bringing memory in from a file: of this program or of another. */

import { useApp } from "../context.js";
import { bytes, t } from "../i18n/index.js";
import { Dialog } from "../parts/dialog.js";
import { useShown } from "../parts/shown.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { Result } from "./result.js";

const FORMATS = [
  "auto", "memory-proxy", "openai", "chat_jsonl", "chatgpt", "claude", "claude_code", "codex",
  "open_webui", "librechat", "langchain", "mem0", "langmem",
];

/**
 * A place where files can be dropped.
 * @param {{onFile: (file: File) => void, children?: any}} props
 */
export function Dropping({ onFile, children }) {
  const [over, setOver] = useState(false);
  const holds = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
  const drag = (/** @type {DragEvent} */ event) => {
    if (!holds(event)) return;
    event.preventDefault();
    setOver(true);
  };
  const leave = (/** @type {any} */ event) =>
    !event.currentTarget.contains(event.relatedTarget) && setOver(false);
  const drop = (/** @type {DragEvent} */ event) => {
    if (!holds(event)) return;
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer?.files[0];
    if (file) onFile(file);
  };
  return html`<div class=${`dropping ${over ? "over" : ""}`} onDragOver=${drag} onDragLeave=${leave} onDrop=${drop}>
    ${children}
    ${over && html`<div class="drop-here" aria-hidden="true">${t("import.drop")}</div>`}
  </div>`;
}

/** @typedef {{format: string, session: string, user: string, conflict: string, dry_run: string}} Choice */

/** Who has closed it is told how it went. @param {{file: File | null, onClose: () => void, onDone: () => void}} props */
export function Importing({ file: dropped, onClose, onDone }) {
  const { api, toast, failed } = useApp();
  const open = useShown(true);
  const [file, setFile] = useState(dropped);
  const [choice, setChoice] = useState({ format: "auto", session: "", user: "", conflict: "skip", dry_run: "false" });
  const [sent, setSent] = useState(/** @type {number | null} */ (null));
  const [outcome, setOutcome] = useState(/** @type {{result?: any, problem?: any} | null} */ (null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!file) return;
    setSent(0);
    setOutcome(null);
    try {
      const { data } = await api.upload("/import", choice, file, setSent);
      setOutcome({ result: data });
      if (!open.current) toast(t(data.dry_run ? "import.would" : "import.done", data), "success");
      if (!data.dry_run) onDone();
    } catch (problem) {
      setOutcome({ problem });
      if (!open.current) failed(problem);
      onDone(); // sessions before the mistake are there
    }
    setSent(null);
  };
  const done = outcome?.result && !outcome.result.dry_run; // what was only counted can still be done
  return html`<${Dialog} title=${t("import.title")} onClose=${onClose}>
    <form onSubmit=${submit}>
      <div class="dialog-body">
        ${done ? html`<${Result} result=${outcome.result} />` : html`
          <${FileChoice} file=${file} onFile=${setFile} />
          <${Options} choice=${choice} change=${(/** @type {Partial<Choice>} */ more) => setChoice({ ...choice, ...more })} />
          ${sent !== null && file && html`<${Progress} sent=${sent} total=${file.size} />`}
          ${outcome?.result && html`<${Result} result=${outcome.result} />`}
          ${outcome?.problem && html`<p class="note bad" role="alert">${outcome.problem.message}</p>`}`}
      </div>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick=${onClose}>${t("close")}</button>
        ${!done && html`<button type="submit" class="button primary" disabled=${!file || sent !== null}>${t("import")}</button>`}
      </footer>
    </form>
  </${Dialog}>`;
}

/** @param {{file: File | null, onFile: (file: File) => void}} props */
function FileChoice({ file, onFile }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  return html`<div class="file-choice">
    <input ref=${input} class="sr-only" type="file" tabindex="-1" aria-label=${t("import.choose")}
      accept=".ndjson,.jsonl,.json,application/json,application/x-ndjson"
      onChange=${(/** @type {any} */ event) => event.target.files[0] && onFile(event.target.files[0])} />
    <button type="button" class="button" onClick=${() => input.current?.click()}>${t("import.choose")}</button>
    <span>${file ? html`<bdi>${file.name}</bdi> <span class="muted">${bytes(file.size)}</span>` : html`<span class="muted">${t("import.drop")}</span>`}</span>
  </div>`;
}

/** @param {{choice: Choice, change: (more: Partial<Choice>) => void}} props */
const Options = ({ choice, change }) => html`<div class="fields">
  <label class="field"><span>${t("import.format")}</span>
    <select value=${choice.format} onChange=${(/** @type {any} */ event) => change({ format: event.target.value })}>
      ${FORMATS.map((name) => html`<option key=${name} value=${name}>${t(`import.format.${name}`)}</option>`)}
    </select></label>
  <label class="field"><span>${t("import.conflict")}</span>
    <select value=${choice.conflict} onChange=${(/** @type {any} */ event) => change({ conflict: event.target.value })}>
      <option value="skip">${t("import.skip")}</option><option value="error">${t("import.error")}</option>
    </select></label>
  <label class="field"><span>${t("import.user")}</span>
    <input value=${choice.user} autocomplete="off" onInput=${(/** @type {any} */ event) => change({ user: event.target.value.trim() })} /></label>
  <label class="field"><span>${t("import.session")}</span>
    <input value=${choice.session} autocomplete="off" onInput=${(/** @type {any} */ event) => change({ session: event.target.value.trim() })} /></label>
  <label class="field"><span>${t("import.how")}</span>
    <select value=${choice.dry_run} onChange=${(/** @type {any} */ event) => change({ dry_run: event.target.value })}>
      <option value="false">${t("import.how.do")}</option><option value="true">${t("import.how.count")}</option>
    </select></label>
</div>`;

/** @param {{sent: number, total: number}} props */
const Progress = ({ sent, total }) => html`<div role="status">
  <progress aria-label=${t("import")} max=${total} value=${sent < total ? sent : undefined}></progress>
  <p class="muted small">${sent < total ? t("import.sending", { sent: bytes(sent), total: bytes(total) }) : t("import.reading")}</p>
</div>`;
