// A conversation: its branches, what the model saw, what stands in the list, text in pieces.

import assert from "node:assert/strict";
import { test } from "node:test";

import { choosing, treeOf, unknown, viewOf } from "../../proxy/console/talk/branches.js";
import { partsOf, textOf } from "../../proxy/console/talk/contents.js";
import { found } from "../../proxy/console/talk/found.js";
import { itemsOf } from "../../proxy/console/talk/items.js";
import { NO_MARKS, marksOf } from "../../proxy/console/talk/marks.js";
import { FEW, PIECE, blocksOf, folded, piecesOf, segmentsOf } from "../../proxy/console/talk/segments.js";

/** "u1 a1 | -u2 -a2 | u3 a3": exchanges with their messages; "-" is superseded, "c" another choice. */
function logOf(text) {
  const messages = [];
  text.split("|").forEach((part, exchange) => {
    for (const word of part.trim().split(" ")) {
      const id = word.replace("-", "");
      const role = id.startsWith("u") ? "user" : "assistant";
      messages.push({
        id,
        seq: messages.length + 1,
        exchange_id: `e${exchange}`,
        message: { role, content: `${id} says` },
        tokens: 1,
        state: word.startsWith("-") ? "superseded" : "active",
        origin: role === "user" ? "request" : "response",
        incomplete: false,
        created_at: messages.length + 1,
      });
    }
  });
  return messages;
}

const view = (text, follows = {}, chosen = {}) =>
  viewOf(treeOf(logOf(text), new Map(Object.entries(follows))), new Map(Object.entries(chosen)));
const ids = ({ entries }) => entries.map(({ stored }) => stored.id).join(" ");
const forks = ({ entries }) =>
  entries.filter(({ fork }) => fork).map(({ stored, fork }) => `${stored.id} ${fork.index + 1}/${fork.options.length}`);

test("a conversation without branches is its messages", () => {
  assert.equal(ids(view("u1 a1 | u2 a2")), "u1 a1 u2 a2");
  assert.deepEqual(forks(view("u1 a1 | u2 a2")), []);
  assert.equal(view("u1 a1").end, null);
});

const EDITED = ["u1 a1 | -u2 -a2 | -u3 -a3 | -u4 -a4 | u5 a5", { e1: "a1", e2: "a2", e3: "a1" }];

test("an edit is a fork, and each branch goes on as it did", () => {
  assert.equal(ids(view(...EDITED)), "u1 a1 u5 a5");
  assert.deepEqual(forks(view(...EDITED)), ["u5 3/3"]);
  assert.equal(ids(view(...EDITED, { a1: "u2" })), "u1 a1 u2 a2 u3 a3");
  assert.deepEqual(forks(view(...EDITED, { a1: "u2" })), ["u2 1/3"]);
  assert.equal(ids(view(...EDITED, { a1: "u4" })), "u1 a1 u4 a4");
});

test("an answer that was made again is a fork behind its question", () => {
  const made = view("u1 -a1 | a2", { e1: "u1" });
  assert.equal(ids(made), "u1 a2");
  assert.deepEqual(forks(made), ["a2 2/2"]);
  assert.equal(ids(view("u1 -a1 | a2", { e1: "u1" }, { u1: "a1" })), "u1 a1");
});

test("choices of one answer are branches", () => {
  assert.deepEqual(forks(view("u1 a1 -a2 -a3 | u4 a4")), ["a1 1/3"]);
  assert.equal(ids(view("u1 a1 -a2 -a3 | u4 a4", {}, { u1: "a3" })), "u1 a3");
});

test("what was taken back is offered at the end, and not shown unasked", () => {
  const rewound = view("u1 a1 | -u2 -a2", { e1: "a1" });
  assert.equal(ids(rewound), "u1 a1");
  assert.deepEqual(rewound.end, { at: "a1", index: 1, options: ["u2", ""] });
  assert.equal(ids(view("u1 a1 | -u2 -a2", { e1: "a1" }, { a1: "u2" })), "u1 a1 u2 a2");
});

test("the beginning can be a fork too", () => {
  assert.deepEqual(forks(view("-u1 -a1 | u2 a2", { e0: "" })), ["u2 2/2"]);
});

test("what is not known to follow something follows the newest active message before it", () => {
  assert.deepEqual(forks(view("u1 a1 | -u2 -a2 | u3 a3", { e1: null })), ["u3 2/2"]);
  assert.deepEqual([...unknown(logOf("u1 a1 | -u2 -a2 | u3 a3"), new Map())], [["e1", 3]]);
  assert.equal(unknown(logOf("u1 a1 | -u2 -a2"), new Map([["e1", null]])).size, 0);
});

test("to see a message the forks before it are chosen", () => {
  const messages = logOf(EDITED[0]);
  const tree = treeOf(messages, new Map(Object.entries(EDITED[1])));
  assert.equal(ids(viewOf(tree, choosing(tree, "a3", new Map()))), "u1 a1 u2 a2 u3 a3");
});

const exchange = (id, shown, memory = {}) => ({
  id,
  created_at: 99,
  memory: { shown, shown_cut: 0, evicted: { messages: 0, tokens: 0, reason: null }, ...memory },
});
const message = (id) => ({ kind: "message", id, session_id: "s", tokens: 1 });
const sights = (marks) => [...marks.of].map(([id, { sight }]) => `${id}:${sight}`).join(" ");

test("each message is marked with how the model saw it", () => {
  const evicted = { evicted: { messages: 2, tokens: 2, reason: "summary" } };
  const shown = [
    { kind: "summary", id: null, session_id: null, tokens: 9, version: 3 },
    { kind: "passage", id: "a1", session_id: "s", tokens: 1, score: 0.5 },
    { kind: "passage", id: "u2", session_id: "other", tokens: 1, score: 0.5 },
    message("u2"),
    message("a2"),
  ];
  const log = logOf("u1 a1 | u2 a2 | u3 a3 | u4 a4");
  const marks = marksOf(exchange("e2", shown, evicted), "s", log);
  assert.equal(sights(marks), "u1:evicted a1:recalled u2:seen a2:seen u3:own a3:answer u4:later a4:later");
  assert.deepEqual(marks.cut, { at: "u2", reason: "summary" });
  assert.equal(marks.summary, 3);
  assert.equal(marks.of.get("a1").score, 0.5);
});

test("what was not injected and not kept out is not said to be unseen by the model", () => {
  const marks = marksOf(exchange("e1", []), "s", logOf("u1 a1 | u2 a2"));
  assert.equal(sights(marks), "u1:unseen a1:unseen u2:own a2:answer");
  assert.equal(marks.cut, null);
  assert.equal(marksOf(null, "s", logOf("u1 a1")), NO_MARKS);
  assert.equal(marksOf(exchange("e0", [], { reason: "import" }), "s", logOf("u1 a1")), NO_MARKS);
});

test("what the client itself sent again the model has seen", () => {
  const resent = [{ first: 1, last: 2 }, { first: 5, last: 6 }];
  const log = logOf("u1 a1 | -u2 -a2 | u3 a3 | u4 a4");
  const marks = marksOf(exchange("e3", [], { resent }), "s", log);
  assert.equal(sights(marks), "u1:resent a1:resent u2:unseen a2:unseen u3:resent a3:resent u4:own a4:answer");
  assert.equal(marks.cut, null);
});

test("a window of the client's own begins where what is left out ends", () => {
  const left = { resent: [{ first: 3, last: 4 }], evicted: { messages: 2, tokens: 2, reason: "window" } };
  const marks = marksOf(exchange("e2", [], left), "s", logOf("u1 a1 | u2 a2 | u3 a3"));
  assert.equal(sights(marks), "u1:evicted a1:evicted u2:resent a2:resent u3:own a3:answer");
  assert.deepEqual(marks.cut, { at: "u2", reason: "window" });
});

test("behind a list that was cut the window goes on", () => {
  const marks = marksOf(exchange("e2", [message("u1")], { shown_cut: 3 }), "s", logOf("u1 a1 | u2 a2 | u3 a3"));
  assert.equal(sights(marks), "u1:seen a1:seen u2:seen a2:seen u3:own a3:answer");
});

const kinds = (items) => items.map((item) => (item.kind === "message" ? item.key : item.kind)).join(" ");
const ABOUT = { top: true, covers: null, system: false };

test("cards and lines stand at their places", () => {
  const marks = { ...NO_MARKS, cut: { at: "u2", reason: "window" } };
  const shown = view("u1 a1 | u2 a2");
  assert.equal(kinds(itemsOf(shown, marks, { ...ABOUT, covers: 2, system: true })), "system u1 a1 summary cut u2 a2");
  assert.equal(kinds(itemsOf(shown, NO_MARKS, { ...ABOUT, covers: 4 })), "u1 a1 u2 a2 summary");
  assert.equal(kinds(itemsOf(shown, NO_MARKS, { ...ABOUT, covers: 0 })), "summary u1 a1 u2 a2");
  assert.equal(kinds(itemsOf(shown, NO_MARKS, { ...ABOUT, top: false })), "older u1 a1 u2 a2");
});

test("results stand with their calls", () => {
  const log = logOf("u1 a1 a2 a3");
  log[1].message.tool_calls = [{ id: "c1" }];
  log[2].message = { role: "tool", tool_call_id: "c1", content: "yes" };
  log.forEach((one) => (one.origin = "request"));
  const items = itemsOf(viewOf(treeOf(log, new Map()), new Map()), NO_MARKS, ABOUT);
  assert.equal(kinds(items), "u1 a1 a3");
  assert.deepEqual(items[1].results.map((one) => one.id), ["a2"]);
});

test("a message may hold anything", () => {
  assert.deepEqual(partsOf({}), []);
  assert.deepEqual(partsOf({ content: 7 }), [{ kind: "other", value: 7 }]);
  assert.deepEqual(partsOf({ content: [null] }), [{ kind: "other", value: null }]);
  assert.equal(partsOf({ tool_calls: [null] })[0].name, "?");
  assert.deepEqual(partsOf({ content: [{ type: "image_url", image_url: { url: "data:text/html,x" } }] })[0].inline, false);
  assert.equal(textOf({ content: "a", refusal: "b", reasoning_content: "c" }), "c\na\nb");
});

test("words are found whatever their case", () => {
  assert.deepEqual(found(view("u1 a1 | u2 a2").entries, "U2 SAYS"), ["u2"]);
  assert.deepEqual(found(view("u1 a1").entries, " "), []);
});

test("code is told by its fences, an open one goes to the end", () => {
  const blocks = blocksOf("a\n```js\nx\n```\nb\n~~~\n```\ny");
  assert.deepEqual(blocks.map(({ kind, text, language }) => [kind, text, language]), [
    ["text", "a", ""], ["code", "x", "js"], ["text", "b", ""], ["code", "```\ny", ""],
  ]);
});

test("only addresses of the web are links", () => {
  const text = "see https://example.org/a?b=1). javascript:alert(1) http://x";
  const links = segmentsOf(text);
  assert.equal(links.map((one) => one.text).join(""), text);
  assert.deepEqual(links.filter((one) => one.href).map((one) => one.text), ["https://example.org/a?b=1", "http://x"]);
  assert.deepEqual(segmentsOf("https://[").map((one) => one.href), [null]);
});

test("long text is folded and cut into pieces that together are all of it", () => {
  const long = "word ".repeat(200_000);
  assert.equal(folded(long), FEW);
  assert.equal(folded("short"), 5);
  assert.ok(folded("line\n".repeat(10_000)) < 1000);
  assert.equal(piecesOf(long).join(""), long);
  assert.ok(piecesOf(long).every((piece) => piece.length <= PIECE));
  const emoji = "😀".repeat(PIECE);
  assert.ok(piecesOf(emoji).every((piece) => piece.isWellFormed()));
});

test("a million characters are taken apart at once", () => {
  const start = performance.now();
  for (const text of ["a".repeat(1 << 20), "`".repeat(1 << 20), "https://x".repeat(1 << 17), "\n".repeat(1 << 20)]) {
    blocksOf(text);
    piecesOf(text);
    segmentsOf(text);
  }
  assert.ok(performance.now() - start < 4000);
});
