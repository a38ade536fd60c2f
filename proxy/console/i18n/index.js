/** The console's words, numbers and times in the reader's language. */

import en from "./en.js";
import enInspector from "./en.inspector.js";
import enTalk from "./en.talk.js";
import zh from "./zh.js";
import zhInspector from "./zh.inspector.js";
import zhTalk from "./zh.talk.js";

/** @typedef {"en" | "zh"} Locale */
/** A text, or one for each plural form (Intl.PluralRules) of `n`. @typedef {string | {one: string, other: string}} Text */
/** @typedef {Record<string, Text>} Dictionary */

/** @type {Record<Locale, Dictionary>} */
const DICTIONARIES = { en: { ...en, ...enInspector, ...enTalk }, zh: { ...zh, ...zhInspector, ...zhTalk } };

/** The reader's own variety of a language, such as en-GB, for dates. @param {Locale} locale */
const regional = (locale) => navigator.languages.find((name) => name.startsWith(locale)) ?? locale;

/** @param {Locale} locale */
function speaking(locale) {
  const region = regional(locale);
  return {
    locale,
    region,
    texts: DICTIONARIES[locale],
    plural: new Intl.PluralRules(locale),
    number: new Intl.NumberFormat(region),
    short: new Intl.NumberFormat(region, { notation: "compact", maximumFractionDigits: 1 }),
    exact: new Intl.DateTimeFormat(region, { dateStyle: "medium", timeStyle: "medium" }),
    day: new Intl.DateTimeFormat(region, { dateStyle: "medium" }),
    relative: new Intl.RelativeTimeFormat(region, { numeric: "auto", style: "short" }),
  };
}

/** The browser's wish among what there is. @returns {Locale} */
export const preferred = () =>
  navigator.languages.map((name) => name.slice(0, 2)).find((name) => name === "zh" || name === "en") ===
  "zh"
    ? "zh"
    : "en";

let now = speaking(preferred());

/** Speak another language from now on; whoever shows words has to show them again. @param {Locale} locale */
export function setLocale(locale) {
  now = speaking(locale);
  document.documentElement.lang = locale === "zh" ? "zh-Hans" : "en";
}

export const locale = () => now.locale;

/** A name of the API's in the reader's language, or as it is. @param {string} group @param {string} name */
export function named(group, name) {
  const text = t(`${group}.${name}`);
  return text === `${group}.${name}` ? name : text;
}

/** For formats of one's own (Intl). */
export const region = () => now.region;

/**
 * A text with its places filled: `{name}`.  Numbers are written as people write them.
 * @param {string} key
 * @param {Record<string, string | number>} [vars] `n` chooses the plural form
 */
export function t(key, vars = {}) {
  const entry = now.texts[key];
  if (entry === undefined) return key;
  const text = typeof entry === "string" ? entry : entry[formOf(vars.n)];
  return text.replace(/\{(\w+)\}/g, (place, name) => {
    const value = vars[name];
    return value === undefined ? place : typeof value === "number" ? n(value) : value;
  });
}

/** @param {string | number | undefined} count @returns {"one" | "other"} */
const formOf = (count) =>
  typeof count === "number" && now.plural.select(count) === "one" ? "one" : "other";

/** @param {number} number */
export const n = (number) => now.number.format(number);

/** 12.3K @param {number} number */
export const short = (number) => now.short.format(number);

/** @param {number} seconds Unix time */
export const time = (seconds) => dated(seconds, (date) => now.exact.format(date));

/** @param {number} seconds Unix time */
export const day = (seconds) => dated(seconds, (date) => now.day.format(date));

/** A date in some form; what is beyond all dates as it is. @param {number} seconds Unix time @param {(date: Date) => string} form */
export function dated(seconds, form) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : form(date);
}

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** "5 min. ago" @param {number} seconds Unix time */
export function ago(seconds) {
  const past = Date.now() / 1000 - seconds;
  if (Math.abs(past) < 45) return t("time.now");
  const [unit, length] = UNITS.find(([, size]) => Math.abs(past) >= size * 0.75) ?? ["minute", 60];
  return now.relative.format(-Math.round(past / length), unit);
}

const BYTES = ["B", "kB", "MB", "GB"];

/** "1.2 MB" @param {number} count */
export function bytes(count) {
  let [value, unit] = [count, 0];
  while (value >= 1000 && unit < BYTES.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${n(Math.round(value * 10) / 10)} ${BYTES[unit]}`;
}
