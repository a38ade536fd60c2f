/** The numbers of an exchange, as they are drawn.  Pure: what upstreams say may be anything. */

/** What injected tokens are spent on, in the order of a prompt. */
const SPENT = ["system", "summary", "messages", "known", "recalled"];

/** `kind`: one of SPENT, "injected" where it is not known on what, "own": the client's. @typedef {{kind: string, tokens: number}} Spent */

/** Tokens of the whole prompt, null where the upstream has not said. @param {any} exchange @returns {number | null} */
export const totalOf = ({ usage }) => usageOf(usage)?.prompt || null;

/** What the tokens of a prompt were spent on; the client's are what the upstream counted beside. @param {any} exchange @returns {Spent[]} */
export function spentOf({ memory, usage }) {
  const { breakdown, tokens } = memory;
  const injected = breakdown
    ? SPENT.map((kind) => ({ kind, tokens: number(breakdown[kind]) ?? 0 }))
    : [{ kind: "injected", tokens }];
  const own = (totalOf({ usage }) ?? 0) - tokens;
  return [...injected, { kind: "own", tokens: own }].filter((each) => each.tokens > 0);
}

/** Of the prompt's tokens some were `cached`, and some were `written` to the cache. @typedef {{prompt: number | null, cached: number | null, written: number | null, completion: number | null, reasoning: number | null}} Usage */

/** Tokens as the upstream counted them. Anthropic counts what is cached beside `input_tokens`. @param {any} usage @returns {Usage | null} */
export function usageOf(usage) {
  if (usage === null || typeof usage !== "object") return null;
  const prompt = usage.prompt_tokens_details ?? usage.input_tokens_details;
  const completion = usage.completion_tokens_details ?? usage.output_tokens_details;
  const cached = number(prompt?.cached_tokens ?? usage.cache_read_input_tokens);
  const written = number(prompt?.cache_write_tokens ?? usage.cache_creation_input_tokens);
  const own = number(usage.prompt_tokens ?? usage.input_tokens);
  const beside = own === null || prompt || "prompt_tokens" in usage ? 0 : (cached ?? 0) + (written ?? 0);
  return {
    prompt: own === null ? null : own + beside,
    cached,
    written,
    completion: number(usage.completion_tokens ?? usage.output_tokens),
    reasoning: number(completion?.reasoning_tokens),
  };
}

/** @param {unknown} value @returns {number | null} */
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

/** What a score is made of, the weightiest first; `share` of the weightiest. @param {any} parts @returns {{name: string, value: number, share: number}[]} */
export function partsOf(parts) {
  const all = Object.entries(parts ?? {})
    .map(([name, value]) => ({ name, value: number(value) ?? 0 }))
    .sort((one, other) => Math.abs(other.value) - Math.abs(one.value));
  const most = Math.abs(all[0]?.value ?? 0) || 1;
  return all.map((each) => ({ ...each, share: Math.abs(each.value) / most }));
}

/** @typedef {{kind: string, id: string | null, session_id: string | null, tokens: number, score?: number, version?: number}} Piece */
/** Messages of one session that follow each other, or one other piece. @typedef {{kind: string, pieces: Piece[], tokens: number}} Group */

/** What stands in a prompt, its messages together. @param {Piece[]} shown @returns {Group[]} */
export function groupsOf(shown) {
  /** @type {Group[]} */
  const groups = [];
  for (const piece of shown) {
    const last = groups.at(-1);
    if (piece.kind === "message" && last?.kind === "message") {
      last.pieces.push(piece);
      last.tokens += piece.tokens;
    } else groups.push({ kind: piece.kind, pieces: [piece], tokens: piece.tokens });
  }
  return groups;
}
