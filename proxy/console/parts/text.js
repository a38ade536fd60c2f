/** Stored text for people's eyes: shown as it is, with what hides in it made visible.  Pure. */

/** Directional controls and other invisible characters (Unicode bidi, zero width, BOM). */
const HIDDEN = /[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\u061c\u00ad]/g;
/** Controls but for tab and line ends (C0, DEL, C1). */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000d\u000e-\u001f\u007f-\u009f]/g;
/** Before a joiner that belongs there: inside a picture (emoji), a word of a script that joins. */
const JOINING =
  /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}]$/u;

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
      isJoiner(character) && JOINING.test(whole.slice(Math.max(0, at - 2), at))
        ? character
        : named(character),
    );
}

/** @param {string} character */
const isJoiner = (character) => character === "\u200c" || character === "\u200d";

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
