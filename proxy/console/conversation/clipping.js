/** Long text in portions, and the code in it.  Pure. */

/** Characters and lines that are shown unasked. */
export const FEW = 2400;
export const LINES = 36;
/** Characters that are shown more with each step, and that make a block of the page. */
export const STEP = 20_000;
/** Code is looked for in no longer text. */
const LONGEST = 200_000;

/** Where a text is cut, so that nothing is torn: behind a line if one ends near. @param {string} text @param {number} limit @param {number} [lines] */
export function cutAt(text, limit, lines = Infinity) {
  let end = Math.min(limit, text.length);
  if (lines !== Infinity) {
    let at = -1;
    for (let line = 0; line < lines; line += 1) {
      at = text.indexOf("\n", at + 1);
      if (at < 0 || at >= end) break;
      if (line === lines - 1) end = at;
    }
  }
  if (end >= text.length) return text.length;
  const line = text.lastIndexOf("\n", end);
  if (line > end * 0.8) return line;
  const code = text.charCodeAt(end - 1);
  return code >= 0xd800 && code < 0xdc00 ? end - 1 : end;
}

/** A text in blocks that are laid out by themselves. @param {string} text @returns {string[]} */
export function blocksOf(text) {
  const blocks = [];
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at, at + STEP + 1);
    const size = rest.length <= STEP ? rest.length : Math.max(1, cutAt(rest, STEP));
    blocks.push(rest.slice(0, size));
    at += size;
    if (size < rest.length && text[at] === "\n") at += 1; // the block's own end is a line's
  }
  return blocks;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`\n]*)$/;

/** Text and the code between fences. @param {string} text @returns {{code: boolean, text: string}[]} */
export function fencesOf(text) {
  if (text.length > LONGEST || !(text.includes("```") || text.includes("~~~"))) return [{ code: false, text }];
  /** @type {{code: boolean, text: string}[]} */
  const parts = [];
  /** @type {string[]} */
  let lines = [];
  let open = "";
  const close = () => {
    if (lines.length > 0) parts.push({ code: open !== "", text: lines.join("\n") });
    lines = [];
  };
  for (const line of text.split("\n")) {
    const fence = FENCE.exec(line.replace(/\r$/, ""));
    const [mark = "", info = ""] = fence ? [fence[1], fence[2]] : [];
    if (fence && (open === "" || (mark.startsWith(open) && info.trim() === ""))) {
      close();
      open = open === "" ? mark : "";
    } else lines.push(line);
  }
  close();
  return parts;
}

/** Most places that are marked in one block. */
const MOST = 200;

/** A text parted where a wanted one is in it: every other piece is a find. @param {string} text @param {string} wanted lower case */
export function partedAt(text, wanted) {
  if (wanted === "") return [text];
  const lower = text.toLowerCase();
  if (lower.length !== text.length) return [text]; // places would not be the same
  const pieces = [];
  let from = 0;
  for (let count = 0; count < MOST; count += 1) {
    const at = lower.indexOf(wanted, from);
    if (at < 0) break;
    pieces.push(text.slice(from, at), text.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  return [...pieces, text.slice(from)];
}
