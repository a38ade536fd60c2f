// A list that is live while it is shown: parts/feed.js.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { Feed } from "../../proxy/console/parts/feed.js";

globalThis.document = Object.assign(new EventTarget(), { hidden: false });
mock.timers.enable({ apis: ["setTimeout"] });

const NOTHING = { status: 200, etag: null, data: { data: [], has_more: false, next: null } };

/** An API of empty lists, which counts how often it is asked. */
const counting = () => ({ asked: 0, changes: 0, async get() { this.asked += 1; return NOTHING; } });

const settled = () => new Promise(setImmediate);

test("a list that was left asks nothing more when it is to be loaded anew, until it is shown", async () => {
  const api = counting();
  const feed = new Feed(api, "/sessions", {}, (row) => row);
  feed.start();
  await settled();
  feed.stop();
  feed.reload();
  const left = api.asked;
  feed.start();
  await settled();
  feed.stop();
  assert.deepEqual([left, api.asked], [1, 2]);
});
