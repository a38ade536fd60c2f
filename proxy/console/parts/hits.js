/** The words of a question in what it has found.  Pure. */

/** `hit`: a word that was looked for. @typedef {{text: string, hit: boolean}} Piece */

/** Words of so few letters are marked only where there are no longer ones. */
const SHORT = 3;
/** Words that are looked for, and characters. */
const MAX_WORDS = 24;
const MAX_CHARACTERS = 400;

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

/** @param {string} text @param {string} query @returns {Piece[]} */
export function hitsOf(text, query) {
  const wanted = patterns(query);
  if (wanted.length === 0) return [{ text, hit: false }];
  const pieces = text.split(new RegExp(`(${wanted.join("|")})`, "giu"));
  return pieces.map((piece, at) => ({ text: piece, hit: at % 2 === 1 })).filter((piece) => piece.text !== "");
}

/** @param {string} query */
function patterns(query) {
  const words = [...new Set(query.slice(0, MAX_CHARACTERS).toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])].slice(0, MAX_WORDS);
  const long = words.filter((word) => UNSPACED.test(word) || word.length > SHORT);
  return (long.length > 0 ? long : words).flatMap((word) => (UNSPACED.test(word) ? pairs(word) : [beginning(word)]));
}

/** A word with any ending: an "s" or an "e" more or less is the same word to recall. @param {string} word */
const beginning = (word) =>
  `(?<![\\p{L}\\p{N}])${word.length > SHORT + 1 ? word.slice(0, -1) : word}[\\p{L}\\p{M}\\p{N}]*`;

/** Without spaces two characters are as good as a word. @param {string} word */
function pairs(word) {
  const letters = [...word];
  return letters.length < 3 ? [word] : letters.slice(1).map((letter, at) => `${letters[at]}${letter}`);
}
