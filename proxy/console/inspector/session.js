/** The session itself: its facts, what can be changed of it, its figures over time. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { n, t, time } from "../i18n/index.js";
import { links } from "../links.js";
import { Json } from "../parts/json.js";
import { patched } from "../parts/patching.js";
import { Ago } from "../parts/time.js";
import { textOf } from "../talk/contents.js";
import { Text } from "../talk/text.js";
import { html } from "../vendor/preact.js";
import { Charts } from "./charts.js";
import { lasting } from "./lasting.js";

/** @param {import("./index.js").Inspected} props */
export function Session({ session, etag, exchanges, onChanged, onOpen }) {
  return html`<div class="inspector-panel">
    <section><header class="section-head"><h3>${t("session")}</h3>
        <button type="button" class="button" onClick=${() => onOpen({ kind: "details" })}>${t("edit")}</button></header>
      <${Facts} session=${session} /></section>
    <section><header class="section-head"><h3>${t("session.metadata")}</h3>
        <button type="button" class="button" aria-label=${t("session.metadata.edit")} onClick=${() => onOpen({ kind: "metadata" })}>${t("edit")}</button></header>
      ${Object.keys(session.metadata).length > 0 ? html`<${Json} value=${session.metadata} open=${2} />` : html`<p class="muted">${t("session.metadata.none")}</p>`}</section>
    <${System} ...${{ session, etag, onChanged }} edit=${() => onOpen({ kind: "system" })} />
    <${Charts} key=${session.id} session=${session.id} newest=${exchanges[0]?.id ?? ""} />
    <footer class="buttons"><button type="button" class="button danger-quiet" onClick=${() => onOpen({ kind: "forget", exchange: null })}>${t("talk.forget.all")}</button></footer>
  </div>`;
}

/** @param {{session: any}} props */
function Facts({ session }) {
  const { windows } = session;
  /** @type {[string, any][]} */
  const facts = [
    [t("session.title"), session.title === null ? html`<span class="muted">${t("sessions.untitled")}</span>` : html`<bdi>${session.title}</bdi>`],
    [t("why.id"), html`<bdi class="mono">${session.id}</bdi>`],
    [t("user"), session.user_id === null ? "–" : html`<a href=${links.user(session.user_id)}><bdi>${session.user_id}</bdi></a>`],
    [t("session.kept"), lasting(session.ttl)],
    [t("messages"), n(session.messages)],
    [t("tokens"), n(session.tokens)],
    [t("session.end"), n(session.end)],
    ...Object.keys(windows).map((name) => /** @type {[string, any]} */ ([t("session.window"), html`#${n(windows[name])}${name && html` <bdi class="tag">${name}</bdi>`}`])),
    [t("talk.begun"), time(session.created_at)],
    [t("active"), html`<${Ago} at=${session.last_active_at} />`],
  ];
  return html`<dl class="pairs">${facts.map(([name, value], at) => html`<div key=${at}><dt>${name}</dt><dd class="num">${value}</dd></div>`)}</dl>`;
}

/** @param {{session: any, etag: string | null, onChanged: () => void, edit: () => void}} props */
function System({ session, etag, onChanged, edit }) {
  const { api, confirm, toast, failed } = useApp();
  const messages = session.system_messages;
  const forget = async () => {
    const sure = await confirm({ title: t("session.system.forget.title"), body: t("session.system.forget.hint"), action: t("session.system.forget"), danger: true });
    if (!sure) return;
    const was = { value: messages, etag };
    await patched(api, `/sessions/${seg(session.id)}`, { system: null }, was, (data) => data.system_messages)
      .then((now) => (now === null ? toast(t("memory.changed"), "success") : toast(t("talk.overtaken"), "error")), failed);
    onChanged();
  };
  return html`<section><header class="section-head"><h3>${t("talk.system")}</h3>
      <button type="button" class="button" aria-label=${t("session.system.edit")} onClick=${edit}>${t("edit")}</button>
      ${messages.length > 0 && html`<button type="button" class="button danger-quiet" onClick=${forget}>${t("session.system.forget")}</button>`}</header>
    ${messages.length === 0 && html`<p class="muted">${t("session.system.none")}</p>`}
    ${messages.map((/** @type {any} */ message, /** @type {number} */ at) => html`<div class="system-words" key=${at}>
      <${Text} text=${textOf(message)} name=${`session system ${at}`} /></div>`)}</section>`;
}
