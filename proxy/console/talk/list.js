/** The conversation itself: a long list that opens at its end and stays there while a chat runs. */

import { t } from "../i18n/index.js";
import { Failed, Loading, Stale } from "../parts/empty.js";
import { VirtualList } from "../parts/virtual.js";
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { CutLine, SummaryCard, SystemCard } from "./cards.js";
import { height, itemsOf } from "./items.js";
import { Legend } from "./legend.js";
import { Message, Switch } from "./message.js";

/** @typedef {import("./state.js").Talk} Talk */
/** @typedef {import("./items.js").Item} Item */

/** Items from either end at which more is loaded. */
const EDGE = 12;

/** @param {{talk: Talk, doing: import("./message.js").Doing, flash: string | null, jump: import("./jumping.js").Jump | null, jumped: () => void, summaryActions: import("../parts/menu.js").Action[]}} props `jump`: the message to go to */
export function List({ talk, doing, flash, jump, jumped, summaryActions }) {
  const { log, session, view, marks } = talk;
  const items = useItems(talk);
  const handle = useRef(/** @type {import("../parts/virtual.js").Handle | null} */ (null));
  const [atEnd, setAtEnd] = useState(true);
  const fresh = useFresh(view, atEnd && log.bottom);
  useEffect(() => {
    const at = jump === null ? -1 : items.findIndex((item) => holds(item, jump.message));
    if (at < 0) return;
    handle.current?.scrollTo(at, jump?.near ? "auto" : "center");
    jumped();
  }, [jump, items]);
  const chosen = talk.exchange?.id ?? null;
  const render = useCallback((/** @type {number} */ index) => {
    const item = items[index];
    if (item?.kind === "message") {
      return html`<${Message} item=${item} marks=${marks} chosen=${chosen} flash=${flash !== null && holds(item, flash)} doing=${doing} />`;
    }
    return other(item, talk, doing, summaryActions);
  }, [items, marks, chosen, flash, session]);
  const keyOf = useCallback((/** @type {number} */ index) => items[index]?.key ?? index, [items]);
  if (!log.loaded) return log.error ? html`<${Failed} error=${log.error} retry=${talk.changed} />` : html`<${Loading} />`;
  const toEnd = () => log.toEnd().then(() => requestAnimationFrame(() => handle.current?.toEnd()));
  return html`<div class="talk-list">
    <${Stale} error=${log.error ?? talk.error} />
    <${Legend} marks=${marks} />
    <${VirtualList} class="conversation" label=${t("talk.messages")} count=${items.length} keys stick follow=${log.bottom}
      overscan=${6} estimate=${(/** @type {number} */ index) => height(items[index])} render=${render} keyOf=${keyOf}
      handle=${(/** @type {import("../parts/virtual.js").Handle} */ given) => (handle.current = given)}
      onRange=${(/** @type {number} */ first, /** @type {number} */ last) => {
        if (first < EDGE && !log.top) void log.older();
        if (last >= items.length - EDGE && !log.bottom) void log.newer();
      }}
      onScroll=${setAtEnd} />
    <div class="pill-place low" aria-live="polite">
      ${(!atEnd || !log.bottom) && html`<button type="button" class="pill" onClick=${toEnd}>↓ ${fresh > 0 ? t("talk.fresh", { n: fresh }) : t("talk.end")}</button>`}
    </div>
  </div>`;
}

/** @param {Item} item @param {string} message its id */
const holds = (item, message) =>
  item.kind === "message" && (item.key === message || item.results.some((one) => one.id === message));

/** @param {Talk} talk @returns {Item[]} */
function useItems({ log, session, view, marks }) {
  const covers = session?.summary?.covers_until ?? null;
  const system = (session?.system_messages ?? []).length > 0;
  return useMemo(() => itemsOf(view, marks, { top: log.top, covers, system }), [view, marks, log.top, covers, system]);
}

/** How many messages came in below since one left the end. @param {import("./branches.js").View} view @param {boolean} atEnd */
function useFresh(view, atEnd) {
  const last = view.entries.at(-1)?.stored.seq ?? 0;
  const seen = useRef(last);
  if (atEnd) seen.current = last;
  return view.entries.filter(({ stored }) => stored.seq > seen.current).length;
}

/** @param {Item | undefined} item @param {Talk} talk @param {import("./message.js").Doing} doing @param {import("../parts/menu.js").Action[]} summaryActions */
function other(item, { session, marks }, doing, summaryActions) {
  if (item?.kind === "system") return html`<${SystemCard} messages=${session.system_messages} seen=${marks.system} />`;
  if (item?.kind === "summary") return html`<${SummaryCard} summary=${session.summary} seen=${marks.summary} actions=${summaryActions} />`;
  if (item?.kind === "cut") return html`<${CutLine} reason=${item.reason} />`;
  if (item?.kind === "end") {
    return html`<div class="talk-item taken-back"><span class="muted small">${t("talk.taken")}</span><${Switch} fork=${item.fork} doing=${doing} /></div>`;
  }
  return html`<div class="talk-item older"><${Loading} label=${t("talk.older")} /></div>`;
}
