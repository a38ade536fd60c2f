/** The people of whom there is memory. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { n, t } from "../i18n/index.js";
import { links } from "../links.js";
import { Empty, Failed, Loading, Stale } from "../parts/empty.js";
import { useFeed } from "../parts/feed.js";
import { SearchBox } from "../parts/search.js";
import { useShown } from "../parts/shown.js";
import { Ago } from "../parts/time.js";
import { useTitle } from "../parts/title.js";
import { VirtualList } from "../parts/virtual.js";
import { html, useCallback, useMemo, useState } from "../vendor/preact.js";

/** @typedef {{id: string, at: number, sessions: number, gone?: boolean}} UserRow */

/** @param {any} user @returns {UserRow} */
const rowOf = (user) => ({ id: user.id, at: user.last_active_at, sessions: user.sessions });

export function Users() {
  const { api, failed, navigate } = useApp();
  const shown = useShown(true);
  const [query, setQuery] = useState("");
  const feed = useFeed("/users", {}, rowOf);
  useTitle(t("nav.users"));
  const found = useMemo(() => matching(feed.rows, query), [feed.rows, query]);
  const show = (/** @type {string} */ id) => void (shown.current && navigate(links.user(id)));
  const open = (/** @type {string} */ text) => {
    const id = text.trim();
    const rows = matching(feed.rows, id);
    const only = rows.length === 1 ? (rows[0]?.id ?? id) : id;
    const other = (/** @type {any} */ error) => (error.status === 404 ? show(only) : failed(error));
    if (id === "" || id === only) return id && show(id);
    void api.get(`/users/${seg(id)}`).then(() => show(id), other); // who has no session is not listed
  };
  return html`<div class="screen users">
    <div>
      <header class="head">
        <h1>${t("nav.users")}</h1>
        ${feed.loaded && html`<span class="tag num" role="status">${
          query ? n(found.length) : feed.complete ? n(feed.rows.length) : t("sessions.counting", { count: feed.rows.length })
        }</span>`}
        <div class="head-end filters">
          <${SearchBox} value=${query} onSearch=${setQuery} onEnter=${open} ms=${80} label=${t("users.search")} />
        </div>
      </header>
      ${found.length > 0 && html`<div class="columns" aria-hidden="true"><span>${t("user")}</span>
        <span class="end">${t("sessions")}</span><span class="end">${t("active")}</span></div>`}
    </div>
    <${List} feed=${feed} found=${found} query=${query} open=${open} />
  </div>`;
}

/** @param {UserRow[]} rows @param {string} query */
function matching(rows, query) {
  const wanted = query.trim().toLowerCase();
  return wanted ? rows.filter((row) => row.id.toLowerCase().includes(wanted)) : rows;
}

/** @param {{feed: import("../parts/feed.js").Feed<UserRow>, found: UserRow[], query: string, open: (id: string) => void}} props */
function List({ feed, found, query, open }) {
  const render = useCallback((/** @type {number} */ index) => line(found[index], feed), [found]);
  const keyOf = useCallback((/** @type {number} */ index) => found[index]?.id ?? index, [found]);
  if (found.length === 0) return html`<${Nothing} feed=${feed} query=${query.trim()} open=${open} />`;
  return html`<div class="list-box">
    <${Stale} error=${feed.error} />
    <${VirtualList} class="list" keys label=${t("nav.users")} count=${found.length}
      estimate=${() => 45} render=${render} keyOf=${keyOf} initialOffset=${feed.offset}
      onRange=${(/** @type {number} */ _, /** @type {number} */ last) => feed.seen(last)}
      onScroll=${(/** @type {boolean} */ _, /** @type {number} */ offset) => feed.scrolled(offset)} />
  </div>`;
}

/** @param {UserRow | undefined} row @param {import("../parts/feed.js").Feed<UserRow>} feed */
function line(row, feed) {
  if (!row) return html`<div class="row"></div>`;
  const fresh = feed.fresh.has(row.id);
  return html`<a class=${`row ${row.gone ? "gone" : ""}`} href=${links.user(row.id)} onClick=${() => feed.fresh.delete(row.id)}>
    <span class="row-name"><span class=${`dot ${fresh ? "on" : ""}`}></span><bdi class="row-title">${row.id}</bdi></span>
    <span class="row-number num">${n(row.sessions)}<span class="sr-only"> ${t("sessions")}</span></span>
    <${Ago} at=${row.at} class="row-time" />
  </a>`;
}

/** @param {{feed: import("../parts/feed.js").Feed<UserRow>, query: string, open: (id: string) => void}} props */
function Nothing({ feed, query, open }) {
  if (feed.error) return html`<${Failed} error=${feed.error} retry=${feed.reload} />`;
  if (!feed.loaded || (!feed.complete && feed.rows.length === 0)) return html`<${Loading} />`;
  if (query) {
    return html`<${Empty} title=${t("users.none")} mark="⌕">
      <p class="muted">${t("users.none.hint")}</p>
      <button type="button" class="button" onClick=${() => open(query)}>${t("users.open")} <bdi class="mono">${query}</bdi></button>
    </${Empty}>`;
  }
  return html`<${Empty} title=${t("users.empty")}><p class="muted">${t("users.empty.hint")} <code class="mono">X-User-Id</code></p></${Empty}>`;
}
