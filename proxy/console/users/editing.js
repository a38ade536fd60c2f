/** Adding a fact and correcting one.  What somebody else changed meanwhile is shown beside it. */

import { unchanged } from "../api.js";
import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { Dialog } from "../parts/dialog.js";
import { Failed, Loading } from "../parts/empty.js";
import { atMost } from "../parts/limit.js";
import { useShown } from "../parts/shown.js";
import { visible } from "../parts/text.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

/** `until`: a day of the reader's, or "" for ever. @typedef {{text: string, about: string, until: string}} Draft */
/** A fact as it was read. @typedef {{draft: Draft, etag: string | null}} Read */

const MAX_TEXT = 500;
/** Years have four digits: without it a box for dates takes six. */
const LAST = "9999-12-31";
/** An idempotency key; `randomUUID` is not there on plain HTTP. */
const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
const NEW = { text: "", about: "", until: "" };

/** @param {{path: string, onClose: () => void, onDone: () => void}} props */
export function Adding({ path, onClose, onDone }) {
  const { api, toast } = useApp();
  const sent = useRef({ body: "", key: "" });
  const open = useShown(true);
  const save = async (/** @type {Draft} */ draft) => {
    const fields = fieldsOf(draft, NEW);
    const body = JSON.stringify(fields);
    if (body !== sent.current.body) sent.current = { body, key: newKey() }; // a key is of one request
    await api.post(path, fields, { headers: { "idempotency-key": sent.current.key } });
    toast(t("memory.added"), "success");
    onDone();
    if (open.current) onClose();
  };
  return html`<${Fields} title=${t("memories.add.title")} initial=${NEW} save=${save} onClose=${onClose} />`;
}

/** @param {{path: string, onClose: () => void, onDone: () => void}} props */
export function Editing({ path, onClose, onDone }) {
  const { api, toast } = useApp();
  const open = useShown(true);
  const [opened, setOpened] = useState(/** @type {Read | null} */ (null));
  const [theirs, setTheirs] = useState(/** @type {Read | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const load = () => api.get(path).then(({ data, etag }) => ({ draft: draftOf(data), etag }));
  const begin = () => void load().then(setOpened, setError);
  useEffect(begin, []);
  const save = async (/** @type {Draft} */ draft, /** @type {Draft} */ from) => {
    try {
      await api.patch(path, fieldsOf(draft, from), unchanged(theirs ?? opened ?? { etag: null }));
    } catch (refusal) {
      if (/** @type {any} */ (refusal).status !== 412) throw refusal;
      setTheirs(await load());
      return;
    }
    toast(t("memory.changed"), "success");
    onDone();
    if (open.current) onClose();
  };
  const title = t("memory.edit");
  if (opened === null) {
    return html`<${Dialog} title=${title} onClose=${onClose}>${error ? html`<${Failed} error=${error} retry=${begin} />` : html`<${Loading} />`}</${Dialog}>`;
  }
  return html`<${Fields} title=${title} initial=${opened.draft} theirs=${theirs?.draft} save=${save} onClose=${onClose} />`;
}

/** @param {any} memory @returns {Draft} */
const draftOf = (memory) => ({
  text: memory.text,
  about: memory.about === "user" ? "" : memory.about,
  until: memory.expires_at ? dayOf(memory.expires_at) : "",
});

/** As a box for dates has it, and Swedes write it; it has none beyond all dates. @param {number} seconds Unix time */
const dayOf = (seconds) => {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleDateString("sv");
};

/** Unix seconds; what cannot be read is not "for ever". @param {string} until */
const endOf = (until) => {
  const end = Date.parse(`${until}T23:59:59`) / 1000;
  if (Number.isNaN(end)) throw new Error(t("memory.until.invalid"));
  return end;
};

/** The end only where it was changed: it has an hour too, and may move by itself. @param {Draft} draft @param {Draft} from */
const fieldsOf = (draft, from) => ({
  text: draft.text,
  about: draft.about || "user",
  ...(draft.until !== from.until && { expires_at: draft.until ? endOf(draft.until) : null }),
});

/** @param {{title: string, initial: Draft, theirs?: Draft, save: (draft: Draft, from: Draft) => Promise<void>, onClose: () => void}} props `from`: what the draft was made of */
function Fields({ title, initial, theirs, save, onClose }) {
  const [draft, setDraft] = useState(initial);
  const [from, setFrom] = useState(initial);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const change = (/** @type {keyof Draft} */ name) => (/** @type {any} */ event) => setDraft({ ...draft, [name]: event.target.value });
  const take = (/** @type {Draft} */ other) => (setDraft(other), setFrom(other));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    await save(draft, from).catch((error) => setProblem(error.message));
    setBusy(false);
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${submit}>
      <div class="dialog-body">
        ${theirs && html`<${Conflict} theirs=${theirs} take=${() => take(theirs)} />`}
        <label class="field"><span>${t("memory.text")}</span>
          <textarea rows="4" required ref=${atMost(MAX_TEXT)} dir="auto" value=${draft.text} onInput=${change("text")}></textarea></label>
        <div class="fields">
          <label class="field"><span>${t("memory.who")}</span>
            <input value=${draft.about} placeholder=${t("memory.themselves")} onInput=${change("about")} /></label>
          <label class="field"><span>${t("memory.until")}</span>
            <input type="date" max=${LAST} value=${draft.until} onInput=${change("until")} /></label>
        </div>
        <p class="problem" role="alert">${problem}</p>
      </div>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick=${onClose}>${t("cancel")}</button>
        <button type="submit" class="button primary" disabled=${busy || draft.text.trim() === ""}>${t(theirs ? "conflict.mine" : "save")}</button>
      </footer>
    </form>
  </${Dialog}>`;
}

/** @param {{theirs: Draft, take: () => void}} props */
const Conflict = ({ theirs, take }) => html`<div class="note warn conflict" role="alert">
  <p><b>${t("conflict.title")}</b> ${t("conflict.hint")}</p>
  <blockquote dir="auto"><bdi>${visible(theirs.text)}</bdi></blockquote>
  <button type="button" class="button" onClick=${take}>${t("conflict.theirs")}</button>
</div>`;
