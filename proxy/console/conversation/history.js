/** The messages of a session: one stretch of them, loaded page by page, live at its end. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { useEffect, useReducer, useState } from "../vendor/preact.js";
import { merged, renewed, unknownOf } from "./stretch.js";

/** @typedef {import("./content.js").Message} Message */
/** @typedef {import("../api.js").Api} Api */

const PAGE = 200;
const LARGE = 1000;
const EXCHANGES = 50;

export class History {
  /** By seq, without holes between the first and the last that are loaded. @type {Message[]} */ messages = [];
  /** What exchanges followed, as far as it was asked. @type {Map<string, string | null>} */ follows = new Map();
  /** @type {any} */ error = null;
  loaded = false;
  /** Is there nothing before it, nothing behind it? */ begin = false;
  end = false;
  onChange = () => {};

  /** Everything behind this seq is loaded. */ #after = 0;
  /** …up to this one. */ #until = 0;
  /** @type {any} the session as it was when the messages were right */ #session = null;
  /** @type {Promise<void>} one thing at a time */ #busy = Promise.resolve();
  /** @type {Set<string>} */ #waiting = new Set();
  #stopped = false;

  /** @param {Api} api @param {string} session */
  constructor(api, session) {
    this.api = api;
    this.path = `/sessions/${seg(session)}`;
  }

  stop() {
    this.#stopped = true;
  }

  /** The newest ones; `session` is the object. @param {any} session */
  open(session) {
    return this.#do("open", () => this.#stretch(Math.max(0, session.end - PAGE), session));
  }

  /** Those around a message. @param {string} id @param {any} session */
  around(id, session) {
    return this.#do(`around ${id}`, async () => {
      if (this.messages.some((each) => each.id === id)) return;
      const { data } = await this.api.get(`${this.path}/messages/${seg(id)}`);
      await this.#stretch(Math.max(0, data.seq - PAGE / 2), session);
    });
  }

  /** Those from a seq on. @param {number} seq @param {any} session */
  from(seq, session) {
    return this.#do("from", async () => {
      if (seq > this.#after && seq <= this.#until) return;
      await this.#stretch(Math.max(0, Math.min(seq, session.end) - PAGE / 2), session);
    });
  }

  /** A page before, if there is one. */
  earlier(size = PAGE) {
    if (this.begin || !this.loaded) return Promise.resolve();
    return this.#do("earlier", async () => {
      const after = Math.max(0, this.#after - size);
      const page = (await this.#page(after, size)).data.filter((/** @type {Message} */ each) => each.seq <= this.#after);
      this.messages = [...page, ...this.messages];
      this.#after = after;
      this.begin = after === 0;
      await this.#branches();
    });
  }

  /** A page behind, if there is one. */
  later() {
    if (this.end || !this.loaded) return Promise.resolve();
    return this.#do("later", async () => {
      const page = await this.#page(this.#until, PAGE);
      this.messages = merged(this.messages, page.data);
      this.#to(page, this.#until);
      await this.#branches();
    });
  }

  /** The session is another than before: what is new in it, and what has changed. @param {any} session */
  heed(session) {
    if (!this.loaded || session === this.#session) return Promise.resolve();
    return this.#do("heed", async () => {
      if (!this.end && session.end > this.#until) {
        this.#session = session; // somewhere else: what is new comes when one goes there
        return;
      }
      const before = this.messages;
      const page = session.end > this.#until ? await this.#tail() : [];
      this.messages = merged(before, page);
      this.#until = Math.max(this.#until, session.end);
      if (!renewed(this.#session, session, page)) await this.#again();
      this.#session = session;
      await this.#branches();
    });
  }

  /** All that is loaded, asked for again. */
  refresh() {
    return this.#do("refresh", async () => {
      await this.#again();
      await this.#branches();
    });
  }

  /** All that came behind. @returns {Promise<Message[]>} */
  async #tail() {
    const all = [];
    let until = this.#until;
    for (;;) {
      const { data, has_more: more } = await this.#page(until, LARGE);
      all.push(...data);
      if (!more || data.length === 0) return all;
      until = data.at(-1).seq;
    }
  }

  async #again() {
    /** @type {Message[]} */
    const all = [];
    for (let after = this.#after; after < this.#until; ) {
      const { data, has_more: more } = await this.#page(after, LARGE);
      all.push(...data);
      if (!more || data.length === 0) break;
      after = data.at(-1).seq;
    }
    this.messages = this.end ? all : all.filter((each) => each.seq <= this.#until);
    if (this.end) this.#until = Math.max(this.#until, all.at(-1)?.seq ?? 0);
  }

  /** @param {number} after @param {any} session */
  async #stretch(after, session) {
    const page = await this.#page(after, PAGE);
    this.messages = page.data;
    this.#after = after;
    this.begin = after === 0;
    this.#to(page, after);
    if (this.end) this.#until = Math.max(this.#until, session.end);
    this.#session = session;
    this.loaded = true;
    await this.#branches();
  }

  /** @param {{data: Message[], has_more: boolean}} page @param {number} until so far */
  #to(page, until) {
    this.#until = page.data.at(-1)?.seq ?? until;
    this.end = !page.has_more;
  }

  /** @param {number} after @param {number} limit */
  async #page(after, limit) {
    const { data } = await this.api.get(`${this.path}/messages`, { state: "active,superseded", after, limit });
    return data;
  }

  /** Learn what exchanges followed that are branches; one that cannot be known is taken at its place. */
  async #branches() {
    const unknown = unknownOf(this.messages, this.follows);
    let after = unknown.newest + 1;
    while (unknown.ids.size > 0) {
      const { data } = await this.api.get(`${this.path}/exchanges`, { limit: EXCHANGES, after });
      for (const each of data.data) {
        this.follows.set(each.id, each.follows ?? null);
        unknown.ids.delete(each.id);
      }
      if (!data.has_more || Number(data.next) < unknown.oldest) break;
      after = data.next;
    }
    for (const id of unknown.ids) this.follows.set(id, null);
  }

  /** One after the other, and none twice at once. @param {string} name @param {() => Promise<void>} act @returns {Promise<void>} */
  #do(name, act) {
    if (this.#waiting.has(name)) return this.#busy;
    this.#waiting.add(name);
    this.#busy = this.#busy.then(async () => {
      this.#waiting.delete(name);
      if (this.#stopped) return;
      try {
        await act();
        this.error = null;
      } catch (error) {
        this.error = error;
      }
      if (!this.#stopped) this.onChange();
    });
    return this.#busy;
  }
}

/** The history of a session, for as long as it is shown. @param {string} session @returns {[History, number]} and its version */
export function useHistory(session) {
  const { api } = useApp();
  const [version, changed] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const [history] = useState(() => new History(api, session));
  useEffect(() => {
    history.onChange = () => changed(null);
    return () => history.stop();
  }, []);
  return [history, version];
}
