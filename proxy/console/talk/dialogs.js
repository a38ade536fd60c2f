/** The dialogs of this screen. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { named, t } from "../i18n/index.js";
import { Details } from "../inspector/details.js";
import { links } from "../links.js";
import { Dialog } from "../parts/dialog.js";
import { Failed, Loading } from "../parts/empty.js";
import { MAX_TITLE, atMost } from "../parts/limit.js";
import { useErasure } from "../parts/erasure.js";
import { Receipt, saveReceipt } from "../parts/receipt.js";
import { useShown } from "../parts/shown.js";
import { visible } from "../parts/text.js";
import { Exporting } from "../portable/exporting.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { EditMessage, EditMetadata, EditSummary, EditSystem } from "./editing.js";

/** @param {{open: import("./actions.js").Open | null, close: () => void, talk: import("./state.js").Talk}} props */
export function Dialogs({ open, close, talk }) {
  if (open?.kind === "edit") return html`<${EditMessage} talk=${talk} id=${open.stored.id} onClose=${close} />`;
  if (open?.kind === "summary") return html`<${EditSummary} talk=${talk} onClose=${close} />`;
  if (open?.kind === "details") return html`<${Details} session=${talk.session} etag=${talk.etag} onChanged=${talk.changed} onClose=${close} />`;
  if (open?.kind === "metadata") return html`<${EditMetadata} talk=${talk} onClose=${close} />`;
  if (open?.kind === "system") return html`<${EditSystem} talk=${talk} onClose=${close} />`;
  if (open?.kind === "fork") return html`<${Forking} id=${talk.id} until=${open.until} onClose=${close} />`;
  if (open?.kind === "forget") return html`<${Forgetting} id=${talk.id} exchange=${open.exchange} onClose=${close} />`;
  if (open?.kind === "delete") return html`<${Deleting} id=${talk.id} onClose=${close} />`;
  if (open?.kind === "export") {
    return html`<${Exporting} path=${`/sessions/${seg(talk.id)}/export`} name=${talk.id} title=${t("talk.export")} onClose=${close} />`;
  }
  return null;
}

/** @param {{id: string, until: string | null, onClose: () => void}} props */
function Forking({ id, until, onClose }) {
  const { api, toast, navigate } = useApp();
  const open = useShown(true);
  const [name, setName] = useState(() => `${id.slice(0, 180)}-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36)}`);
  const [title, setTitle] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    const body = { id: name, ...(until !== null && { until }), ...(title.trim() && { title: title.trim() }) };
    api.post(`/sessions/${seg(id)}/fork`, body).then(() => {
      toast(t("talk.forked"), "success");
      if (!open.current) return;
      onClose();
      navigate(links.session(name));
    }, (error) => (setBusy(false), setProblem(error.message)));
  };
  return html`<${Dialog} title=${t("talk.fork.title")} onClose=${onClose}><form onSubmit=${submit}>
    <div class="dialog-body"><p>${t(until === null ? "talk.fork.whole" : "talk.fork.hint")}</p></div>
    <label class="field"><span>${t("talk.fork.id")}</span><input class="mono" name="id" required autocomplete="off" spellcheck=${false}
      value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label>
    <label class="field"><span>${t("talk.fork.name")}</span><input name="title" ref=${atMost(MAX_TITLE)} autocomplete="off"
      value=${title} onInput=${(/** @type {any} */ event) => setTitle(event.target.value)} /></label>
    <p class="problem" role="alert">${problem}</p>
    <footer class="dialog-foot">
      <button type="button" class="button" onClick=${onClose}>${t("cancel")}</button>
      <button type="submit" class="button primary" disabled=${busy || name === ""}>${t("talk.fork.now")}</button>
    </footer></form></${Dialog}>`;
}

/** Something that is first only said, then done. @param {(dry: boolean) => Promise<{data: any}>} ask */
function useDryRun(ask) {
  const [told, setTold] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const run = (/** @type {boolean} */ dry) => {
    setBusy(true);
    setError(null);
    return ask(dry).then(({ data }) => setTold({ ...data, done: !dry }), setError).finally(() => setBusy(false));
  };
  useEffect(() => void run(true), []);
  return { told, error, busy, run };
}

/** @param {{id: string, exchange: string | null, onClose: () => void}} props */
function Forgetting({ id, exchange, onClose }) {
  const { api } = useApp();
  const { told, error, busy, run } = useDryRun((dry) =>
    api.post(`/sessions/${seg(id)}/forget`, { dry_run: dry, ...(exchange !== null && { exchange_id: exchange }) }));
  const all = told?.data ?? [];
  return html`<${Dialog} title=${t(told?.done ? "talk.forget.done" : "talk.forget.title")} onClose=${onClose}>
    <div class="dialog-body">
      ${!told && (error ? html`<${Failed} error=${error} retry=${() => run(true)} />` : html`<${Loading} />`)}
      ${told && html`<p>${t(all.length === 0 ? "talk.forget.none" : told.done ? "talk.forget.gone" : exchange === null ? "talk.forget.lead" : "talk.forget.here", { n: all.length })}</p>
        <ul class="learned">${all.slice(0, 200).map((/** @type {any} */ one) => html`<li key=${one.id}><span class="tag">${named("one", one.kind)}</span> <bdi>${visible(String(one.text ?? "").slice(0, 300))}</bdi> <span class="muted small">${named("talk.forget", one.action)}</span></li>`)}</ul>`}
      ${told && error && html`<p class="note bad" role="alert">${error.message}</p>`}
    </div>
    ${told && html`<footer class="dialog-foot"><button type="button" class="button" onClick=${onClose}>${t(told.done ? "close" : "cancel")}</button>
      ${!told.done && all.length > 0 && html`<button type="button" class="button danger" disabled=${busy} onClick=${() => run(false)}>${t("talk.forget.now", { n: all.length })}</button>`}</footer>`}
  </${Dialog}>`;
}

/** @param {{id: string, onClose: () => void}} props */
function Deleting({ id, onClose }) {
  const { navigate } = useApp();
  const { receipt, growing, error, busy, count, erase } = useErasure(`/sessions/${seg(id)}`);
  const done = receipt !== null && !receipt.dry_run;
  const leave = () => (done ? navigate(links.sessions) : onClose());
  return html`<${Dialog} title=${t(done ? "talk.session.deleted" : "talk.session.delete.title")} onClose=${leave}>
    <div class="dialog-body">
      ${!receipt && (error ? html`<${Failed} error=${error} retry=${count} />` : html`<${Loading} label=${t("erase.counting")} />`)}
      ${receipt && html`<p>${t(done ? "talk.session.deleted.hint" : "erase.lead")} <bdi class="mono typed">${id}</bdi></p><${Receipt} receipt=${receipt} />
        ${!done && html`<p class="note warn">${t("erase.final")}</p>`}`}
      ${receipt && error && html`<p class="note bad" role="alert">${error.message}</p>`}
    </div>
    ${receipt && html`<footer class="dialog-foot">
      ${done && html`<button type="button" class="button" onClick=${() => saveReceipt(receipt, `erasure-${id}`)}>${t("erase.save")}</button>`}
      <button type="button" class=${`button ${done ? "primary" : ""}`} onClick=${leave}>${t(done ? "close" : "cancel")}</button>
      ${!done && html`<button type="button" class="button danger" disabled=${busy} onClick=${erase}>${t(growing ? "erase.growing" : "talk.session.delete.now")}</button>`}
    </footer>`}
  </${Dialog}>`;
}
