// The words of a question in what it has found: parts/hits.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { hitsOf } from "../../proxy/console/parts/hits.js";

/** The text with its hits in brackets. */
const marked = (text, query) => hitsOf(text, query).map(({ text: words, hit }) => (hit ? `[${words}]` : words)).join("");

test("words that were looked for are marked, whatever their ending", () => {
  assert.equal(marked("No peanut, no Peanuts.", "peanuts"), "No [peanut], no [Peanuts].");
  assert.equal(marked("The user lives in Kiel.", "Where does the user live?"), "The [user] [lives] in Kiel.");
});

test("the inside of another word is no hit", () => {
  assert.equal(marked("Unlived, alive.", "live"), "Unlived, alive.");
});

test("short words are marked where there are no longer ones", () => {
  assert.equal(marked("At 10 on day 10.", "10"), "At [10] on day [10].");
});

test("without spaces two characters are a hit", () => {
  assert.equal(marked("用户住在上海。", "上海市"), "用户住在[上海]。");
});

test("letters of patterns are letters, and all of the text is there", () => {
  assert.equal(marked("a (b) [c]", ".*("), "a (b) [c]");
  assert.equal(hitsOf("one two", "two one").map(({ text }) => text).join(""), "one two");
  assert.deepEqual(hitsOf("one", ""), [{ text: "one", hit: false }]);
});

test("a question of a megabyte marks what its beginning asks for", () => {
  assert.equal(marked("No peanut.", `peanuts ${"x".repeat(1_000_000)}`), "No [peanut].");
  assert.equal(marked("用户".repeat(3), "用户".repeat(100_000)), "[用户][用户][用户]");
});
