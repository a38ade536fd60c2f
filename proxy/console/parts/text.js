/** Stored text for people's eyes: shown as it is, with what hides in it made visible.  Pure. */

/**
 * What no eye sees: directional controls, zero widths, fillers, tags and variation selectors (all
 * that Unicode calls default ignorable), line ends of other kinds, halves of surrogate pairs.
 */
const HIDDEN = /[\p{Default_Ignorable_Code_Point}\p{Surrogate}\u2028\u2029\ufff9-\ufffb]/gu;
/** Controls but for tab and line ends (C0, DEL, C1). */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000d\u000e-\u001f\u007f-\u009f]/g;
/** Before a joiner that belongs there: inside a picture (emoji), a word of a script that joins. */
const JOINING =
  /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}]$/u;

/** What a variation selector cannot belong to: hidden characters, so that runs of them are seen. */
const BARE = /(?:^|[\p{Default_Ignorable_Code_Point}\s])$/u;

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
      belongs(character, whole.slice(Math.max(0, at - 2), at)) ? character : named(character),
    );
}

/** @param {string} character @param {string} before what stands before it */
const belongs = (character, before) =>
  isJoiner(character) ? JOINING.test(before) : isVariation(character) && !BARE.test(before);

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
