/**
 * The branches of a conversation.  Pure.
 *
 * History is a tree: each exchange says which message it followed.  What is shown is one way through
 * it; where more than one way goes on there is a fork, and one may look at the others.
 */

/** A message of the API. @typedef {{id: string, seq: number, exchange_id: string, message: any, tokens: number, state: "active" | "superseded", origin: string, incomplete: boolean, created_at: number}} Stored */
/** Where ways part: behind `at` ("" is the beginning); this is number `index` of `count`. @typedef {{at: string, index: number, options: string[]}} Fork */
/** `fork`: this message is one of several that could stand here. @typedef {{stored: Stored, fork: Fork | null}} Entry */
/** `end`: something went on behind the last message, and was taken back. @typedef {{entries: Entry[], end: Fork | null}} View */
/** By a message's id, "" for the beginning: what follows it, by seq. @typedef {Map<string, Stored[]>} Tree */

/** Where one chose to see that nothing follows. */
export const END = "";

/**
 * @param {readonly Stored[]} messages by seq
 * @param {ReadonlyMap<string, string | null>} follows by exchange, as far as it is known
 * @returns {Tree}
 */
export function treeOf(messages, follows) {
  /** @type {Tree} */
  const tree = new Map();
  const known = new Map(messages.map((one) => [one.id, one]));
  /** @type {Map<string, Stored>} */ const own = new Map();
  let newest = "";
  for (const one of messages) {
    const parent = one.state === "active" ? newest : before(one, own.get(one.exchange_id), known, follows, newest);
    const followers = tree.get(parent);
    if (followers) followers.push(one);
    else tree.set(parent, [one]);
    if (one.origin !== "response" || !own.has(one.exchange_id)) own.set(one.exchange_id, one);
    if (one.state === "active") newest = one.id;
  }
  return tree;
}

/**
 * What a superseded message follows: the one before it in its exchange, else what that followed.
 * @param {Stored} one @param {Stored | undefined} last of the same exchange, not another choice
 * @param {ReadonlyMap<string, Stored>} known @param {ReadonlyMap<string, string | null>} follows
 * @param {string} newest the newest active message before it
 */
function before(one, last, known, follows, newest) {
  if (last && !(last.origin === "response" && one.origin === "response")) return last.id;
  const followed = follows.get(one.exchange_id);
  if (followed === "") return "";
  const found = followed ? known.get(followed) : undefined;
  return found && found.seq < one.seq ? found.id : newest;
}

/**
 * One way through the tree: the active one, unless another was chosen at a fork.
 * @param {Tree} tree @param {ReadonlyMap<string, string>} chosen by where the fork is
 * @returns {View}
 */
export function viewOf(tree, chosen) {
  /** @type {Entry[]} */
  const entries = [];
  for (let [at, active] = ["", true]; ; ) {
    const followers = tree.get(at) ?? [];
    const current = followers.find((one) => one.state === "active");
    const options = followers.map((one) => one.id);
    if (active && !current && options.length > 0) options.push(END);
    const usual = current ?? (active ? undefined : followers.at(-1));
    const wanted = chosen.get(at);
    const next = wanted !== undefined && options.includes(wanted) ? followers.find((one) => one.id === wanted) : usual;
    const fork = options.length > 1 ? { at, index: options.indexOf(next?.id ?? END), options } : null;
    if (!next) return { entries, end: fork };
    entries.push({ stored: next, fork });
    [at, active] = [next.id, next.state === "active"];
  }
}

/**
 * What has to be chosen for a message to be seen.
 * @param {Tree} tree @param {string} id @param {ReadonlyMap<string, string>} chosen what is by now
 * @returns {ReadonlyMap<string, string>}
 */
export function choosing(tree, id, chosen) {
  const parents = new Map([...tree].flatMap(([at, all]) => all.map((one) => [one.id, at])));
  const choice = new Map(chosen);
  for (let at = id, parent; (parent = parents.get(at)) !== undefined; at = parent) choice.set(parent, at);
  return choice;
}

/**
 * Superseded messages of which it is not known what their exchange followed: its id and their seq.
 * @param {readonly Stored[]} messages @param {ReadonlyMap<string, string | null>} follows
 * @returns {Map<string, number>}
 */
export function unknown(messages, follows) {
  /** @type {Map<string, number>} */
  const found = new Map();
  for (const one of messages) {
    const wanted = one.state === "superseded" && !follows.has(one.exchange_id);
    if (wanted && !found.has(one.exchange_id)) found.set(one.exchange_id, one.seq);
  }
  return found;
}
