/** Stored text for people's eyes: shown as it is, with what hides in it made visible.  Pure. */

/**
 * What no eye sees: directional controls, zero widths, fillers, tags and variation selectors (all
 * that Unicode calls default ignorable), line ends of other kinds, halves of surrogate pairs.
 */
const HIDDEN = /[\p{Default_Ignorable_Code_Point}\p{Surrogate}\u2028\u2029\ufff9-\ufffb]/gu;
/** Controls but for tab and line ends (C0, DEL, C1). */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000d\u000e-\u001f\u007f-\u009f]/g;
/** Scripts whose letters join, or stand in clusters. */
const JOINED = [
  "Adlm", "Arab", "Mand", "Mong", "Nkoo", "Phag", "Rohg", "Syrc", "Bali",
  "Batk", "Beng", "Bugi", "Cakm", "Deva", "Gran", "Gujr", "Guru", "Java",
  "Khmr", "Knda", "Lana", "Lepc", "Limb", "Mlym", "Mtei", "Mymr", "Newa",
  "Orya", "Saur", "Sinh", "Sund", "Sylo", "Taml", "Telu", "Tibt", "Tirh",
];

/**
 * Before a joiner that belongs there: inside a picture (emoji), or a word of such a script.  To be
 * asked of one character: Chromium 156 finds none of them with `$` behind this class.
 */
const JOINING = new RegExp(
  `[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f${JOINED.map((name) => `\\p{Script=${name}}`).join("")}]`,
  "u",
);

/** What a variation selector cannot belong to: hidden characters, so that runs of them are seen. */
const BARE = /[\p{Default_Ignorable_Code_Point}\s]/u;

/** "⟨U+202E⟩" @param {string} character */
const named = (character) =>
  `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** @param {string} character */
function pictured(character) {
  const code = character.charCodeAt(0);
  if (code === 0x7f) return "\u2421";
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : named(character);
}

/** Text in which nothing is hidden; line ends are \n. @param {string} text */
export function visible(text) {
  return text
    .replace(/\r\n/g, "\n")
    .replace(CONTROL, pictured)
    .replace(HIDDEN, (character, at, whole) =>
      belongs(character, before(whole, at)) ? character : named(character),
    );
}

/** The character before this place, "" at the beginning. @param {string} text @param {number} at */
const before = (text, at) => [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? "";

/** @param {string} character @param {string} before what stands before it */
const belongs = (character, before) =>
  isJoiner(character) ? JOINING.test(before) : isVariation(character) && before !== "" && !BARE.test(before);

/** @param {string} character */
const isJoiner = (character) => character === "\u200c" || character === "\u200d";

/** @param {string} character */
const isVariation = (character) => character >= "\ufe00" && character <= "\ufe0f";

/** The same on one line. @param {string} text */
export const oneLine = (text) => visible(text).replace(/\s+/g, " ").trim();

/** An address that may be a link, else null. @param {string} text */
export function linkOf(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
