/** All sessions, newest activity first. */

import { useApp } from "../context.js";
import { n, t } from "../i18n/index.js";
import { Empty, Failed, Loading, Stale } from "../parts/empty.js";
import { useFeed } from "../parts/feed.js";
import { Menu } from "../parts/menu.js";
import { SearchBox } from "../parts/search.js";
import { useTitle } from "../parts/title.js";
import { VirtualList } from "../parts/virtual.js";
import { Exporting } from "../portable/exporting.js";
import { Dropping, Importing } from "../portable/importing.js";
import { html, useCallback, useState } from "../vendor/preact.js";
import { First } from "./first.js";
import { Columns, Row, rowOf } from "./row.js";
import { UserFilter } from "./user_filter.js";

/** @typedef {import("./row.js").SessionRow} SessionRow */
/** @typedef {import("../parts/feed.js").Feed<SessionRow>} SessionFeed */

export function Sessions() {
  const { kept } = useApp();
  const [query, setQuery] = useKept(kept, "sessions query", "");
  const [user, setUser] = useKept(kept, "sessions user", "");
  const [importing, setImporting] = useState(/** @type {File | true | null} */ (null));
  const [exporting, setExporting] = useState(false);
  const feed = useFeed("/sessions", { query, user, preview: true }, rowOf);
  useTitle(t("nav.sessions"));
  return html`<${Dropping} onFile=${setImporting}>
    <div class="screen sessions">
      <div>
        <header class="head">
          <h1>${t("nav.sessions")}</h1>
          <${Count} feed=${feed} />
          <div class="head-end filters">
            <${SearchBox} value=${query} onSearch=${setQuery} label=${t("sessions.search")} />
            <${UserFilter} value=${user} onChange=${setUser} />
            <button type="button" class="button" onClick=${() => setImporting(true)}>${t("import")}</button>
            <${Menu} label=${t("more")} actions=${[
              { label: t("export.all"), onClick: () => setExporting(true) },
              { label: t("reload"), onClick: feed.reload },
            ]} />
          </div>
        </header>
        ${feed.rows.length > 0 && html`<${Columns} />`}
      </div>
      <${List} feed=${feed} key=${`${query}\n${user}`} filtered=${query !== "" || user !== ""} />
    </div>
    ${importing && html`<${Importing} file=${importing === true ? null : importing}
      onClose=${() => setImporting(null)} onDone=${feed.reload} />`}
    ${exporting && html`<${Exporting} path="/export" name="memory" title=${t("export.all")}
      onClose=${() => setExporting(false)} />`}
  </${Dropping}>`;
}

/** @param {{feed: SessionFeed}} props */
const Count = ({ feed }) => {
  if (!feed.loaded) return null;
  const count = feed.rows.length;
  return html`<span class="tag num" role="status">${
    feed.complete ? n(count) : t("sessions.counting", { count })
  }</span>`;
};

/** @param {{feed: SessionFeed, filtered: boolean}} props */
function List({ feed, filtered }) {
  const { rows } = feed;
  const render = useCallback((/** @type {number} */ index) => {
    const row = feed.rows[index];
    return html`<${Row} row=${row} fresh=${feed.fresh.has(row?.id ?? "")}
      onOpen=${() => feed.fresh.delete(row?.id ?? "")} />`;
  }, [feed]);
  const keyOf = useCallback((/** @type {number} */ index) => rows[index]?.id ?? index, [rows]);
  if (rows.length === 0) return html`<${Nothing} feed=${feed} filtered=${filtered} />`;
  return html`<div class="list-box">
    <${Stale} error=${feed.error} />
    <${Waiting} feed=${feed} />
    <${VirtualList} class="list" keys label=${t("nav.sessions")} count=${rows.length}
      estimate=${() => 57} render=${render} keyOf=${keyOf} initialOffset=${feed.offset}
      onRange=${(/** @type {number} */ _, /** @type {number} */ last) => feed.seen(last)}
      onScroll=${(/** @type {boolean} */ _, /** @type {number} */ offset) => feed.scrolled(offset)} />
  </div>`;
}

/** @param {{feed: SessionFeed}} props */
const Waiting = ({ feed }) => {
  const up = () => {
    document.querySelector(".sessions .virtual")?.scrollTo({ top: 0 });
    feed.apply();
  };
  return html`<div class="pill-place" aria-live="polite">
    ${feed.waiting > 0 && html`<button type="button" class="pill" onClick=${up}>
      ↑ ${t("sessions.waiting", { n: feed.waiting })}</button>`}
  </div>`;
};

/** @param {{feed: SessionFeed, filtered: boolean}} props */
function Nothing({ feed, filtered }) {
  if (feed.error) return html`<${Failed} error=${feed.error} retry=${feed.reload} />`;
  if (!feed.loaded || !feed.complete) {
    return html`<${Loading} label=${filtered ? t("searching") : undefined} />`;
  }
  if (filtered) return html`<${Empty} title=${t("sessions.none")} mark="⌕"><p class="muted">${t("sessions.none.hint")}</p></${Empty}>`;
  return html`<${First} />`;
}

/** State that is there again when one comes back. @param {Map<string, any>} kept @param {string} name @param {string} initial @returns {[string, (value: string) => void]} */
function useKept(kept, name, initial) {
  const [value, setValue] = useState(() => /** @type {string} */ (kept.get(name) ?? initial));
  const change = (/** @type {string} */ wanted) => {
    kept.set(name, wanted);
    setValue(wanted);
  };
  return [value, change];
}
