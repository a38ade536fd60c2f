/** Would be sent: the exact prompt of a next message, and what memory put into it. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { n, named, t } from "../i18n/index.js";
import { Button } from "../parts/button.js";
import { copy } from "../parts/copying.js";
import { written } from "../parts/exact.js";
import { Json } from "../parts/json.js";
import { oneLine } from "../parts/text.js";
import { textOf } from "../talk/contents.js";
import { useKept } from "../talk/kept.js";
import { Text } from "../talk/text.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { Bar } from "./bar.js";
import { Evicted } from "./evicted.js";
import { spentOf } from "./figures.js";
import { Passages } from "./passages.js";
import { sentOf } from "./sending.js";

/** Characters of a stored message that is folded. */
const MAX_CHARACTERS = 90;

/** `end` of the session then. @typedef {{preview: any, own: string, end: number}} Asked */

/** @param {import("./index.js").Inspected} props */
export function WouldBeSent({ session, exchanges, onJump }) {
  const { api, caller } = useApp();
  // Kept while one looks at another tab.
  const [text, setText] = useKept(`${session.id} sent text`, "");
  const [profile, setProfile] = useKept(`${session.id} sent profile`, "");
  const [asked, setAsked] = useKept(`${session.id} sent`, /** @type {Asked | null} */ (null));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const asking = useRef(0);
  const ask = () => {
    if (text.trim() === "") return;
    const number = ++asking.current;
    const messages = [{ role: "user", content: text }];
    const model = exchanges[0]?.model ?? undefined;
    setBusy(true);
    setProblem("");
    api.post(`/sessions/${seg(session.id)}/context`, { messages, model, ...(profile && { profile }) })
      .then(({ data }) => number === asking.current && setAsked({ preview: data, own: text, end: session.end }),
        (error) => setProblem(error.message))
      .finally(() => setBusy(false));
  };
  const submit = (/** @type {Event} */ event) => (event.preventDefault(), ask());
  const enter = (/** @type {KeyboardEvent} */ event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && ask();
  return html`<div class="inspector-panel">
    <form class="asking" onSubmit=${submit}>
      <label class="field"><span>${t("sent.next")}</span>
        <textarea rows="3" dir="auto" value=${text} placeholder=${t("sent.placeholder")} onKeyDown=${enter}
          onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea></label>
      <div class="asking-end">
        ${caller.profiles.length > 0 && html`<label class="asking-profile"><span class="muted small">${t("why.profile")}</span>
          <select value=${profile} onChange=${(/** @type {any} */ event) => setProfile(event.target.value)}>
            <option value="">${t("why.profile.default")}</option>
            ${caller.profiles.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
          </select></label>`}
        <${Button} type="submit" class="button primary" off=${busy || text.trim() === ""}>${t("sent.show")}</${Button}>
      </div>
      <p class="problem" role="alert">${problem}</p>
      ${asked === null && html`<p class="muted small">${t("sent.hint")}</p>`}
    </form>
    ${asked !== null && html`<${Result} key=${asking.current} asked=${asked} session=${session} stale=${asked.end !== session.end} onJump=${onJump} />`}
  </div>`;
}

/** @param {{asked: Asked, session: any, stale: boolean, onJump: (message: string, session: string | null) => void}} props */
function Result({ asked: { preview, own }, session, stale, onJump }) {
  const app = useApp();
  const copyAll = () => void copy(written(preview.messages, 2), app);
  const spent = spentOf({ memory: { breakdown: preview.breakdown, tokens: preview.injected.tokens }, usage: { prompt_tokens: preview.tokens } });
  return html`
    ${stale && html`<p class="note warn" role="status">${t("sent.stale")}</p>`}
    <section><h3>${t("why.spent")} <span class="muted num">${n(preview.tokens)}</span></h3><${Bar} spent=${spent} label=${t("why.spent")} /></section>
    <${Evicted} evicted=${preview.evicted} />
    <section><header class="section-head"><h3>${t("messages")} <span class="muted num">${n(preview.messages.length)}</span></h3>
        <button type="button" class="button" onClick=${copyAll}>${t("sent.copy")}</button></header>
      <ol class="sent">${sentOf(preview, own).map((sent, at) => html`<li key=${at}><${Message} sent=${sent} name=${`sent ${at}`} onJump=${onJump} /></li>`)}</ol>
    </section>
    ${preview.recalled.length > 0 && html`<section><h3>${t("why.recalled")} <span class="muted num">${n(preview.recalled.length)}</span></h3>
      <${Passages} recalled=${preview.recalled} session=${session.id} user=${session.user_id} onJump=${onJump} /></section>`}`;
}

/** @param {{sent: import("./sending.js").Sent, name: string, onJump: (message: string, session: string | null) => void}} props */
function Message({ sent, name, onJump }) {
  const [open, setOpen] = useState(sent.from !== "window");
  const { from, role, id, tokens, message } = sent;
  return html`<article class=${`sent-message from-${from}`}>
    <button type="button" class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      <span aria-hidden="true">${open ? "▾" : "▸"}</span><b>${named("talk.role", role)}</b><span class="tag">${t(`from.${from}`)}</span>
      <bdi class="piece-words muted">${open ? "" : oneLine(textOf(message).slice(0, MAX_CHARACTERS))}</bdi>
      ${tokens !== null && html`<span class="muted small num">${t("tokens.n", { n: tokens })}</span>`}</button>
    ${open && html`<div class="sent-inside"><${Inside} sent=${sent} name=${name} />
      ${id !== null && html`<button type="button" class="link-button" onClick=${() => onJump(id, null)}>${t("why.jump")}</button>`}</div>`}
  </article>`;
}

/** @param {{sent: import("./sending.js").Sent, name: string}} props */
function Inside({ sent: { pieces, message }, name }) {
  const { role: _, content, ...rest } = message;
  const whole = Array.isArray(content) || Object.keys(rest).length > 0;
  return html`${pieces.map((piece, at) => piece.block === null
      ? html`<${Text} key=${at} text=${piece.text} name=${`${name} ${at}`} />`
      : html`<section class="memory-block" key=${at}><h4>${t("sent.injected")}: ${named("block", piece.block)}
          ${piece.tokens !== null && html`<span class="num">${t("tokens.n", { n: piece.tokens })}</span>`}</h4>
          <${Text} text=${piece.text} name=${`${name} ${at}`} /></section>`)}
    ${whole && html`<${Json} value=${message} open=${0} />`}`;
}
