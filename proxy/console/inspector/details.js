/** Changing a session's title and how long it is kept; what somebody else changed is shown. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { Dialog } from "../parts/dialog.js";
import { MAX_TITLE, atMost } from "../parts/limit.js";
import { patched } from "../parts/patching.js";
import { useShown } from "../parts/shown.js";
import { visible } from "../parts/text.js";
import { html, useState } from "../vendor/preact.js";
import { UNITS, inSeconds, inUnits, lasting } from "./lasting.js";

/** @typedef {import("./lasting.js").Unit} Unit */
/** `count`: as it is typed. @typedef {{title: string, count: string, unit: Unit}} Draft */

/** @param {any} session @returns {Draft} */
function draftOf({ title, ttl }) {
  const { count, unit } = inUnits(ttl);
  return { title: title ?? "", count: String(count), unit };
}

/** @param {Draft} draft */
const fieldsOf = ({ title, count, unit }) => ({ title: title.trim() || null, ttl: inSeconds(Number(count || 0), unit) });

/** What is changed here. @param {any} session */
const read = ({ title, ttl }) => ({ title, ttl });

/** @param {{session: any, etag: string | null, onChanged: () => void, onClose: () => void}} props */
export function Details({ session, etag, onChanged, onClose }) {
  const { api, toast } = useApp();
  const open = useShown(true);
  const [was, setWas] = useState({ value: read(session), etag });
  const [theirs, setTheirs] = useState(/** @type {any} */ (null));
  const [initial] = useState(() => draftOf(session));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const save = async (/** @type {Draft} */ draft) => {
    const now = await patched(api, `/sessions/${seg(session.id)}`, fieldsOf(draft), was, read);
    if (now !== null) {
      setWas({ value: now.value, etag: now.etag });
      return setTheirs(now.value);
    }
    toast(t("memory.changed"), "success");
    onChanged();
    if (open.current) onClose();
  };
  const submit = (/** @type {Draft} */ draft) => {
    setBusy(true);
    setProblem("");
    void save(draft).catch((error) => setProblem(error.message)).finally(() => setBusy(false));
  };
  return html`<${Fields} ...${{ initial, theirs, problem, busy, submit, onClose }} />`;
}

/** @param {{initial: Draft, theirs: any, problem: string, busy: boolean, submit: (draft: Draft) => void, onClose: () => void}} props */
function Fields({ initial, theirs, problem, busy, submit, onClose }) {
  const [draft, setDraft] = useState(initial);
  const change = (/** @type {keyof Draft} */ name) => (/** @type {any} */ event) => setDraft({ ...draft, [name]: event.target.value });
  const send = (/** @type {Event} */ event) => (event.preventDefault(), submit(draft));
  return html`<${Dialog} title=${t("session.edit")} onClose=${onClose}><form onSubmit=${send}>
    <div class="dialog-body">
      ${theirs && html`<div class="note warn conflict" role="alert"><p><b>${t("conflict.title")}</b> ${t("conflict.hint")}</p>
        <blockquote dir="auto"><bdi>${visible(theirs.title ?? t("sessions.untitled"))}</bdi> · ${lasting(theirs.ttl)}</blockquote>
        <button type="button" class="button" onClick=${() => setDraft(draftOf(theirs))}>${t("conflict.theirs")}</button></div>`}
      <label class="field"><span>${t("session.title")}</span>
        <input name="title" dir="auto" ref=${atMost(MAX_TITLE)} autocomplete="off" value=${draft.title} onInput=${change("title")} /></label>
      <fieldset class="lasting"><legend>${t("session.kept")}</legend>
        <input type="number" min="0" step="1" required aria-label=${t("session.ttl.count")} value=${draft.count} onInput=${change("count")} />
        <select aria-label=${t("session.ttl.unit")} value=${draft.unit} onChange=${change("unit")}>
          ${UNITS.map(([unit]) => html`<option key=${unit} value=${unit}>${t(`unit.${unit}`)}</option>`)}</select>
        <span class="muted small">${t("session.ttl.hint")}</span></fieldset>
      <p class="problem" role="alert">${problem}</p>
    </div>
    <footer class="dialog-foot">
      <button type="button" class="button" onClick=${onClose}>${t("cancel")}</button>
      <button type="submit" class="button primary" disabled=${busy}>${t(theirs ? "conflict.mine" : "save")}</button>
    </footer></form></${Dialog}>`;
}
