/** What the model saw in one exchange, message by message.  Pure. */

/** @typedef {import("./content.js").Message} Message */
/**
 * "window": memory put it in; "own": the client sent it with this exchange; "answer": what came
 * back; "covered": only the summary of it was seen; "out": it was left out; "sent": not from memory,
 * the client may have sent it again itself; "later": it came afterwards; "": not known.
 * @typedef {"window" | "own" | "answer" | "covered" | "out" | "sent" | "later" | ""} Mark
 */
/** @typedef {{kind: string, id: string | null, session_id: string | null, tokens: number, score?: number, version?: number}} Piece */
/** @typedef {{id: string, model: string | null, profile: string, status: number, incomplete: boolean, finish_reason: string | null, usage: any, memory: any, message_ids: string[], created_at: number}} Exchange */

export class Sight {
  /** @type {Set<string>} */ #own;
  /** @type {Set<string>} */ #shown;
  /** @type {Map<string, any>} recalled passages by their message */ recalled = new Map();
  /** @type {Piece | null} */ summary;
  #first = Infinity;
  #newest = -Infinity;
  #begin = Infinity;
  #end = -Infinity;
  #known;

  /**
   * @param {Exchange} exchange
   * @param {string} session
   * @param {Message[]} messages those that are loaded
   * @param {(version: number) => number} covers until which seq a version of the summary stands for all
   */
  constructor(exchange, session, messages, covers) {
    const did = exchange.memory;
    /** @type {Piece[]} */
    const shown = did.shown ?? [];
    this.exchange = exchange;
    this.#own = new Set(exchange.message_ids);
    this.#shown = new Set(shown.flatMap((each) => (each.kind === "message" && each.id ? [each.id] : [])));
    this.summary = shown.find((each) => each.kind === "summary") ?? null;
    this.covers = this.summary?.version ? covers(this.summary.version) : 0;
    this.#known = did.breakdown != null || did.status === "applied" || did.status === "empty";
    for (const each of did.recalled ?? []) {
      if (each.message_id && each.session_id === session) this.recalled.set(each.message_id, each);
    }
    for (const each of messages) this.#place(each);
  }

  /** @param {Message} message */
  #place({ id, seq }) {
    if (this.#own.has(id)) {
      this.#begin = Math.min(this.#begin, seq);
      this.#end = Math.max(this.#end, seq);
    }
    if (this.#shown.has(id)) {
      this.#first = Math.min(this.#first, seq);
      this.#newest = Math.max(this.#newest, seq);
    }
  }

  /** @param {Message} message @returns {Mark} */
  mark(message) {
    const { id, seq } = message;
    if (this.#own.has(id)) return message.origin === "response" ? "answer" : "own";
    if (this.#shown.has(id)) return "window";
    if (this.#end < 0 || !this.#known) return "";
    if (seq > this.#begin) return "later";
    if (message.state !== "active") return "";
    const { evicted, shown_cut: cut } = this.exchange.memory;
    if (cut > 0 && seq > this.#newest) return "window";
    if (seq <= this.covers) return "covered";
    return evicted.messages > 0 && seq < this.#first ? "out" : "sent";
  }
}

/** Is this mark of something that the model did not read word by word? @param {Mark} mark */
export const isDim = (mark) => mark === "out" || mark === "covered";

/** @typedef {{name: "system" | "summary" | "messages" | "known" | "recalled" | "own", tokens: number}} Share */

/** What the prompt's tokens were spent on; the client's own only where the upstream counted. @param {Exchange} exchange @returns {Share[]} */
export function sharesOf({ memory, usage }) {
  const names = /** @type {const} */ (["system", "summary", "messages", "known", "recalled"]);
  const spent = memory.breakdown ?? { messages: memory.tokens };
  const own = Math.max(0, (usage?.prompt_tokens ?? 0) - memory.tokens);
  return [...names.map((name) => ({ name, tokens: Math.max(0, spent[name] ?? 0) })), { name: /** @type {const} */ ("own"), tokens: own }].filter((each) => each.tokens > 0);
}
