/** What applications keep for a person: items under a namespace and a key. */

import { unchanged } from "../api.js";
import { useApp } from "../context.js";
import { n, t } from "../i18n/index.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { useHolding } from "../parts/holding.js";
import { Json } from "../parts/json.js";
import { JsonEditor } from "../parts/json_editor.js";
import { SearchBox } from "../parts/search.js";
import { Ago } from "../parts/time.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";

const PAGE = 100;
/** Pages that are looked through at once for one that has items of applications. */
const MAX_PAGES = 20;
/** What the proxy itself has learned lies here; the other tabs show it. */
const RESERVED = new Set(["facts", "profile", "profiles", "episodes", "learned", "card", "feedback"]);

/** @param {{user: string}} props */
export function Saved({ user }) {
  const [query, setQuery] = useState("");
  const [editing, setEditing] = useState(/** @type {any} */ (null));
  const { items, error, next, more, reload } = useItems(user, query);
  const { api, toast } = useApp();
  const save = async (/** @type {any} */ value) => {
    const { namespace, key, version } = editing;
    await api.put("/store/items", { namespace, key, value, if_version: version });
    toast(t("memory.changed"), "success");
    reload();
  };
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useHolding(box, ".memory", () => box.current);
  return html`<div class="saved" ref=${box} tabindex="-1">
    <div class="bar"><${SearchBox} value=${query} onSearch=${setQuery} label=${t("saved.search")} /></div>
    ${error && html`<${Failed} error=${error} retry=${reload} />`}
    ${items === null && !error && html`<${Loading} />`}
    ${items?.length === 0 && next === null && html`<${Empty} title=${t("saved.none")}><p class="muted">${t("saved.none.hint")}</p></${Empty}>`}
    <ul class="memory-list">${items?.map((item) => html`<li key=${JSON.stringify([item.namespace, item.key])}>
      <${Item} item=${item} edit=${() => setEditing(item)} changed=${reload} /></li>`)}</ul>
    ${next !== null && html`<button type="button" class="button" onClick=${more}>${t("pager.more")}</button>`}
    ${editing && html`<${JsonEditor} title=${t("saved.edit")} value=${editing.value} save=${save} onClose=${() => setEditing(null)} />`}
  </div>`;
}

/** @param {{item: any, edit: () => void, changed: () => void}} props */
function Item({ item, edit, changed }) {
  const { api, confirm, toast, failed } = useApp();
  const place = item.namespace.slice(2).join(" / ");
  const remove = async () => {
    const at = { namespace: item.namespace, key: item.key };
    const read = await api.get("/store/items", at).catch(failed);
    if (!read) return;
    const body = html`<p><bdi class="mono">${place} · ${item.key}</bdi></p><${Json} value=${read.data.value} />`;
    if (!(await confirm({ title: t("saved.delete"), body, action: t("delete"), danger: true }))) return;
    await api.del("/store/items", at, unchanged(read)).then(
      () => toast(t("saved.deleted"), "success"),
      (error) => (error.status === 412 ? toast(t("conflict.title"), "error") : failed(error)),
    );
    changed();
  };
  return html`<article class="memory">
    <header class="section-head"><h3><bdi class="muted">${place}</bdi> <bdi class="mono">${item.key}</bdi></h3>
      <span class="tag num">${t("profile.version", { version: n(item.version) })}</span>
      <${Ago} class="muted small" at=${item.updated_at} />
      <button type="button" class="button" onClick=${edit}>${t("edit")}</button>
      <button type="button" class="button danger-quiet" onClick=${remove}>${t("delete")}</button></header>
    <${Json} value=${item.value} open=${2} />
  </article>`;
}

/** @param {string} user @param {string} query */
function useItems(user, query) {
  const { api } = useApp();
  const [items, setItems] = useState(/** @type {any[] | null} */ (null));
  const [next, setNext] = useState(/** @type {number | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const listing = useRef({ signal: AbortSignal.abort(), busy: false });
  const ask = (/** @type {number} */ offset) => {
    const list = listing.current;
    list.busy = true;
    ownFrom(api, { namespace_prefix: ["users", user], query: query || undefined }, offset, list.signal).then(
      (found) => {
        setItems((now) => [...(offset ? (now ?? []) : []), ...found.items]);
        setNext(found.next);
        setError(null);
      },
      (problem) => list.signal.aborted || setError(problem),
    ).finally(() => (list.busy = false));
  };
  const [round, setRound] = useState(0);
  useEffect(() => {
    const asking = new AbortController();
    listing.current = { signal: asking.signal, busy: false };
    ask(0);
    return () => asking.abort();
  }, [user, query, round]);
  const more = () => next !== null && !listing.current.busy && ask(next);
  return { items, error, next, more, reload: () => setRound(round + 1) };
}

/**
 * The next page that has something of an application's: what the proxy itself has learned may fill many.
 * @param {import("../api.js").Api} api @param {object} asked @param {number} offset @param {AbortSignal} signal
 * @returns {Promise<{items: any[], next: number | null}>}
 */
async function ownFrom(api, asked, offset, signal) {
  for (let page = 1; ; page += 1) {
    const { data } = await api.post("/store/items/search", { ...asked, limit: PAGE, offset }, { signal });
    const items = data.data.filter((/** @type {any} */ item) => !RESERVED.has(item.namespace[2]));
    if (items.length > 0 || data.next === null || page === MAX_PAGES) return { items, next: data.next };
    offset = data.next;
  }
}
