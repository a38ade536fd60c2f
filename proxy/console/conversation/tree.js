/** A history as the tree that it is: what was said another way, and which of it is shown.  Pure. */

/** @typedef {import("./content.js").Message} Message */
/** What an exchange followed: a message's id, "" nothing; by exchange. @typedef {Map<string, string | null>} Follows */
/** One way to go on: `head` is its first message, null for "nothing more". @typedef {{head: Message | null, active: boolean}} Option */
/** @typedef {{options: Option[], at: number}} Fork */

/** The parent of what begins a history, or follows what is not loaded. */
export const ROOT = "";

export class Tree {
  /** @type {Map<string, Message>} */ byId = new Map();
  /** @type {Map<string, string>} */ #parent = new Map();
  /** @type {Map<string, Message[]>} */ #children = new Map();

  /** @param {Message[]} messages by seq @param {Follows} follows */
  constructor(messages, follows) {
    this.messages = messages;
    for (const each of messages) this.byId.set(each.id, each);
    /** @type {Map<string, Message>} the last message of each exchange that no answer stands beside */
    const last = new Map();
    let active = ROOT;
    /** @type {Map<string, string>} what an exchange began behind */
    const began = new Map();
    for (const message of messages) {
      const exchange = message.exchange_id;
      if (!began.has(exchange)) began.set(exchange, this.#followed(message, follows.get(exchange), active));
      const parent = last.get(exchange)?.id ?? began.get(exchange) ?? ROOT;
      this.#parent.set(message.id, parent);
      const siblings = this.#children.get(parent);
      if (siblings) siblings.push(message);
      else this.#children.set(parent, [message]);
      if (message.origin !== "response") last.set(exchange, message);
      if (message.state === "active") active = message.id;
    }
  }

  /** @param {Message} message @param {string | null | undefined} follows @param {string} active the newest active one before */
  #followed(message, follows, active) {
    if (follows === "") return ROOT;
    const known = follows ? this.byId.get(follows) : undefined;
    return known && known.seq < message.seq ? known.id : active;
  }

  /** @param {string} id @returns {Message[]} */
  children(id) {
    return this.#children.get(id) ?? [];
  }

  /** @param {string} id */
  parent(id) {
    return this.#parent.get(id) ?? ROOT;
  }

  /** What is shown: the active log, or the branch of a superseded message. @param {string | null} view @returns {Message[]} */
  shown(view) {
    const target = view === null ? undefined : this.byId.get(view);
    if (!target || target.state === "active") return this.messages.filter((each) => each.state === "active");
    const way = this.#way(target);
    const fork = Math.max(0, ...[...way].map((id) => this.byId.get(id)).map((each) => (each?.state === "active" ? each.seq : 0)));
    return this.messages.filter((each) => way.has(each.id) || (each.state === "active" && each.seq < fork));
  }

  /** All that leads to a message, and how it went on from there. @param {Message} target */
  #way(target) {
    const way = new Set([target.id]);
    for (let at = this.parent(target.id); at !== ROOT && !way.has(at); at = this.parent(at)) way.add(at);
    for (let at = this.#next(target); at && !way.has(at.id); at = this.#next(at)) way.add(at.id);
    return way;
  }

  /** @param {Message} message */
  #next(message) {
    const next = this.children(message.id);
    const own = next.find((each) => each.exchange_id === message.exchange_id);
    return next.find((each) => each.state === "active") ?? own ?? next.at(-1);
  }

  /**
   * Where what is shown could have gone on another way: by the message that the switch stands at,
   * and, under the parent's id, where it goes on no more.
   * @param {Message[]} shown
   * @returns {{at: Map<string, Fork>, after: Map<string, Fork>}}
   */
  forks(shown) {
    const [at, after] = [new Map(), new Map()];
    const ids = new Set(shown.map((each) => each.id));
    for (const [parent, children] of this.#children) {
      if ((parent !== ROOT && !ids.has(parent)) || children.every((each) => each.state === "active")) continue;
      const options = optionsOf(children, parent === ROOT || this.byId.get(parent)?.state === "active");
      if (options.length < 2) continue;
      const here = children.find((each) => ids.has(each.id));
      const chosen = options.findIndex((each) => (here === undefined ? each.head === null : each.head !== null && (each.active ? here.state === "active" : each.head.id === here.id)));
      if (chosen < 0) continue;
      if (here) at.set(here.id, { options, at: chosen });
      else after.set(parent, { options, at: chosen });
    }
    return { at, after };
  }
}

/** What is active together is one way to go on. @param {Message[]} children @param {boolean} live does the active log go through their parent? @returns {Option[]} */
function optionsOf(children, live) {
  const first = children.find((each) => each.state === "active");
  const options = children
    .filter((each) => each.state !== "active" || each === first)
    .map((head) => ({ head, active: head === first }));
  return first || !live ? options : [...options, { head: null, active: true }];
}
