/** The exchanges of a session: what memory did for each, loaded as they are asked for. */

import { seg } from "../api.js";
import { unknown } from "./branches.js";

/** @typedef {import("../api.js").Api} Api */
/** @typedef {import("./branches.js").Stored} Stored */

const PAGE = 20;

export class Whys {
  /** By id. @type {Map<string, any>} */ known = new Map();
  /** What each followed. @type {ReadonlyMap<string, string | null>} */ follows = new Map();
  /** The newest first. @type {readonly any[]} */ list = [];
  /** Have the newest been there? */ loaded = false;
  /** Of the newest, until they are there. @type {any} */ error = null;
  onChange = () => {};
  /** @type {string | null} */ #etag = null;
  /** The ids of the newest, as they were last. @type {readonly string[]} */ #newest = [];
  #learning = false;
  /** Where the list goes on behind the last exchange of a page. @type {Map<string, string>} */ #next = new Map();

  /** @param {Api} api @param {string} session */
  constructor(api, session) {
    this.api = api;
    this.path = `/sessions/${seg(session)}/exchanges`;
  }

  /** The newest, if there are newer ones. */
  async renew() {
    try {
      await this.#renew();
      this.loaded = true;
      this.error = null;
    } catch (error) {
      this.error = error;
      throw error;
    } finally {
      this.onChange();
    }
  }

  async #renew() {
    const answer = await this.api.get(this.path, { limit: PAGE }, { etag: this.#etag });
    this.#etag = answer.etag;
    if (answer.status === 304) return;
    this.#forget(answer.data);
    this.#page(answer.data);
  }

  /** An exchange and those before it. @param {string} id @param {number | null} seq of one of its messages */
  async around(id, seq) {
    if (this.known.has(id)) return;
    if (seq !== null) this.#page(await this.#before(seq + 1));
    if (!this.known.has(id)) this.#take([(await this.api.get(`${this.path}/${seg(id)}`)).data]);
  }

  /** Find out what the exchanges of superseded messages followed. @param {readonly Stored[]} messages */
  async learn(messages) {
    if (this.#learning) return;
    this.#learning = true;
    try {
      for (let wanted; (wanted = unknown(messages, this.follows)).size > 0; ) {
        const [id, seq] = /** @type {[string, number]} */ ([...wanted].at(-1));
        this.#page(await this.#before(seq + 1));
        if (!this.follows.has(id)) this.follows = new Map([...this.follows, [id, null]]);
      }
    } finally {
      this.#learning = false;
    }
  }

  /** The exchanges before one, where that is not known yet. @param {string} id */
  async more(id) {
    const next = this.#next.get(id);
    if (next === undefined) return;
    this.#next.delete(id);
    this.#page(await this.#before(next));
  }

  /** What should be among the newest and is not has been deleted. @param {any} page of them */
  #forget({ data, next }) {
    const there = new Set(data.map((/** @type {{id: string}} */ one) => one.id));
    const before = next === null ? [...this.known.keys()] : this.#newest.slice(0, this.#newest.findLastIndex((id) => there.has(id)) + 1);
    for (const id of before) if (!there.has(id)) this.known.delete(id);
    this.#newest = [...there];
  }

  /** @param {any} page of the list, the newest first */
  #page({ data, next }) {
    const last = data.at(-1);
    if (last && next !== null) this.#next.set(last.id, next);
    this.#take(data);
  }

  /** @param {number | string} seq */
  #before = async (seq) => (await this.api.get(this.path, { limit: PAGE, after: seq })).data;

  /** @param {any[]} exchanges */
  #take(exchanges) {
    for (const one of exchanges) this.known.set(one.id, one);
    this.follows = new Map([...this.follows, ...exchanges.map((one) => /** @type {[string, string | null]} */ ([one.id, one.follows ?? null]))]);
    this.list = [...this.known.values()].sort((one, other) => other.created_at - one.created_at);
    this.onChange();
  }
}
