/** The series of the charts from those of the API.  Pure, but for the language of `wordsOf`. */

import { region } from "../i18n/index.js";

/** @typedef {import("../parts/chart.js").Series} Series */

/**
 * The buckets that are counted: before them there may be something, and nobody has looked.
 * @param {{series: any[], counted_since: number | null}} stats of `GET /stats` @returns {any[]}
 */
export const counted = ({ series, counted_since: since }) =>
  since === null ? series : series.filter((_, at) => (series[at + 1]?.at ?? Infinity) > since);

/**
 * Labels are keys of the dictionary.  Cached tokens are a part of the prompt's, so they are shown
 * apart from the rest of them.
 * @param {any[]} buckets `series` of `GET /stats`
 * @returns {{times: number[], tokens: Series[], memory: Series[], latency: Series[], exchanges: Series[]}}
 */
export function seriesOf(buckets) {
  const of = (/** @type {string} */ label, /** @type {string} */ color, /** @type {(bucket: any) => number | null} */ value) => ({
    label,
    color: `--series-${color}`,
    values: buckets.map(value),
  });
  return {
    times: buckets.map((bucket) => bucket.at),
    tokens: [
      of("stats.cached", "2", ({ tokens }) => tokens.cached),
      of("stats.uncached", "1", ({ tokens }) => Math.max(0, tokens.prompt - tokens.cached)),
      of("stats.completion", "3", ({ tokens }) => tokens.completion),
    ],
    memory: [
      of("stats.injected", "1", ({ tokens }) => tokens.injected),
      of("stats.evicted", "4", ({ tokens }) => tokens.evicted),
    ],
    latency: [
      of("stats.p50", "2", ({ latency_ms: latency }) => latency.p50),
      of("stats.p95", "4", ({ latency_ms: latency }) => latency.p95),
    ],
    exchanges: [of("exchanges", "1", ({ exchanges }) => exchanges)],
  };
}

/**
 * How times are written: those of days, which are days of UTC, and those of hours.
 * @param {"hour" | "day"} bucket @returns {{when: (at: number) => string, tick: (at: number) => string}}
 */
export function wordsOf(bucket) {
  const format = (/** @type {Intl.DateTimeFormatOptions} */ options) => {
    const written = new Intl.DateTimeFormat(region(), options);
    return (/** @type {number} */ at) => written.format(at * 1000);
  };
  const date = /** @type {const} */ ({ month: "short", day: "numeric" });
  if (bucket === "day") {
    return { when: format({ ...date, year: "numeric", timeZone: "UTC" }), tick: format({ ...date, timeZone: "UTC" }) };
  }
  const hour = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  return { when: format({ ...date, ...hour }), tick: format({ ...date, ...hour }) };
}
