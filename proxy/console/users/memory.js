/** One memory: what, of what kind, since when, from where; and what can be done with it. */

import { seg, unchanged } from "../api.js";
import { useApp } from "../context.js";
import { day, n, named, t } from "../i18n/index.js";
import { links } from "../links.js";
import { hitsOf } from "../parts/hits.js";
import { Menu } from "../parts/menu.js";
import { visible } from "../parts/text.js";
import { Ago } from "../parts/time.js";
import { html, useState } from "../vendor/preact.js";

const TONES = /** @type {Record<string, string>} */ ({ superseded: "", quarantined: "warn", expired: "warn" });
const FEW = 3;
const LONG = 600;

/** `query`: what was searched for. @param {{memory: any, query: string, user: string, edit: (memory: any) => void, changed: () => void}} props */
export function Memory({ memory, query, user, edit, changed }) {
  const actions = useActions({ memory, user, edit, changed });
  return html`<article class=${`memory ${memory.state ?? ""}`} id=${memory.id}>
    <${Words} text=${memory.text} query=${query} />
    <div class="memory-tags">
      <span class="tag accent">${named("one", memory.kind)}</span>
      ${memory.state && memory.state !== "current" && html`<span class=${`tag ${TONES[memory.state] ?? ""}`}>${named("state", memory.state)}</span>`}
      ${memory.about && memory.about !== "user" && html`<span class="tag">${t("memory.about")} <bdi>${memory.about}</bdi></span>`}
      ${memory.edited && html`<span class="tag">${t("memory.edited")}</span>`}
      ${memory.origin && html`<span class="tag">${named("origin", memory.origin)}</span>`}
      ${memory.expires_at && html`<span class="tag">${t("memory.expires", { date: day(memory.expires_at) })}</span>`}
      ${memory.score > 0 && html`<span class="tag num">${t("memory.score", { score: memory.score.toFixed(2) })}</span>`}
      <${Ago} class="muted small" at=${memory.updated_at ?? memory.created_at} />
    </div>
    <${Provenance} memory=${memory} />
    ${memory.superseded_by && html`<p class="small muted">${t("memory.superseded")} <span class="mono">${memory.superseded_by}</span></p>`}
    ${memory.doubted_by && html`<p class="small muted">${t("memory.doubted")} <span class="mono">${memory.doubted_by}</span></p>`}
    ${memory.later && html`<p class="small muted">${t("memory.later")} <bdi>${visible(memory.later)}</bdi></p>`}
    ${actions.length > 0 && html`<div class="memory-menu"><${Menu} label=${t("more")} actions=${actions} /></div>`}
  </article>`;
}

/** @param {{text: string, query: string}} props */
function Words({ text, query }) {
  const [all, setAll] = useState(false);
  const cut = !all && text.length > LONG;
  return html`<p class="memory-text" dir="auto"><bdi>${hitsOf(visible(cut ? text.slice(0, LONG) : text), query)
    .map(({ text: words, hit }, at) => (hit ? html`<mark key=${at}>${words}</mark>` : words))}</bdi>${cut && html`… <button
    type="button" class="link-button" onClick=${() => setAll(true)}>${t("memory.all", { n: text.length })}</button>`}</p>`;
}

/** Where it is from: the message in its session. @param {{memory: any}} props */
function Provenance({ memory }) {
  const [shown, setShown] = useState(FEW);
  const sources = (memory.sources ?? []).filter((/** @type {any} */ source) => source.session_id);
  if (sources.length === 0) return null;
  return html`<p class="small provenance"><span class="muted">${t("memory.from")}</span>
    ${sources.slice(0, shown).map((/** @type {any} */ source, /** @type {number} */ index) => html`<a key=${index}
      href=${links.session(source.session_id, { message: source.message_id })}><bdi>${source.session_id}</bdi></a>`)}
    ${sources.length > shown && html`<button type="button" class="link-button" onClick=${() => setShown(sources.length)}>+${n(sources.length - shown)}</button>`}
  </p>`;
}

/** What stays. @param {any} memory */
const forgetting = ({ kind, sources }) =>
  kind !== "fact" && kind !== "episode" ? "memory.dismiss.hint" : (sources ?? []).length > 0 ? "memory.forget.hint" : "memory.forget.added";

/** @param {{memory: any, user: string, edit: (memory: any) => void, changed: () => void}} props */
function useActions({ memory, user, edit, changed }) {
  const { api, confirm, toast, failed } = useApp();
  const path = `/users/${seg(user)}/memories/${seg(memory.id)}`;
  const fact = memory.kind === "fact";
  const done = (/** @type {string} */ words) => (toast(words, "success"), changed());
  const overtaken = () => (toast(t("conflict.title"), "error"), changed());
  const refused = (/** @type {any} */ error) => (error.status === 412 ? overtaken() : (failed(error), changed()));
  const to = async (/** @type {string} */ state) => {
    const read = await api.get(path).catch(refused);
    if (!read) return;
    if (read.data.version !== memory.version) return overtaken(); // it is not what was seen
    await api.patch(path, { state }, unchanged(read)).then(() => done(t("memory.changed")), refused);
  };
  const forget = async () => {
    const read = await api.get(path).catch(refused);
    if (!read) return;
    const body = html`<blockquote dir="auto"><bdi>${visible(read.data.text.slice(0, LONG))}</bdi></blockquote>
      <p>${t(forgetting(read.data))}</p>`;
    const sure = await confirm({ title: t("memory.forget.title"), body, action: t("memory.forget"), danger: true });
    if (sure) await api.del(path, {}, unchanged(read)).then(() => done(t("memory.forgotten")), refused);
  };
  if (memory.kind === "passage") return [];
  return [
    ...(fact ? [{ label: t("edit"), onClick: () => edit(memory) }] : []),
    ...(fact && memory.state === "current" ? [{ label: t("memory.quarantine"), onClick: () => void to("quarantined") }] : []),
    ...(fact && memory.state === "quarantined" ? [{ label: t("memory.release"), onClick: () => void to("current") }] : []),
    { label: t("memory.forget"), danger: true, onClick: () => void forget() },
  ];
}
