// Stored text made harmless to the eye, addresses, and JSON that is none: parts/text.js, links.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { links, routeOf } from "../../proxy/console/links.js";
import { linkOf, oneLine, visible } from "../../proxy/console/parts/text.js";

test("what turns the direction of text is shown by its number", () => {
  assert.equal(visible("a\u202eb\u2066c\u200f"), "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200F⟩");
  assert.equal(visible("\ufeffx\u200by"), "⟨U+FEFF⟩x⟨U+200B⟩y");
});

test("control characters are shown as symbols, line ends and tabs stay", () => {
  assert.equal(visible("a\u0000b\u001b[31m\u007f"), "a\u2400b\u241b[31m\u2421");
  assert.equal(visible("a\tb\nc\r\nd"), "a\tb\nc\nd");
  assert.equal(visible("a\rb\u0085"), "a\u240db⟨U+0085⟩");
});

test("joiners inside pictures and words of scripts that join stay", () => {
  for (const text of ["👩‍👩‍👧", "🏳️‍🌈", "👩🏽‍🚀", "می‌خواهم", "क्‍ष"]) assert.equal(visible(text), text);
  for (const text of ["র\u200d্য", "க்\u200cஷ", "ಕ್\u200dಷ", "ක්\u200dෂ", "ന്\u200d", "ᠠ\u200d"]) {
    assert.equal(visible(text), text);
  }
});

test("of several joiners in a row one stays", () => {
  assert.equal(visible("👩\u200d\u200d💻"), "👩\u200d⟨U+200D⟩💻");
});

test("a joiner elsewhere is shown", () => {
  assert.equal(visible("pass\u200dword"), "pass⟨U+200D⟩word");
});

test("letters of tags and runs of selectors, which can carry words unseen, are shown", () => {
  assert.equal(visible("a\u{e0041}b"), "a⟨U+E0041⟩b");
  assert.equal(visible("☺\ufe0f\ufe01\ufe02"), "☺\ufe0f⟨U+FE01⟩⟨U+FE02⟩");
  assert.equal(visible("a\u3164b\u034fc\u2028d"), "a⟨U+3164⟩b⟨U+034F⟩c⟨U+2028⟩d");
});

test("half a surrogate pair is shown by its number", () => {
  assert.equal(visible("a\ud83db\udc00"), "a⟨U+D83D⟩b⟨U+DC00⟩");
  assert.equal(visible("𝒳"), "𝒳");
});

test("one line has single spaces", () => {
  assert.equal(oneLine("  a\n\n b\t c "), "a b c");
});

test("a megabyte is read at once", () => {
  const start = performance.now();
  visible("\u202ex".repeat(500_000));
  assert.ok(performance.now() - start < 10_000);
});

test("only addresses of the web are links", () => {
  assert.equal(linkOf("https://example.org/a"), "https://example.org/a");
  for (const bad of ["javascript:alert(1)", "data:text/html,x", "file:///etc", "no address", ""]) {
    assert.equal(linkOf(bad), null);
  }
});

test("every id survives the way through an address", () => {
  for (const id of ["a/b", "ü%2F", "a b#c?d", "..", "用户"]) {
    assert.equal(routeOf(links.user(id)).id, id);
    const route = routeOf(links.session(id, { exchange: `x/${id}`, message: `${id}.0` }));
    assert.deepEqual(route, { screen: "session", id, exchange: `x/${id}`, message: `${id}.0`, tab: null });
    assert.equal(routeOf(links.user(id, "profile")).tab, "profile");
  }
});

test("addresses that nobody made lead nowhere, and break nothing", () => {
  assert.equal(routeOf("").screen, "sessions");
  assert.equal(routeOf("#/stats").screen, "stats");
  assert.equal(routeOf("#/elsewhere").screen, "nothing");
  assert.equal(routeOf("#/users/%E0%A4%A").id, "%E0%A4%A");
});
