/** Tokens and times of a session's newest exchanges. */

import { seg } from "../api.js";
import { n, t, time } from "../i18n/index.js";
import { Chart } from "../parts/chart.js";
import { usePoll } from "../parts/poll.js";
import { wordsOf } from "../stats/series.js";
import { html, useEffect, useMemo } from "../vendor/preact.js";
import { usageOf } from "./figures.js";

/** Exchanges that are drawn. */
const MAX_DRAWN = 50;

/** @param {{session: string, newest: string}} props `newest`: exchange; another one is a reason to look again */
export function Charts({ session, newest }) {
  const { data, refresh } = usePoll(`/sessions/${seg(session)}/exchanges`, { limit: MAX_DRAWN }, 0);
  useEffect(() => (data ? refresh() : undefined), [newest]);
  const drawn = useMemo(() => seriesOf(data?.data ?? []), [data]);
  if (drawn.times.length < 2) return null;
  const words = { when: time, tick: wordsOf("hour").tick };
  return html`<section class="charts"><h3>${t("exchanges")} <span class="muted num">${n(drawn.times.length)}</span></h3>
    <${Chart} title=${t("stats.tokens")} times=${drawn.times} series=${drawn.tokens} height=${150} ...${words} />
    <${Chart} title=${t("why.duration")} times=${drawn.times} series=${drawn.latency} height=${110} unit="ms" ...${words} /></section>`;
}

/** @param {any[]} exchanges the newest first */
function seriesOf(exchanges) {
  const all = exchanges.filter((each) => each.memory.reason !== "import").reverse();
  const of = (/** @type {string} */ label, /** @type {string} */ color, /** @type {(each: any) => number | null} */ value) =>
    ({ label: t(label), color: `--series-${color}`, values: all.map(value) });
  return {
    times: all.map((each) => each.created_at),
    tokens: [
      of("stats.prompt", "1", (each) => usageOf(each.usage)?.prompt ?? null),
      of("stats.cached", "2", (each) => usageOf(each.usage)?.cached ?? null),
      of("stats.completion", "3", (each) => usageOf(each.usage)?.completion ?? null),
      of("stats.injected", "4", (each) => each.memory.tokens),
    ],
    latency: [of("why.duration", "2", (each) => each.memory.duration_ms)],
  };
}
