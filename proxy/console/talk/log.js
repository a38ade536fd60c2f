/** The messages of a conversation, in blocks by seq: loaded as they are scrolled to, kept up to date. */

import { seg } from "../api.js";

/** @typedef {import("../api.js").Api} Api */
/** @typedef {import("./branches.js").Stored} Stored */
/** @typedef {{etag: string | null, messages: readonly Stored[]}} Block */

/** Places in a block; a message at seq `s` is in block `(s - 1) / SIZE`. */
export const SIZE = 200;
const FIRST = 60;
const AT_ONCE = 4;

/** @param {number} seq */
export const blockOf = (seq) => Math.max(0, Math.floor((seq - 1) / SIZE));

export class Log {
  /** All that is loaded, by seq. @type {readonly Stored[]} */ messages = [];
  loaded = false;
  end = 0;
  /** @type {any} */ error = null;
  onChange = () => {};
  /** @type {Map<number, Block>} */ #blocks = new Map();
  /** What did not work. @type {(() => Promise<void>) | null} */ #failed = null;
  #lowest = 0;
  #highest = -1;
  /** @type {Promise<void>} */ #work = Promise.resolve();
  /** @type {Promise<void> | null} */ #more = null;

  /** @param {Api} api @param {string} session */
  constructor(api, session) {
    this.api = api;
    this.path = `/sessions/${seg(session)}`;
  }

  /** Is the beginning loaded? */
  get top() {
    return this.loaded && this.#lowest === 0;
  }

  /** Is the end loaded? */
  get bottom() {
    return this.loaded && this.#highest >= blockOf(this.end);
  }

  /** Something has changed, or the first is asked for; what was there is checked. @param {number} end of the session */
  renew = (end) => this.#after(async () => {
    const following = this.bottom;
    const grown = blockOf(end) - this.#highest;
    this.end = end;
    if (!this.loaded || (following && grown > AT_ONCE)) return this.#begin(blockOf(end));
    if (following) this.#highest = blockOf(end);
    await this.#fetch(this.#lowest, this.#highest);
  });

  older = () => this.#once(async () => {
    if (!this.loaded || this.top) return;
    await this.#fetch(this.#lowest - 1, this.#lowest - 1);
    this.#lowest -= 1;
  });

  newer = () => this.#once(async () => {
    if (!this.loaded || this.bottom) return;
    await this.#fetch(this.#highest + 1, this.#highest + 1);
    this.#highest += 1;
  });

  /** Load what is around a place; a far one instead of what is loaded. @param {number} seq */
  show = (seq) => this.#after(async () => {
    const block = blockOf(seq);
    if (block >= this.#lowest && block <= this.#highest) return;
    if (block < this.#lowest - AT_ONCE || block > this.#highest + AT_ONCE) return this.#begin(block);
    const [lowest, highest] = [Math.min(block, this.#lowest), Math.max(block, this.#highest)];
    await this.#fetch(lowest, highest);
    [this.#lowest, this.#highest] = [lowest, highest];
  });

  toEnd = () => this.show(this.end);

  /** What failed once more, and what has changed meanwhile. */
  again = async () => {
    const failed = this.#failed;
    await this.renew(this.end);
    if (failed !== null && this.error === null) await this.#after(failed);
  };

  /** One block more, however often it is asked for until it is there. @param {() => Promise<void>} work */
  #once(work) {
    this.#more ??= this.#after(work).finally(() => (this.#more = null));
    return this.#more;
  }

  /** One after the other: each sees what the one before has loaded. @param {() => Promise<void>} work */
  #after(work) {
    const done = this.#work.then(work);
    this.#work = done.then(
      () => {
        this.error = this.#failed = null;
        this.#changed();
      },
      (error) => {
        [this.error, this.#failed] = [error, work];
        this.onChange();
      },
    );
    return this.#work;
  }

  /** @param {number} block the only one, with the one before where it is short */
  async #begin(block) {
    const short = this.end - block * SIZE < FIRST;
    const lowest = block > 0 && short ? block - 1 : block;
    this.#blocks = new Map();
    await this.#fetch(lowest, block);
    [this.#lowest, this.#highest, this.loaded] = [lowest, block, true];
  }

  /** @param {number} lowest @param {number} highest */
  async #fetch(lowest, highest) {
    for (let top = highest; top >= lowest; top -= AT_ONCE) {
      const numbers = Array.from({ length: Math.min(AT_ONCE, top - lowest + 1) }, (_, index) => top - index);
      await Promise.all(numbers.map((number) => this.#read(number)));
    }
  }

  /** @param {number} number of a block */
  async #read(number) {
    const params = { state: "active,superseded", after: number * SIZE, limit: SIZE };
    const etag = this.#blocks.get(number)?.etag ?? null;
    const answer = await this.api.get(`${this.path}/messages`, params, { etag });
    if (answer.status === 304) return;
    const messages = answer.data.data.filter((/** @type {Stored} */ one) => one.seq <= (number + 1) * SIZE);
    this.#blocks.set(number, { etag: answer.etag, messages });
  }

  #changed() {
    const numbers = [...this.#blocks.keys()]
      .filter((number) => number >= this.#lowest && number <= this.#highest)
      .sort((one, other) => one - other);
    const messages = numbers.flatMap((number) => this.#blocks.get(number)?.messages ?? []);
    this.messages = messages;
    this.onChange();
  }
}
