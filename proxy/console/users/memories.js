/** What is remembered of a person, listed by kind and state, or searched. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { n, t } from "../i18n/index.js";
import { Button } from "../parts/button.js";
import { Empty, Failed, Loading, Stale } from "../parts/empty.js";
import { useHolding } from "../parts/holding.js";
import { usePoll } from "../parts/poll.js";
import { SearchBox } from "../parts/search.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Memory } from "./memory.js";

export const KINDS = ["fact", "instruction", "preference", "episode"];
const STATES = ["current", "superseded", "quarantined", "expired"];
const ANY = STATES.join(",");
/** What a search finds, and no list has. */
const FOUND_ONLY = "passage";
const PAGE = 100;
const FOUND = 50;
const EVERY = 4000;

/** @typedef {{kind: string, state: string}} Wanted */

/** A fact that is typed: a new one, without an `id`. @typedef {{id: string | null, done: () => void}} Typed */

/** @param {{user: string, counts: Record<string, number>, onType: (fact: Typed) => void}} props */
export function Memories({ user, counts, onType }) {
  const [query, setQuery] = useState("");
  const [wanted, setWanted] = useState(/** @type {Wanted} */ ({ kind: "", state: "current" }));
  const [pages, setPages] = useState(/** @type {string[]} */ ([]));
  const path = `/users/${seg(user)}/memories`;
  const asked = query === "" ? path : null;
  const listed = wanted.kind === FOUND_ONLY ? "" : wanted.kind;
  const params = { kind: listed, state: wanted.state, limit: PAGE, after: pages.at(-1) };
  const list = usePoll(asked, params, EVERY);
  const found = useSearch(`${path}/search`, query, wanted);
  const choose = (/** @type {Partial<Wanted>} */ more) => {
    setWanted({ ...wanted, ...more });
    setPages([]);
  };
  const refresh = () => (query ? found.refresh() : list.refresh());
  const edit = (/** @type {{id: string | null}} */ { id }) => onType({ id, done: refresh });
  const shown = query ? found : { ...list, data: list.data?.data ?? null };
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useHolding(box, ".memory", () => box.current);
  return html`<div class="memories" ref=${box} tabindex="-1">
    <div class="bar">
      <${SearchBox} value=${query} onSearch=${setQuery} label=${t("memories.search")} />
      <${Choices} wanted=${query ? wanted : { ...wanted, kind: listed }} choose=${choose} counts=${query || wanted.state !== ANY ? {} : counts} searching=${query !== ""} />
      <button type="button" class="button" onClick=${() => edit({ id: null })}>${t("memories.add")}</button>
    </div>
    ${shown.data !== null && html`<${Stale} error=${shown.error} />`}
    <${Shown} shown=${shown} query=${query} state=${wanted.state} user=${user} edit=${edit} changed=${refresh} />
    ${query === "" && html`<${Pager} pages=${pages} next=${list.data?.next ?? null} go=${setPages} />`}
  </div>`;
}

/** `counts`: of every state. @param {{wanted: Wanted, choose: (more: Partial<Wanted>) => void, counts: Record<string, number>, searching: boolean}} props */
const Choices = ({ wanted, choose, counts, searching }) => html`<div class="chips" role="group" aria-label=${t("memories.kind")}>
    ${["", ...KINDS, ...(searching ? [FOUND_ONLY] : [])].map((kind) => html`<button type="button" class="chip" key=${kind} aria-pressed=${wanted.kind === kind}
      onClick=${() => choose({ kind })}>${kind ? t(`kind.${kind}`) : t("memories.all")}${kind && counts[kind] ? html` <span class="num muted">${n(counts[kind])}</span>` : ""}</button>`)}
  </div>
  <label><span class="sr-only">${t("memories.state")}</span>
    <select value=${wanted.state} onChange=${(/** @type {any} */ event) => choose({ state: event.target.value })}>
      ${STATES.map((state) => html`<option key=${state} value=${state}>${t(`state.${state}`)}</option>`)}
      <option value=${ANY}>${t("state.any")}</option>
    </select></label>`;

/** Why there may be none of a state. @type {Record<string, string>} */
const NONE = { expired: "memories.none.expired", quarantined: "memories.none.quarantined", superseded: "memories.none.superseded" };

/** @param {{shown: {data: any[] | null, error: any, refresh: () => void}, query: string, state: string, user: string, edit: (memory: any) => void, changed: () => void}} props */
function Shown({ shown, query, state, user, edit, changed }) {
  if (shown.data === null) {
    return shown.error ? html`<${Failed} error=${shown.error} retry=${shown.refresh} />` : html`<${Loading} />`;
  }
  if (shown.data.length === 0) {
    return html`<${Empty} title=${t(query ? "sessions.none" : "memories.none")} mark=${query ? "⌕" : "○"}>
      ${!query && html`<p class="muted">${t(NONE[state] ?? "memories.none.hint")}</p>`}</${Empty}>`;
  }
  return html`<ul class="memory-list">${shown.data.map((memory) => html`<li key=${memory.id}>
    <${Memory} memory=${memory} query=${query} user=${user} edit=${edit} changed=${changed} /></li>`)}</ul>`;
}

/** @param {{pages: string[], next: string | null, go: (pages: string[]) => void}} props */
function Pager({ pages, next, go }) {
  if (pages.length === 0 && next === null) return null;
  return html`<nav class="pager" aria-label=${t("pager")}>
    <${Button} class="button" off=${pages.length === 0} onClick=${() => go(pages.slice(0, -1))}>${t("pager.previous")}</${Button}>
    <span class="muted num">${n(pages.length + 1)}</span>
    <${Button} class="button" off=${next === null} onClick=${() => next && go([...pages, next])}>${t("pager.next")}</${Button}>
  </nav>`;
}

/** What recall finds, passages included. @param {string} path @param {string} query @param {Wanted} wanted */
function useSearch(path, query, { kind, state: states }) {
  const { api } = useApp();
  const [state, setState] = useState(/** @type {{data: any[] | null, error: any}} */ ({ data: null, error: null }));
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (query === "") return;
    const asking = new AbortController();
    setState((now) => ({ ...now, error: null }));
    const only = { states: states.split(","), ...(kind && { kinds: [kind] }) };
    api.post(path, { query, limit: FOUND, ...only }, { signal: asking.signal }).then(
      ({ data }) => setState({ data: data.data, error: null }),
      (error) => asking.signal.aborted || setState({ data: null, error }),
    );
    return () => asking.abort();
  }, [path, query, kind, states, round]);
  return { ...state, refresh: () => setRound(round + 1) };
}
