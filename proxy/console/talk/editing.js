/** Changing what was said, in place; whoever changed it meanwhile is shown, not overruled. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { Dialog } from "../parts/dialog.js";
import { Failed, Loading } from "../parts/empty.js";
import { JsonEditor } from "../parts/json_editor.js";
import { patched } from "../parts/patching.js";
import { useShown } from "../parts/shown.js";
import { visible } from "../parts/text.js";
import { html, useEffect, useState } from "../vendor/preact.js";

/** Which session, and who is told of a change. @typedef {{id: string, changed: () => void}} Talk */

/** @param {{talk: Talk, id: string, onClose: () => void}} props `id`: of the message */
export function EditMessage({ talk, id, onClose }) {
  const path = `/sessions/${seg(talk.id)}/messages/${seg(id)}`;
  return html`<${Editing} talk=${talk} path=${path} onClose=${onClose} title=${t("talk.edit.title")} hint=${t("talk.edit.hint")}
    read=${(/** @type {any} */ data) => data.message} text=${(/** @type {any} */ message) => message.content}
    body=${(/** @type {any} */ value) => (typeof value === "string" ? { content: value } : { message: value })} />`;
}

/** @param {{talk: Talk, onClose: () => void}} props */
export function EditSummary({ talk, onClose }) {
  return html`<${Editing} talk=${talk} path=${`/sessions/${seg(talk.id)}`} onClose=${onClose} title=${t("talk.summary.edit")}
    hint=${t("talk.summary.edit.hint")} read=${(/** @type {any} */ data) => data.summary?.text ?? ""}
    text=${(/** @type {any} */ value) => value} body=${(/** @type {string} */ text) => ({ summary: { text } })} />`;
}

/** @param {{talk: Talk, onClose: () => void}} props */
export const EditMetadata = ({ talk, onClose }) => html`<${Editing} talk=${talk} path=${`/sessions/${seg(talk.id)}`}
  title=${t("session.metadata.edit")} hint="" onClose=${onClose}
  read=${(/** @type {any} */ data) => data.metadata} text=${() => null} body=${(/** @type {any} */ metadata) => ({ metadata })} />`;

/** One message of text is changed as text, anything else as JSON. @param {{talk: Talk & {session: any}, onClose: () => void}} props */
export const EditSystem = ({ talk, onClose }) => html`<${Editing} talk=${talk} path=${`/sessions/${seg(talk.id)}`}
  title=${t("session.system.edit")} hint=${t("session.system.hint")} onClose=${onClose}
  read=${(/** @type {any} */ data) => data.system_messages} text=${systemText}
  body=${(/** @type {any} */ value) => ({ system: typeof value === "string" ? { role: talk.session.system_messages[0]?.role ?? "system", content: value } : value })} />`;

/** @param {any[]} messages */
function systemText(messages) {
  if (messages.length === 0) return "";
  const [first, ...others] = messages;
  return others.length === 0 && Object.keys(first).length === 2 ? first.content : null;
}

/** @param {{talk: Talk, path: string, title: string, hint: string, read: (data: any) => any, text: (value: any) => unknown, body: (value: any) => any, onClose: () => void}} props */
function Editing({ talk, path, title, hint, read, text, body, onClose }) {
  const { api, toast } = useApp();
  const [was, setWas] = useState(/** @type {import("../parts/patching.js").Read | null} */ (null));
  const [theirs, setTheirs] = useState(/** @type {any} */ (undefined));
  const [error, setError] = useState(/** @type {any} */ (null));
  const load = () => api.get(path).then(({ data, etag }) => ({ value: read(data), etag }));
  const begin = () => void load().then(setWas, setError);
  useEffect(begin, []);
  const save = async (/** @type {any} */ value) => {
    const now = await patched(api, path, body(value), was ?? { value: null, etag: null }, read);
    if (now !== null) {
      setWas(now);
      setTheirs(now.value);
      throw new Error(t("conflict.title"));
    }
    toast(t("talk.edited"), "success");
    talk.changed();
  };
  if (was === null) {
    return html`<${Dialog} title=${title} onClose=${onClose}>${error ? html`<${Failed} error=${error} retry=${begin} />` : html`<${Loading} />`}</${Dialog}>`;
  }
  const words = text(was.value);
  if (typeof words !== "string") return html`<${JsonEditor} title=${title} value=${was.value} theirs=${theirs} save=${save} onClose=${onClose} />`;
  return html`<${TextEditor} title=${title} hint=${hint} value=${words} theirs=${theirs === undefined ? undefined : String(text(theirs))} save=${save} onClose=${onClose} />`;
}

/** @param {{title: string, hint: string, value: string, theirs?: string, save: (text: string) => Promise<void>, onClose: () => void}} props */
function TextEditor({ title, hint, value, theirs, save, onClose }) {
  const open = useShown(true);
  const [text, setText] = useState(value);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    save(text).then(() => open.current && onClose(), (error) => (setBusy(false), setProblem(error.message)));
  };
  return html`<${Dialog} title=${title} onClose=${onClose} class="wide"><form onSubmit=${submit}>
    <div class="dialog-body">
      ${theirs !== undefined && html`<div class="note warn conflict" role="alert"><p><b>${t("conflict.title")}</b> ${t("conflict.hint")}</p>
        <pre dir="auto"><bdi>${visible(theirs.slice(0, 4000))}</bdi></pre>
        <button type="button" class="button" onClick=${() => setText(theirs)}>${t("conflict.theirs")}</button></div>`}
      <textarea rows="14" dir="auto" aria-label=${title} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
      <p class="note">${hint}</p>
      <p class="problem" role="alert">${problem}</p>
    </div>
    <footer class="dialog-foot">
      <button type="button" class="button" onClick=${onClose}>${t("cancel")}</button>
      <button type="submit" class="button primary" disabled=${busy || text === value && theirs === undefined}>${t(theirs === undefined ? "save" : "conflict.mine")}</button>
    </footer></form></${Dialog}>`;
}
