/** A previewed prompt told apart: what is the client's, what is stored, what memory wrote.  Pure. */

/** A block of memory as the proxy writes them; look-alikes inside are escaped. */
const BLOCK = /<memory version="1" kind="([a-z]+)">\n([^]*?)\n<\/memory>\n{0,2}/g;

/** `block`: the kind of a block of memory, null for other text. @typedef {{block: string | null, text: string, tokens: number | null}} Piece */
/** @typedef {"system" | "memory" | "window" | "own"} From */
/** `id`: of a stored message; `message`: as it would be sent. @typedef {{from: From, role: string, id: string | null, tokens: number | null, pieces: Piece[], message: any}} Sent */

/**
 * @param {any} preview a context object of the API @param {string} own the text that was asked with
 * @returns {Sent[]}
 */
export function sentOf(preview, own) {
  const stored = preview.shown.filter((/** @type {any} */ piece) => piece.kind === "message");
  let systems = 0;
  return preview.messages.map((/** @type {any} */ message, /** @type {number} */ at) => {
    const last = at === preview.messages.length - 1;
    const pieces = piecesOf(message.content, last ? own : "", preview);
    const sent = { role: String(message.role), id: null, tokens: null, pieces, message };
    if (last) return { ...sent, from: "own", tokens: preview.tokens - preview.injected.tokens };
    if (pieces.length > 0 && pieces.every((piece) => piece.block !== null)) return { ...sent, from: "memory" };
    if (isSystem(message)) return { ...sent, from: "system", tokens: systems++ === 0 ? preview.breakdown?.system : null };
    const piece = stored.shift();
    return { ...sent, from: "window", id: piece?.id ?? null, tokens: piece?.tokens ?? null };
  });
}

/** @param {any} message */
const isSystem = ({ role }) => role === "system" || role === "developer";

/** All text of a message, blocks of memory apart. @param {unknown} content @param {string} own what ends it, "" if nothing @param {any} preview @returns {Piece[]} */
function piecesOf(content, own, preview) {
  const texts = Array.isArray(content) ? content.map((part) => part?.text) : [content];
  return texts.filter((text) => typeof text === "string" && text !== "").flatMap((text) => split(text, own, preview));
}

/** @param {string} text @param {string} own @param {any} preview @returns {Piece[]} */
function split(text, own, preview) {
  const theirs = own !== "" && text.endsWith(own) ? text.length - own.length : text.length;
  /** @type {Piece[]} */
  const pieces = [];
  const add = (/** @type {string} */ plain) => {
    if (plain.trim() !== "") pieces.push({ block: null, text: plain.trim(), tokens: null });
  };
  let end = 0;
  for (const found of text.slice(0, theirs).matchAll(BLOCK)) {
    const [whole, kind = "", lines = ""] = found;
    add(text.slice(end, found.index));
    pieces.push({ block: kind, text: lines, tokens: tokensOf(kind, preview) });
    end = found.index + whole.length;
  }
  add(text.slice(end));
  return pieces;
}

/** Tokens of a block, null where they are not told by themselves. @param {string} kind @param {any} preview @returns {number | null} */
function tokensOf(kind, { breakdown, known }) {
  if (kind === "summary") return breakdown?.summary ?? null;
  return known.find((/** @type {any} */ block) => block.kind === kind)?.tokens ?? null;
}
