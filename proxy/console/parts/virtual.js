/** Long lists of which only what is seen is in the page; heights are measured, and may differ. */

import {
  Virtualizer,
  elementScroll,
  measureElement,
  observeElementOffset,
  observeElementRect,
} from "../vendor/virtual-core/index.js";
import { html, useEffect, useLayoutEffect, useReducer, useRef, useState } from "../vendor/preact.js";
import { isTyping } from "./keys.js";

/** @typedef {import("../vendor/preact.js").VNode} VNode */
/** @typedef {Virtualizer<HTMLElement, HTMLElement>} Virtual */
/** What a list can be told from outside. @typedef {{scrollTo: (index: number, align: "center" | "auto") => void, toEnd: () => void}} Handle */

/**
 * @typedef {object} Props
 * @property {number} count
 * @property {(index: number) => number} estimate pixels, until it is measured
 * @property {(index: number) => VNode} render
 * @property {(index: number) => string | number} keyOf stable; give a new function when keys moved
 * @property {(first: number, last: number) => void} [onRange] what is seen, whenever it or `keyOf` changes
 * @property {number} [initialOffset] pixels
 * @property {boolean} [stick] begins at the end, and stays there, whatever comes in or changes its size
 * @property {boolean} [follow] with `stick`: false where more is to come below, so do not go there
 * @property {string} label for screen readers
 * @property {boolean} [keys] j, k, arrows, Home and End move the focus from item to item
 * @property {number} [gap] pixels between items
 * @property {number} [overscan] items kept on either side
 * @property {string} [class]
 * @property {(handle: Handle) => void} [handle]
 * @property {(atEnd: boolean, offset: number) => void} [onScroll]
 */

/** What can be focused in an item: the first link or button, or what says so. */
const FOCUSABLE = "[data-focus], a[href], button:not(:disabled)";

/** Pixels: who is so near the end is at the end. */
const NEAR = 48;
/** Pixels: below the end of any list. */
const END = 1e9;

/** @param {Props} props */
export function VirtualList(props) {
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));
  const virtual = useVirtualizer(props, scroller);
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? -1];
  useEffect(() => {
    if (last >= 0) props.onRange?.(first, last);
  }, [first, last, props.count, props.keyOf]);
  const scrolled = useEnd(props, virtual, scroller);
  const [focus, pending] = useFocus(virtual, scroller);
  useHolding(props, scroller, focus);
  useHandle(props, virtual);
  useListKeys(props, scroller, focus, pending);
  return html`<div class=${`virtual ${props.class ?? ""}`} ref=${scroller} tabindex="-1"
    onScroll=${() => {
      scrolled();
      if (scroller.current === null) return;
      const [left, top] = position(scroller.current);
      props.onScroll?.(left < NEAR, top);
    }}>
    <div class="virtual-all" role="list" aria-label=${props.label}
      style=${{ height: `${virtual.getTotalSize()}px` }}>
      ${items.map((item) => one(props, virtual, item))}
    </div>
  </div>`;
}

/** Pixels to the end, and from the top. @param {HTMLElement} list @returns {[number, number]} */
const position = ({ scrollTop, scrollHeight, clientHeight }) => [scrollHeight - clientHeight - scrollTop, scrollTop];

/** @param {Props} props @param {Virtual} virtual @param {{key: any, index: number, start: number}} item */
const one = (props, virtual, item) => html`<div class="virtual-item" role="listitem" key=${item.key}
  data-index=${item.index} aria-setsize=${props.count} aria-posinset=${item.index + 1}
  ref=${virtual.measureElement} style=${{ transform: `translateY(${item.start}px)` }}>
  ${props.render(item.index)}
</div>`;

/** @param {Props} props @param {{current: HTMLElement | null}} scroller @returns {Virtual} */
function useVirtualizer(props, scroller) {
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const options = {
    count: props.count,
    getScrollElement: () => scroller.current,
    estimateSize: props.estimate,
    getItemKey: props.keyOf,
    overscan: props.overscan ?? 8,
    gap: props.gap ?? 0,
    initialOffset: props.initialOffset ?? (props.stick ? END : 0),
    anchorTo: /** @type {"start" | "end"} */ (props.stick ? "end" : "start"),
    scrollEndThreshold: NEAR,
    observeElementRect,
    observeElementOffset,
    measureElement,
    scrollToFn: elementScroll,
    onChange: () => redraw(null),
  };
  const [virtual] = useState(() => /** @type {Virtual} */ (/** @type {unknown} */ (new Virtualizer(/** @type {any} */ (options)))));
  virtual.setOptions(/** @type {any} */ (options));
  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}

/**
 * Who has not gone up from the end, by whatever means, is kept there; who comes near it is there again.
 * Where more is to come below there is no end yet.
 * @param {Props} props @param {Virtual} virtual @param {{current: HTMLElement | null}} scroller
 * @returns {() => void} to be called when it was scrolled
 */
function useEnd({ stick, follow }, virtual, scroller) {
  const { current: state } = useRef({ top: 0, away: false });
  const look = () => {
    const list = scroller.current;
    if (list === null || !stick) return;
    const [left, top] = position(list);
    if (follow === false) state.away = true;
    else if (left < 2) state.away = false;
    else if (top < state.top) state.away = true;
    else if (top > state.top && left < NEAR) state.away = false;
    if (left >= 2 && !state.away) virtual.scrollToEnd();
    state.top = list.scrollTop;
  };
  useLayoutEffect(look);
  return look;
}

/**
 * Focus an item, as soon as it is in the page; and which one that will be, or -1.
 * @param {Virtual} virtual @param {{current: HTMLElement | null}} scroller
 * @returns {[(index: number) => void, () => number]}
 */
function useFocus(virtual, scroller) {
  const wanted = useRef(-1);
  const settle = () => {
    if (wanted.current < 0) return;
    const item = drawn(scroller.current, wanted.current);
    const target = /** @type {HTMLElement | null | undefined} */ (item?.querySelector(FOCUSABLE));
    if (target) {
      wanted.current = -1;
      target.focus({ preventScroll: true });
      scroller.current?.scrollIntoView({ block: "nearest" }); // in a low window the list is scrolled to
    }
  };
  useLayoutEffect(settle);
  const focus = (/** @type {number} */ index) => {
    wanted.current = index;
    virtual.scrollToIndex(index, { align: "auto" });
    settle();
  };
  return [focus, () => wanted.current];
}

/**
 * What has the focus may go from the list, or change: then what is there now has it.
 * @param {Props} props @param {{current: HTMLElement | null}} scroller @param {(index: number) => void} focus
 */
function useHolding({ count, keyOf }, scroller, focus) {
  const at = focused(scroller.current); // before this is drawn
  const before = useRef(keyOf);
  useLayoutEffect(() => {
    const key = before.current(at);
    before.current = keyOf;
    if (at < 0 || count === 0 || document.activeElement !== document.body) return;
    const now = Array.from({ length: count }, (_, index) => keyOf(index)).indexOf(key);
    if (now < 0) focus(Math.min(at, count - 1));
    else if (drawn(scroller.current, now)) focus(now); // not if it was scrolled away
  }, [keyOf]);
}

/** The item, if it is in the page. @param {HTMLElement | null} scroller @param {number} index */
const drawn = (scroller, index) => scroller?.querySelector(`:scope > div > [data-index="${index}"]`);

/** @param {Props} props @param {Virtual} virtual */
function useHandle(props, virtual) {
  useLayoutEffect(() => {
    props.handle?.({
      scrollTo: (index, align) => virtual.scrollToIndex(index, { align }),
      toEnd: () => virtual.scrollToEnd(),
    });
  }, []);
}

/** @type {Record<string, number>} */
const STEPS = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** @param {Props} props @param {{current: HTMLElement | null}} scroller @param {(index: number) => void} focus @param {() => number} pending */
function useListKeys(props, scroller, focus, pending) {
  const { count, keys } = props;
  // Before it is seen: a key pressed at first sight is heard.
  useLayoutEffect(() => {
    if (!keys) return;
    const press = (/** @type {KeyboardEvent} */ event) => {
      const step = STEPS[event.key];
      const at = pending() < 0 ? focused(scroller.current) : pending();
      const entering = !props.stick && isFromSearch(event);
      if (step === undefined || count === 0 || !(entering || isPlain(event))) return;
      if (event.key.length > 1 && at < 0 && !entering) return;
      event.preventDefault();
      focus(at < 0 && step ** 2 === 1 ? 0 : Math.min(Math.max(at + step, 0), count - 1));
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [count, keys]);
}

/** Down from the search, into what it has found. @param {KeyboardEvent} event */
const isFromSearch = ({ key, target }) =>
  key === "ArrowDown" && target instanceof Element && target.matches(".search input");

/** @param {KeyboardEvent} event */
const isPlain = (event) =>
  !(event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) &&
  !isTyping(event.target) &&
  !document.querySelector("dialog[open]");

/** The item with the focus, or -1. @param {HTMLElement | null} scroller */
function focused(scroller) {
  const active = document.activeElement;
  const item = scroller?.contains(active) ? active?.closest(".virtual-item") : null;
  return item instanceof HTMLElement ? Number(item.dataset.index) : -1;
}
