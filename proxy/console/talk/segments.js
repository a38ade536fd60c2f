/** Stored text cut into what is shown: code in fences, links, and pieces a browser can lay out.  Pure. */

import { linkOf } from "../parts/text.js";

/** @typedef {{kind: "text" | "code", text: string, language: string}} Block */
/** @typedef {{text: string, href: string | null}} Segment */

/** Characters shown of a long text at first, and lines. */
export const FEW = 6000;
export const FEW_LINES = 120;
/** Characters that are laid out at once. */
export const PIECE = 16_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]{0,60})$/;

/** Blocks of text and of code in fences; an open fence goes to the end. @param {string} text @returns {Block[]} */
export function blocksOf(text) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {string[]} */ let lines = [];
  let [mark, language] = ["", ""];
  const close = () => {
    if (lines.length > 0 || mark) blocks.push({ kind: mark ? "code" : "text", text: lines.join("\n"), language });
    lines = [];
  };
  for (const line of text.split("\n")) {
    const fence = line.length < 100 ? FENCE.exec(line) : null;
    if (mark ? fence?.[1]?.startsWith(mark) && !fence[2]?.trim() : fence) {
      close();
      [mark, language] = mark ? ["", ""] : [fence?.[1] ?? "", fence?.[2]?.trim() ?? ""];
    } else lines.push(line);
  }
  close();
  return blocks;
}

const ADDRESS = /https?:\/\/[^\s<>"'`⟨⟩\u2400-\u2426]{1,2000}/g;
const BEHIND = /[.,;:!?)\]}*_]+$/;

/** Text with its addresses told apart; an address is shown as it is written. @param {string} text @returns {Segment[]} */
export function segmentsOf(text) {
  /** @type {Segment[]} */
  const segments = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(ADDRESS)) {
    const address = found.replace(BEHIND, "");
    const href = linkOf(address);
    if (href === null) continue;
    if (index > end) segments.push({ text: text.slice(end, index), href: null });
    segments.push({ text: address, href });
    end = index + address.length;
  }
  if (end < text.length) segments.push({ text: text.slice(end), href: null });
  return segments;
}

/** Where a long text is cut at first; its length if it is short. @param {string} text */
export function folded(text) {
  let [end, lines] = [-1, 0];
  while (lines < FEW_LINES && (end = text.indexOf("\n", end + 1)) >= 0 && end <= FEW) lines += 1;
  const cut = lines === FEW_LINES ? end : FEW;
  return text.length <= cut * 1.2 ? text.length : whole(text, cut);
}

/** Pieces of a text, cut at line ends where there are any. @param {string} text @returns {string[]} */
export function piecesOf(text) {
  /** @type {string[]} */
  const pieces = [];
  let at = 0;
  while (text.length - at > PIECE) {
    const line = text.lastIndexOf("\n", at + PIECE);
    const end = line > at ? line : whole(text, at + PIECE);
    pieces.push(text.slice(at, end));
    at = line > at ? line + 1 : end;
  }
  pieces.push(text.slice(at));
  return pieces;
}

/** So far without parting a pair of surrogates. @param {string} text @param {number} end */
const whole = (text, end) => (/[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end);

