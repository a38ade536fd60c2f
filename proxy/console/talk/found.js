/** Where words stand in a conversation.  Pure. */

import { textOf } from "./contents.js";

/** @typedef {import("./branches.js").Entry} Entry */

/** Texts in lower case, made once each. @type {WeakMap<object, string>} */
const LOWER = new WeakMap();

/** @param {any} message */
function lowered(message) {
  let text = LOWER.get(message);
  if (text === undefined) LOWER.set(message, (text = textOf(message).toLowerCase()));
  return text;
}

/** The ids of the messages that hold the words, the oldest first. @param {readonly Entry[]} entries @param {string} words @returns {string[]} */
export function found(entries, words) {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return [];
  return entries.filter(({ stored }) => lowered(stored.message).includes(wanted)).map(({ stored }) => stored.id);
}
