/** The rows of a conversation: messages with what is drawn between them.  Pure. */

import { answerTo, callsOf, wordsOf } from "./content.js";
import { isDim } from "./sight.js";
import { ROOT } from "./tree.js";

/** @typedef {import("./content.js").Message} Message */
/** @typedef {import("./sight.js").Mark} Mark */
/** @typedef {import("./tree.js").Fork} Fork */
/** @typedef {{kind: "message", key: string, message: Message, mark: Mark, recalled: any, fork: Fork | null, turn: boolean, day: boolean, results: Map<string, Message>}} MessageRow */
/** @typedef {{kind: "stub", key: string, fork: Fork}} StubRow */
/** @typedef {{kind: "begin" | "earlier" | "later" | "summary" | "cut", key: string}} PlainRow */
/** @typedef {MessageRow | StubRow | PlainRow} Row */

/**
 * @param {object} given
 * @param {Message[]} given.shown by seq
 * @param {{at: Map<string, Fork>, after: Map<string, Fork>}} given.forks
 * @param {import("./sight.js").Sight | null} given.sight
 * @param {number | null} given.covers the last seq that the summary stands for, null without one
 * @param {boolean} given.begin is everything before it loaded?
 * @param {boolean} given.end is everything behind it loaded?
 * @returns {Row[]}
 */
export function rowsOf({ shown, forks, sight, covers, begin, end }) {
  /** @type {Row[]} */
  const rows = [{ kind: begin ? "begin" : "earlier", key: begin ? "begin" : "earlier" }];
  const placed = results(shown);
  let [summary, cut] = [covers === null || covers < (shown[0]?.seq ?? 0), sight === null];
  if (covers !== null && summary) rows.push({ kind: "summary", key: "summary" });
  const root = forks.after.get(ROOT);
  if (root) rows.push({ kind: "stub", key: "stub", fork: root });
  /** @type {Message | null} */
  let before = null;
  let dim = false;
  for (const message of shown) {
    if (placed.attached.has(message.id)) continue;
    const mark = sight?.mark(message) ?? "";
    if (!summary && covers !== null && message.seq > covers) {
      rows.push({ kind: "summary", key: "summary" });
      summary = true;
    }
    if (!cut && dim && !isDim(mark)) {
      rows.push({ kind: "cut", key: "cut" });
      cut = true;
    }
    rows.push(rowOf(message, before, { mark, recalled: sight?.recalled.get(message.id) ?? null, fork: forks.at.get(message.id) ?? null, results: placed.of.get(message.id) ?? NONE }));
    const stub = forks.after.get(message.id);
    if (stub) rows.push({ kind: "stub", key: `stub ${message.id}`, fork: stub });
    dim = isDim(mark);
    before = message;
  }
  if (!summary && end) rows.push({ kind: "summary", key: "summary" });
  if (!end) rows.push({ kind: "later", key: "later" });
  return rows;
}

/** @type {Map<string, Message>} */
const NONE = new Map();
const DAY = 86_400;

/** @param {Message} message @param {Message | null} before @param {{mark: Mark, recalled: any, fork: Fork | null, results: Map<string, Message>}} more @returns {MessageRow} */
const rowOf = (message, before, more) => ({
  kind: "message",
  key: message.id,
  message,
  turn: message.message.role === "user" || before === null,
  day: before === null || dayOf(message) !== dayOf(before),
  ...more,
});

/** @param {Message} message */
const dayOf = ({ created_at: at }) => Math.floor((at - new Date(at * 1000).getTimezoneOffset() * 60) / DAY);

/**
 * Tool results at the call that they answer: the latest one with this id that has none.
 * @param {Message[]} shown
 */
function results(shown) {
  /** @type {Map<string, Map<string, Message>>} by the message that calls, then by call */
  const of = new Map();
  const attached = new Set();
  /** @type {Map<string, string>} the caller of each call that waits */
  const open = new Map();
  for (const message of shown) {
    for (const call of callsOf(message.message)) open.set(call.id, message.id);
    const answers = answerTo(message.message);
    const caller = answers === "" ? undefined : open.get(answers);
    if (caller === undefined) continue;
    open.delete(answers);
    of.set(caller, (of.get(caller) ?? new Map()).set(answers, message));
    attached.add(message.id);
  }
  return { of, attached };
}

/** Pixels that a row will take, about. @param {Row} row */
export function heightOf(row) {
  if (row.kind !== "message") return row.kind === "summary" ? 120 : 48;
  const length = Math.min(wordsOf(row.message.message).length, 2400);
  return 58 + 21 * Math.ceil(length / 88) + 34 * row.results.size;
}

/** The ids of messages whose text has these words, in order. @param {Row[]} rows @param {string} wanted lower case @returns {number[]} */
export function found(rows, wanted) {
  if (wanted === "") return [];
  return rows.flatMap((row, index) => (row.kind === "message" && says(row, wanted) ? [index] : []));
}

/** @param {MessageRow} row @param {string} wanted */
const says = (row, wanted) =>
  [row.message, ...row.results.values()].some((each) => wordsOf(each.message).toLowerCase().includes(wanted));
