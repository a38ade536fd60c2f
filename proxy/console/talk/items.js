/** What stands in the list, one below the other.  Pure. */

/** @typedef {import("./branches.js").Stored} Stored */
/** @typedef {import("./branches.js").Fork} Fork */
/** @typedef {import("./branches.js").View} View */
/** @typedef {import("./marks.js").Marks} Marks */
/** `turn`: a turn begins; `first`: somebody else begins to speak; `results`: of its calls. @typedef {{kind: "message", key: string, stored: Stored, fork: Fork | null, turn: boolean, first: boolean, results: Stored[]}} MessageItem */
/** @typedef {{kind: "system", key: string} | {kind: "older", key: string} | {kind: "summary", key: string} | {kind: "cut", key: string, reason: string} | {kind: "end", key: string, fork: Fork}} OtherItem */
/** @typedef {MessageItem | OtherItem} Item */

/**
 * @param {View} view @param {Marks} marks
 * @param {{top: boolean, covers: number | null, system: boolean}} about `top`: the beginning is loaded;
 *   `covers`: the seq that the summary covers until, null if there is none; `system`: is there a system message?
 * @returns {Item[]}
 */
export function itemsOf(view, marks, { top, covers, system }) {
  /** @type {Item[]} */
  const items = [];
  if (!top) items.push({ kind: "older", key: "older" });
  else if (system) items.push({ kind: "system", key: "system" });
  let placed = covers === null || (!top && (view.entries[0]?.stored.seq ?? 0) > covers + 1);
  for (const item of withResults(view)) {
    if (!placed && item.stored.seq > (covers ?? 0)) {
      placed = true;
      items.push({ kind: "summary", key: "summary" });
    }
    if (marks.cut?.at === item.stored.id) items.push({ kind: "cut", key: "cut", reason: marks.cut.reason });
    items.push(item);
  }
  if (!placed) items.push({ kind: "summary", key: "summary" });
  if (view.end) items.push({ kind: "end", key: "end", fork: view.end });
  return items;
}

/** The messages, results of calls with what called them. @param {View} view @returns {MessageItem[]} */
function withResults({ entries }) {
  /** @type {MessageItem[]} */
  const items = [];
  /** @type {Map<string, MessageItem>} */ const calling = new Map();
  let role = "";
  for (const { stored, fork } of entries) {
    const called = stored.message.role === "tool" ? calling.get(stored.message.tool_call_id) : undefined;
    if (called && !fork) {
      called.results.push(stored);
      continue;
    }
    const own = String(stored.message.role);
    /** @type {MessageItem} */
    const item = { kind: "message", key: stored.id, stored, fork, turn: own === "user", first: own !== role, results: [] };
    for (const id of callsOf(stored.message)) calling.set(id, item);
    items.push(item);
    role = own;
  }
  return items;
}

/** The ids of the calls that a message makes. @param {any} message @returns {string[]} */
export const callsOf = (message) =>
  Array.isArray(message.tool_calls) ? message.tool_calls.map((/** @type {any} */ call) => call?.id) : [];

const LINE = 20;
const ACROSS = 90;
const TALLEST = 1200;

/** Pixels that an item will take, about. @param {Item | undefined} item */
export function height(item) {
  if (item?.kind !== "message") return item?.kind === "summary" ? 150 : 48;
  const { content } = item.stored.message;
  const text = typeof content === "string" ? content : "";
  const lines = text.length > 20_000 ? 60 : text.split("\n").reduce((sum, line) => sum + 1 + line.length / ACROSS, 0);
  return Math.min(TALLEST, 44 + LINE * Math.ceil(lines) + 40 * item.results.length);
}
