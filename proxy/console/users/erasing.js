/** Erasing a person: first what would go, then the person's name typed, then the receipt. */

import { seg } from "../api.js";
import { t } from "../i18n/index.js";
import { Dialog } from "../parts/dialog.js";
import { Failed, Loading } from "../parts/empty.js";
import { useErasure } from "../parts/erasure.js";
import { Receipt, saveReceipt } from "../parts/receipt.js";
import { html, useState } from "../vendor/preact.js";

/** @param {{user: string, onClose: () => void, onErased: () => void, onLeave: () => void}} props */
export function Erasing({ user, onClose, onErased, onLeave }) {
  const { receipt, growing, error, busy, count, erase } = useErasure(`/users/${seg(user)}`);
  const done = receipt !== null && !receipt.dry_run;
  const leave = () => (done ? onLeave() : onClose());
  return html`<${Dialog} title=${t(done ? "erase.done" : "erase.title")} onClose=${leave}>
    ${receipt === null && (error ? html`<${Failed} error=${error} retry=${count} />` : html`<${Loading} label=${t("erase.counting")} />`)}
    ${receipt !== null && !done && html`<${Asking} user=${user} ...${{ receipt, growing, busy, error }}
      onClose=${onClose} erase=${() => erase().then(onErased)} />`}
    ${done && html`<div class="dialog-body" role="status">
        <p>${t("erase.gone")} <bdi class="mono typed">${user}</bdi></p><${Receipt} receipt=${receipt} /></div>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick=${() => saveReceipt(receipt, `erasure-${user}`)}>${t("erase.save")}</button>
        <button type="button" class="button primary" onClick=${leave}>${t("close")}</button>
      </footer>`}
  </${Dialog}>`;
}

/** @param {{user: string, receipt: any, growing: boolean, busy: boolean, error: any, onClose: () => void, erase: () => void}} props */
function Asking({ user, receipt, growing, busy, error, onClose, erase }) {
  const [typed, setTyped] = useState("");
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (typed === user && !busy) erase();
  };
  return html`<form onSubmit=${submit}>
    <div class="dialog-body">
      <p>${t("erase.lead")}</p>
      <${Receipt} receipt=${receipt} />
      <p class="note warn">${t("erase.final")}</p>
      ${error && html`<p class="note bad" role="alert">${error.message}</p>`}
    </div>
    <label class="field"><span>${t("confirm.type")} <bdi class="mono typed">${user}</bdi></span>
      <input name="typed" autocomplete="off" spellcheck=${false} value=${typed}
        onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></label>
    <footer class="dialog-foot">
      <button type="button" class="button" onClick=${onClose}>${t("cancel")}</button>
      <button type="submit" class="button danger" disabled=${typed !== user || busy}>${t(growing ? "erase.growing" : "erase.now")}</button>
    </footer>
  </form>`;
}
