/** Tokens, latency and cost over time. */

import { n, short, t, time } from "../i18n/index.js";
import { Chart } from "../parts/chart.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { usePoll } from "../parts/poll.js";
import { useTitle } from "../parts/title.js";
import { UserFilter } from "../sessions/user_filter.js";
import { tile } from "../users/person.js";
import { html, useMemo, useState } from "../vendor/preact.js";
import { counted, seriesOf, wordsOf } from "./series.js";
import { Usage } from "./usage.js";

const EVERY = 15_000;

/** `days` back, in buckets of an hour or a day. @typedef {{name: string, days: number, bucket: "hour" | "day"}} Range */

/** @type {Range[]} */
const RANGES = [
  { name: "stats.day", days: 1, bucket: "hour" },
  { name: "stats.week", days: 7, bucket: "hour" },
  { name: "stats.month", days: 30, bucket: "day" },
  { name: "stats.quarter", days: 90, bucket: "day" },
];
const [, , MONTH] = /** @type {[Range, Range, Range, Range]} */ (RANGES);

export function Stats() {
  const [range, setRange] = useState(MONTH);
  const [user, setUser] = useState("");
  const stats = usePoll("/stats", { days: range.days, bucket: range.bucket, user }, EVERY);
  useTitle(t("nav.stats"));
  return html`<div class="page stats">
    <header class="head">
      <h1>${t("nav.stats")}</h1>
      <div class="head-end filters">
        <${UserFilter} value=${user} onChange=${setUser} />
        <div class="chips" role="group" aria-label=${t("stats.range")}>${RANGES.map((each) => html`<button type="button"
          class="chip" key=${each.name} aria-pressed=${each === range} onClick=${() => setRange(each)}>${t(each.name)}</button>`)}</div>
      </div>
    </header>
    <${Body} stats=${stats} />
    <${Usage} days=${range.days} />
  </div>`;
}

/** @param {{stats: import("../parts/poll.js").Polled}} props */
function Body({ stats: { data, error, refresh } }) {
  if (data === null) return error ? html`<${Failed} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  return html`${error && html`<p class="note warn" role="status">${t("error.stale")} ${error.message}</p>`}
    <${Totals} totals=${data.totals} />
    ${data.totals.with_usage < data.totals.exchanges && html`<p class="note">${t("stats.untold", { n: data.totals.exchanges, told: data.totals.with_usage })}</p>`}
    ${!data.complete && html`<p class="note">${t("stats.incomplete", { time: time(data.counted_since) })}</p>`}
    ${data.totals.exchanges === 0 ? html`<${Empty} title=${t("stats.none")}><p class="muted">${t("stats.none.hint")}</p></${Empty}>`
      : html`<${Charts} data=${data} />`}`;
}

/** @param {{totals: any}} props */
function Totals({ totals: { exchanges, sessions, tokens, latency_ms: latency } }) {
  const share = tokens.prompt > 0 ? Math.round((100 * tokens.cached) / tokens.prompt) : 0;
  return html`<dl class="tiles">
    ${tile(t("exchanges"), n(exchanges))}
    ${tile(t("sessions"), n(sessions))}
    ${tile(t("stats.prompt"), short(tokens.prompt), n(tokens.prompt))}
    ${tile(t("stats.cached"), html`${short(tokens.cached)} <small class="muted">${share} %</small>`, n(tokens.cached))}
    ${tokens.cache_written > 0 && tile(t("stats.written"), short(tokens.cache_written), n(tokens.cache_written))}
    ${tile(t("stats.completion"), short(tokens.completion), n(tokens.completion))}
    ${tile(t("stats.injected"), short(tokens.injected), n(tokens.injected))}
    ${tile(t("stats.p50"), milliseconds(latency.p50))}
    ${tile(t("stats.p95"), milliseconds(latency.p95))}
  </dl>`;
}

/** @param {number | null | undefined} ms */
const milliseconds = (ms) => (typeof ms === "number" ? `${n(Math.round(ms))} ms` : "–");

/** @param {{data: any}} props */
function Charts({ data }) {
  const charts = useMemo(() => seriesOf(counted(data)), [data]);
  const words = wordsOf(data.bucket);
  return html`<div class="charts">
    <div class="card pad wide"><${Chart} title=${t("stats.tokens")} kind="stacked" height=${230} times=${charts.times}
      series=${named(charts.tokens)} ...${words} /></div>
    <div class="card pad"><${Chart} title=${t("stats.memory")} times=${charts.times} series=${named(charts.memory)} ...${words} /></div>
    <div class="card pad"><${Chart} title=${t("stats.latency")} unit="ms" times=${charts.times} series=${named(charts.latency)} ...${words} /></div>
    <div class="card pad wide"><${Chart} title=${t("exchanges")} kind="bars" height=${140} times=${charts.times}
      series=${named(charts.exchanges)} ...${words} /></div>
  </div>`;
}

/** @param {import("../parts/chart.js").Series[]} series labels are keys of the dictionary */
const named = (series) => series.map((each) => ({ ...each, label: t(each.label) }));
