// Numbers as they are written: parts/exact.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Exact, read, written } from "../../proxy/console/parts/exact.js";

const ODD = ["1283746519283746511", "10.0", "1E5", "1e400", "-0", "0.1000", "12345678901234567890.123456789"];

test("what a double would write in another way is written as it was read", () => {
  for (const number of ODD) {
    for (const text of [number, `[${number}]`, `{"a":{"b":[1,${number},"${number}"]}}`]) {
      assert.equal(written(read(text)), text);
    }
  }
});

test("all other numbers are numbers", () => {
  assert.deepEqual(read('{"a": [1, -2.5, 1e-7], "b": "10.0"}'), { a: [1, -2.5, 1e-7], b: "10.0" });
});

test("only below the fields that are named", () => {
  const value = read('{"at": 10.0, "data": [{"value": {"at": 10.0}, "at": 2.0}]}', (name) => name === "value");
  assert.equal(value.at, 10);
  assert.equal(value.data[0].at, 2);
  assert.deepEqual(value.data[0].value.at, new Exact("10.0"));
});

test("digits in texts and names stay what they are", () => {
  const text = '{"10.0":"a \\" 10.0 \\\\","exact":["exact-1-2-3-4-10.0","1.0"],"__proto__":10.0}';
  assert.equal(written(read(text)), text);
});

test("what is no JSON is refused as ever", () => {
  for (const text of ["", "01.0", "1.0.0", "[1.0", '"1.0', "{1.0: 2}", "--1.0", "1.0 2.0", '"1.0\n"']) {
    assert.throws(() => read(text), SyntaxError, text);
  }
});

test("it may be nested deeply and be long", () => {
  const deep = 100_000;
  let value = read(`${"[".repeat(deep)}1.0${"]".repeat(deep)}`);
  for (let level = 0; level < deep; level += 1) [value] = value;
  assert.equal(String(value), "1.0");
  const long = '\\"1'.repeat(1_000_000);
  assert.equal(read(`["${long}",1.0]`)[0].length, 2_000_000);
});

test("it is indented as any JSON", () => {
  assert.equal(written(read('{"a":10.0}'), 2), '{\n  "a": 10.0\n}');
});
