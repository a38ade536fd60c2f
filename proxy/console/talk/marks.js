/** What the model saw in one exchange, by the ids that the exchange lists.  Pure. */

/** @typedef {import("./branches.js").Stored} Stored */
/** `seen`: put there by the proxy; `resent`: by the client, once more; `own`, `answer`: of the exchange; `evicted`: kept out. @typedef {"seen" | "resent" | "recalled" | "own" | "answer" | "evicted" | "unseen" | "later"} Sight */
/** @typedef {{sight: Sight, score?: number}} Mark */
/** `cut`: the window starts at this message, and why. @typedef {{of: ReadonlyMap<string, Mark>, cut: {at: string, reason: string} | null, summary: number | null, system: boolean}} Marks */

/** @type {Marks} */
export const NO_MARKS = { of: new Map(), cut: null, summary: null, system: false };

/**
 * @param {any} exchange of the API, or null
 * @param {string} session its id
 * @param {readonly Stored[]} messages by seq
 * @returns {Marks}
 */
export function marksOf(exchange, session, messages) {
  if (!exchange || exchange.memory?.reason === "import") return NO_MARKS;
  const shown = exchange.memory?.shown ?? [];
  const { seen, recalled } = byId(shown, session);
  const first = firstOf(exchange, messages);
  const resent = exchange.memory?.resent ?? [];
  const sights = { exchange, first, seen, recalled, resent, start: startOf(seen, messages), last: 0 };
  sights.last = exchange.memory?.shown_cut > 0 ? lastOf(seen, messages) : Infinity;
  const of = new Map(messages.map((one) => [one.id, markOf(one, sights)]));
  return {
    of,
    cut: cutOf(exchange, messages, of),
    summary: shown.find((/** @type {any} */ piece) => piece.kind === "summary")?.version ?? null,
    system: shown.some((/** @type {any} */ piece) => piece.kind === "system"),
  };
}

/** @param {any[]} shown @param {string} session */
function byId(shown, session) {
  /** @type {Set<string>} */ const seen = new Set();
  /** @type {Map<string, number | undefined>} */ const recalled = new Map();
  for (const piece of shown) {
    if (piece.id === null || piece.session_id !== session) continue;
    if (piece.kind === "message") seen.add(piece.id);
    else recalled.set(piece.id, piece.score);
  }
  return { seen, recalled };
}

/** The seq that an exchange begins with; by time where its messages are not loaded. @param {any} exchange @param {readonly Stored[]} messages */
const firstOf = (exchange, messages) =>
  messages.find((one) => one.exchange_id === exchange.id)?.seq ??
  messages.find((one) => one.created_at > exchange.created_at)?.seq ??
  Infinity;

/** @param {ReadonlySet<string>} seen @param {readonly Stored[]} messages */
const startOf = (seen, messages) => messages.find((one) => seen.has(one.id))?.seq ?? null;

/** @param {ReadonlySet<string>} seen @param {readonly Stored[]} messages */
const lastOf = (seen, messages) => messages.findLast((one) => seen.has(one.id))?.seq ?? Infinity;

/** @typedef {{exchange: any, first: number, seen: ReadonlySet<string>, recalled: ReadonlyMap<string, number | undefined>, resent: readonly {first: number, last: number}[], start: number | null, last: number}} Sights */

/** @param {Stored} one @param {Sights} sights @returns {Mark} */
function markOf(one, { exchange, first, seen, recalled, resent, start, last }) {
  if (one.exchange_id === exchange.id) return { sight: one.origin === "response" ? "answer" : "own" };
  if (resent.some((stretch) => stretch.first <= one.seq && one.seq <= stretch.last)) return { sight: "resent" };
  if (seen.has(one.id)) return { sight: "seen" };
  if (recalled.has(one.id)) {
    const score = recalled.get(one.id);
    return { sight: "recalled", ...(score === undefined ? {} : { score }) };
  }
  if (one.seq >= first) return { sight: "later" };
  if (one.state === "active" && one.seq > last) return { sight: "seen" }; // there, behind what is listed
  const evicted = exchange.memory?.evicted?.messages > 0 && one.seq < (start ?? (seen.size > 0 ? -1 : first));
  return { sight: evicted && one.state === "active" ? "evicted" : "unseen" };
}

/** @param {any} exchange @param {readonly Stored[]} messages @param {ReadonlyMap<string, Mark>} of */
function cutOf(exchange, messages, of) {
  const evicted = exchange.memory?.evicted;
  if (!(evicted?.messages > 0)) return null;
  const sightOf = (/** @type {Stored} */ one) => of.get(one.id)?.sight ?? "";
  const behind = messages.slice(messages.findLastIndex((one) => sightOf(one) === "evicted") + 1);
  const start = behind.find((one) => ["seen", "resent", "own"].includes(sightOf(one)));
  return start ? { at: start.id, reason: evicted.reason ?? "window" } : null;
}
