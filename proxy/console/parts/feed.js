/** A long list of the API by activity: loaded page by page, live at its head. */

import { useApp } from "../context.js";
import { useEffect, useReducer } from "../vendor/preact.js";
import { Poll } from "./poll.js";
import { active, appended, inPlace, meets, refreshed } from "./rows.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("../api.js").Api} Api */
/** @typedef {import("../api.js").Params} Params */

const PAGE = 200;
/** The largest page that the API gives. */
const MAX_PAGE = 1000;
const HEAD = 50;
const LIVE = 1500;
/** Rows that are fetched without being scrolled to, so that the scrollbar is honest. */
const AHEAD = 20_000;
/** Milliseconds between pages that nobody waits for. */
const PAUSE = 40;
/** Pixels: who has scrolled further reads further down. */
const TOP = 60;
/** Milliseconds after which a list that was left is loaded anew. */
const STALE = 60_000;
/** Seconds by which the clocks of the reader and of the proxy may differ. */
const SKEW = 120;

/** @template {Row} R */
export class Feed {
  /** @type {R[]} */ rows = [];
  /** @type {any} */ error = null;
  complete = false;
  loaded = false;
  /** Active since the list was opened, and not looked at. @type {Set<string>} */ fresh = new Set();
  /** Rows that wait above while somebody reads. */ waiting = 0;
  /** Where it was scrolled to. */ offset = 0;
  onChange = () => {};

  /** @type {R[] | null} */ #wanted = null;
  #held = false;
  /** @type {string | null} */ #after = null;
  /** Unix seconds: what was active before is nothing new. */ #opened = 0;
  #seen = 0;
  #left = 0;
  #changes = 0;
  #run = 0;
  #loading = false;
  /** @type {Poll | null} */ #poll = null;

  /** @param {Api} api @param {string} path @param {Params} params @param {(object: any) => R} rowOf */
  constructor(api, path, params, rowOf) {
    this.api = api;
    this.path = path;
    this.params = params;
    this.rowOf = rowOf;
  }

  start() {
    if (this.#left && Date.now() - this.#left > STALE) this.#forget();
    this.#poll = new Poll(LIVE, this.#head, this.#failed);
    if (this.loaded) void this.#more();
  }

  stop() {
    this.#run += 1;
    this.#loading = false;
    this.#left = Date.now();
    this.#poll?.stop();
    this.#poll = null; // what is loaded anew now waits until it is shown
  }

  /** From the beginning, for when something was changed here. */
  reload = () => {
    this.#forget();
    this.#poll?.now();
  };

  /** Somebody has scrolled there; where they read further down nothing may move. @param {number} offset */
  scrolled(offset) {
    this.offset = offset;
    this.#held = offset > TOP;
    if (!this.#held) this.apply();
  }

  /** Let in what waits above. */
  apply = () => {
    if (this.#wanted === null) return;
    this.rows = this.#wanted;
    this.#wanted = null;
    this.waiting = 0;
    this.onChange();
  };

  /** Rows up to this one are looked at. @param {number} last */
  seen(last) {
    this.#seen = last;
    void this.#more();
  }

  #forget() {
    this.#run += 1;
    this.#loading = false;
    this.loaded = this.complete = false;
    this.#after = null;
    this.#wanted = null;
    this.waiting = 0;
  }

  /** @param {AbortSignal} signal @param {string | null} etag */
  #head = async (signal, etag) => {
    if (this.#changes !== this.api.changes) this.#forget();
    this.#changes = this.api.changes;
    const first = !this.loaded;
    const params = { ...this.params, limit: first ? this.#reach() : HEAD };
    const answer = await this.api.get(this.path, params, { signal, etag: first ? null : etag });
    const recovered = this.error !== null;
    this.error = null;
    if (answer.status === 304) {
      if (recovered) this.onChange();
      return answer.etag;
    }
    const page = answer.data.data.map(this.rowOf);
    if (first) this.#begin(page, answer.data);
    else if (!(await this.#catchUp(page, answer.data, signal))) return this.reload(), null;
    this.onChange();
    return first ? null : answer.etag;
  };

  /**
   * More may have changed than the head holds: on from there to what is known.
   * @param {R[]} newest @param {{has_more: boolean, next: string | null}} list @param {AbortSignal} signal
   * @returns {Promise<boolean>} false: so much that it is better loaded anew
   */
  async #catchUp(newest, list, signal) {
    while (list.has_more && !meets(this.#wanted ?? this.rows, newest)) {
      if (newest.length >= MAX_PAGE) return false;
      const { data } = await this.api.get(this.path, { ...this.params, limit: PAGE, after: list.next }, { signal });
      newest = appended(newest, data.data.map(this.rowOf));
      list = data;
    }
    this.#renew(newest, list.has_more);
    return true;
  }

  /** So far down that whoever comes back is where they were. */
  #reach = () => Math.min(MAX_PAGE, this.#seen + PAGE);

  /** @param {R[]} page @param {{has_more: boolean, next: string | null}} list */
  #begin(page, list) {
    this.rows = page;
    this.loaded = true;
    this.#opened = Date.now() / 1000 - SKEW;
    this.#to(list);
    void this.#more();
  }

  /** @param {R[]} newest @param {boolean} more */
  #renew(newest, more) {
    const rows = this.#wanted ?? this.rows;
    for (const id of active(rows, newest, this.#opened)) this.fresh.add(id);
    const wanted = refreshed(rows, newest, more);
    if (!this.#held) {
      this.rows = wanted;
      return;
    }
    const before = this.rows;
    this.rows = inPlace(before, wanted);
    const moved = wanted.findIndex((row) => row.id === before[0]?.id);
    this.#wanted = wanted;
    this.waiting = Math.max(0, moved);
  }

  /** @param {{has_more: boolean, next: string | null}} list */
  #to(list) {
    this.#after = list.next;
    this.complete = !list.has_more;
  }

  /** Fetch pages until enough is there. */
  async #more() {
    const run = this.#run;
    if (this.#loading || !this.loaded) return;
    this.#loading = true;
    try {
      while (run === this.#run && !this.complete && this.#wants()) {
        const { data } = await this.api.get(this.path, { ...this.params, limit: PAGE, after: this.#after });
        if (run !== this.#run) return;
        const page = data.data.map(this.rowOf);
        this.rows = appended(this.rows, page);
        if (this.#wanted) this.#wanted = appended(this.#wanted, page);
        this.#to(data);
        this.onChange();
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
    } catch (error) {
      if (run === this.#run) this.#failed(error);
    } finally {
      if (run === this.#run) this.#loading = false;
    }
  }

  #wants = () => this.rows.length < AHEAD || this.#seen > this.rows.length - 2 * PAGE;

  /** @param {any} error */
  #failed = (error) => {
    this.error = error;
    this.onChange();
  };
}

/**
 * A feed that is live while it is shown, and there again when one comes back.
 * @template {Row} R
 * @param {string} path @param {Params} params @param {(object: any) => R} rowOf
 * @returns {Feed<R>}
 */
export function useFeed(path, params, rowOf) {
  const { api, kept } = useApp();
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const name = `feed ${path} ${JSON.stringify(params)}`;
  if (!kept.has(name)) keep(kept, name, new Feed(api, path, params, rowOf));
  const feed = /** @type {Feed<R>} */ (kept.get(name));
  useEffect(() => {
    feed.onChange = () => redraw(null);
    feed.start();
    redraw(null);
    return () => {
      feed.stop();
      feed.onChange = () => {};
    };
  }, [feed]);
  return feed;
}

/** The last few lists, not each that was ever searched for. */
const KEPT = 6;

/** @param {Map<string, any>} kept @param {string} name @param {any} feed */
function keep(kept, name, feed) {
  const feeds = [...kept.keys()].filter((each) => each.startsWith("feed "));
  for (const old of feeds.slice(0, Math.max(0, feeds.length - KEPT + 1))) kept.delete(old);
  kept.set(name, feed);
}
