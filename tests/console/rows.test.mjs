// The lists by activity: parts/rows.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { active, appended, inPlace, meets, refreshed } from "../../proxy/console/parts/rows.js";

const row = (id, at) => ({ id, at });
const ids = (rows) => rows.map((each) => each.id).join(" ");
const LIST = [row("a", 9), row("b", 8), row("c", 7), row("d", 6)];

test("a page is put behind what is there, without what is there already", () => {
  assert.equal(ids(appended(LIST, [row("c", 7), row("e", 5)])), "a b c d e");
  assert.equal(appended(LIST, [row("a", 9)]), LIST);
});

test("what is active again moves to the top", () => {
  assert.equal(ids(refreshed(LIST, [row("d", 10), row("a", 9), row("b", 8)], true)), "d a b c");
});

test("what is missing among the newest has gone", () => {
  assert.equal(ids(refreshed(LIST, [row("a", 9), row("c", 7)], true)), "a c d");
  assert.equal(ids(refreshed(LIST, [row("a", 9), row("b", 8), row("c", 7)], false)), "a b c");
  assert.equal(ids(refreshed(LIST, [], false)), "");
});

test("rows of the same time as the last of the newest stay", () => {
  const rows = [row("a", 9), row("b", 8), row("c", 8)];
  assert.equal(ids(refreshed(rows, [row("a", 9), row("b", 8)], true)), "a b c");
});

test("the newest meet what is known in a row that has not changed", () => {
  assert.equal(meets(LIST, [row("n", 12), row("a", 9)]), true);
  assert.equal(meets(LIST, [row("n", 12), row("m", 11)]), false);
  assert.equal(meets(LIST, [row("n", 12), row("d", 11)]), false);
  assert.equal(meets([], [row("n", 12)]), false);
  assert.equal(meets(LIST, []), true);
});

test("an empty page that has more behind it says nothing", () => {
  assert.equal(ids(refreshed(LIST, [], true)), "a b c d");
});

test("whoever reads sees each row at its place, changed", () => {
  const wanted = refreshed(LIST, [row("n", 12), row("d", 11), row("a", 9), row("c", 7)], true);
  const shown = inPlace(LIST, wanted);
  assert.equal(ids(shown), "a b c d");
  assert.deepEqual(shown[1], { id: "b", at: 8, gone: true });
  assert.equal(shown[3].at, 11);
});

test("active is what is new or later than before", () => {
  assert.deepEqual(active(LIST, [row("n", 12), row("d", 11), row("a", 9)], 10), ["n", "d"]);
});

test("what has long been active is nothing new where it comes in, by an import", () => {
  assert.deepEqual(active(LIST, [row("n", 12), row("old", 9)], 11), ["n"]);
});
