/** Finding words in what is loaded, and loading more to find them in. */

import { n, t } from "../i18n/index.js";
import { Button } from "../parts/button.js";
import { SearchBox } from "../parts/search.js";
import { html, useEffect, useLayoutEffect, useMemo, useState } from "../vendor/preact.js";
import { found } from "./found.js";
import { viewOf, treeOf } from "./branches.js";

/** @param {{talk: import("./state.js").Talk, go: (message: string) => void}} props */
export function Find({ talk, go }) {
  const { log, view } = talk;
  const [words, setWords] = useState("");
  const [at, setAt] = useState(/** @type {string | null} */ (null));
  const [searching, setSearching] = useState(false);
  const hits = useMemo(() => found(view.entries, words), [view, words]);
  const index = at === null ? -1 : hits.indexOf(at);
  const to = (/** @type {string | undefined} */ hit) => {
    if (hit === undefined) return;
    setAt(hit);
    go(hit);
  };
  const step = (/** @type {number} */ by) => to(hits[index < 0 ? hits.length - 1 : (index + by + hits.length) % hits.length]);
  useLayoutEffect(() => {
    setAt(null);
    to(hits.at(-1));
  }, [words]);
  useHighlight(words, view);
  const earlier = async () => {
    setSearching(true);
    const before = hits.length;
    while (!log.top && !log.error) {
      await log.older();
      const now = found(viewOf(treeOf(log.messages, talk.whys.follows), talk.chosen).entries, words);
      if (now.length > before) {
        to(now[now.length - before - 1]);
        break;
      }
    }
    setSearching(false);
  };
  return html`<div class="find">
    <${SearchBox} value=${words} onSearch=${setWords} label=${t("talk.find")} onEnter=${(/** @type {string} */ text) => (text === words ? step(-1) : setWords(text))} />
    ${words.trim() !== "" && html`<span class="find-hits num" role="status">${hits.length > 0 && index >= 0 ? `${n(index + 1)}/${n(hits.length)}` : n(hits.length)}</span>
      <button type="button" class="icon-button" aria-label=${t("talk.find.before")} disabled=${hits.length === 0} onClick=${() => step(-1)}>↑</button>
      <button type="button" class="icon-button" aria-label=${t("talk.find.after")} disabled=${hits.length === 0} onClick=${() => step(1)}>↓</button>
      ${!log.top && html`<${Button} class="link-button" off=${searching} onClick=${() => void earlier()}>${t(searching ? "searching" : "talk.find.earlier")}</${Button}>`}`}
  </div>`;
}

const NAME = "found";
const MAX_HITS = 500;

/** Mark the words where they are in the page, as often as that changes. @param {string} words @param {unknown} view */
function useHighlight(words, view) {
  useEffect(() => {
    const wanted = words.trim().toLowerCase();
    const list = document.querySelector(".conversation");
    if (wanted === "" || !list || !("highlights" in CSS)) return;
    let frame = 0;
    const draw = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => CSS.highlights.set(NAME, new Highlight(...rangesOf(list, wanted))));
    };
    draw();
    const watch = new MutationObserver(draw);
    watch.observe(list, { childList: true, subtree: true });
    return () => {
      watch.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete(NAME);
    };
  }, [words, view]);
}

/** @param {Element} root @param {string} wanted in lower case @returns {Range[]} */
function rangesOf(root, wanted) {
  /** @type {Range[]} */
  const ranges = [];
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node && ranges.length < MAX_HITS; node = walk.nextNode()) {
    const text = (node.nodeValue ?? "").toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0 && ranges.length < MAX_HITS; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      const end = Math.min(at + wanted.length, node.nodeValue?.length ?? 0);
      range.setStart(node, Math.min(at, end));
      range.setEnd(node, end);
      ranges.push(range);
    }
  }
  return ranges;
}
