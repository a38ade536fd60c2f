/** How a loaded stretch of messages is kept right.  Pure. */

/** @typedef {import("./content.js").Message} Message */

/** With newer ones put in: those that are there already are replaced. @param {Message[]} messages @param {Message[]} page @returns {Message[]} */
export function merged(messages, page) {
  if (page.length === 0) return messages;
  const news = new Map(page.map((each) => [each.id, each]));
  const kept = messages.map((each) => news.get(each.id) ?? each);
  const known = new Set(messages.map((each) => each.id));
  const all = [...kept, ...page.filter((each) => !known.has(each.id))];
  const last = messages.at(-1)?.seq ?? 0;
  return page.every((each) => known.has(each.id) || each.seq > last) ? all : all.sort((one, other) => one.seq - other.seq);
}

/**
 * Do new messages explain how a session has changed, so that those before are as they were?
 * @param {any} before @param {any} now @param {Message[]} page what is new
 */
export function renewed(before, now, page) {
  if (before === null) return false;
  const active = page.filter((each) => each.state === "active");
  const tokens = active.reduce((sum, each) => sum + each.tokens, 0);
  return (
    page.length === active.length &&
    now.messages === before.messages + active.length &&
    now.tokens === before.tokens + tokens &&
    now.end > before.end
  );
}

/**
 * The exchanges of superseded messages of which it is not known what they followed.
 * @param {Message[]} messages @param {Map<string, string | null>} follows
 */
export function unknownOf(messages, follows) {
  const unknown = messages.filter((each) => each.state === "superseded" && !follows.has(each.exchange_id));
  return {
    ids: new Set(unknown.map((each) => each.exchange_id)),
    oldest: unknown[0]?.seq ?? 0,
    newest: unknown.at(-1)?.seq ?? 0,
  };
}
