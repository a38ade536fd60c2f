/** Why: what memory did for an exchange, and what for. */

import { n, named, t } from "../i18n/index.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { Json } from "../parts/json.js";
import { html } from "../vendor/preact.js";
import { Bar } from "./bar.js";
import { Evicted } from "./evicted.js";
import { spentOf, totalOf, usageOf } from "./figures.js";
import { Passages } from "./passages.js";
import { PromptList } from "./prompt.js";
import { Stepper } from "./stepper.js";

const TONES = /** @type {Record<string, string>} */ ({ applied: "good", degraded: "bad" });

/** @typedef {import("./index.js").Inspected} Inspected */

/** @param {Inspected} props */
export function Why(props) {
  const { session, exchange, exchanges, onExchange, onJump, onOpen } = props;
  if (exchange === null) return html`<${Nothing} ...${props} />`;
  const { memory } = exchange;
  const inside = { session: session.id, user: session.user_id, onJump };
  return html`<div class="why">
    <${Stepper} key=${session.id} session=${session.id} ...${{ exchange, exchanges, onExchange }} />
    <${Verdict} exchange=${exchange} />
    <${Spent} exchange=${exchange} />
    <${Evicted} evicted=${memory.evicted} />
    ${memory.recalled.length > 0 && html`<section><h3>${t("why.recalled")} <span class="muted num">${n(memory.recalled.length)}</span></h3>
      <${Passages} key=${exchange.id} recalled=${memory.recalled} ...${inside} /></section>`}
    <section><h3>${t("why.shown")}</h3>
      <${PromptList} key=${exchange.id} shown=${memory.shown} cut=${memory.shown_cut} ...${inside} /></section>
    ${memory.tools.length > 0 && html`<section><h3>${t("why.tools")}</h3><${Json} key=${exchange.id} value=${memory.tools} open=${2} /></section>`}
    <${Facts} exchange=${exchange} />
    <footer class="buttons"><button type="button" class="button danger-quiet" onClick=${() => onOpen({ kind: "forget", exchange: exchange.id })}>${t("talk.forget")}</button></footer>
  </div>`;
}

/** Of the whole prompt, or where the upstream has not counted it of what memory put into it. @param {{exchange: any}} props */
function Spent({ exchange }) {
  const counted = totalOf(exchange) !== null;
  const label = t(counted ? "why.spent" : "why.spent.memory");
  return html`<section><h3>${label}</h3><${Bar} spent=${spentOf(exchange)} label=${label} />
    ${!counted && html`<p class="muted small">${t("why.spent.untold")}</p>`}</section>`;
}

/** @param {Inspected} props */
function Nothing({ missing, exchanges, whys, onExchange, onChanged }) {
  const newest = exchanges[0]?.id;
  const toNewest = newest && html`<button type="button" class="button" onClick=${() => onExchange(newest)}>${t("why.newest")}</button>`;
  if (missing?.error.status === 404) return html`<${Empty} title=${t("why.missing")}>${toNewest}</${Empty}>`;
  if (missing) return html`<${Failed} ...${missing} />`;
  if (!whys.loaded && whys.error) return html`<${Failed} error=${whys.error} retry=${onChanged} />`;
  if (newest || !whys.loaded) return html`<${Loading} />`;
  return html`<${Empty} title=${t("why.none")}><p class="muted">${t("why.none.hint")}</p></${Empty}>`;
}

/** @param {{exchange: any}} props */
const Verdict = ({ exchange: { memory, incomplete, status } }) => html`<div class="verdict">
  <span class=${`tag ${TONES[memory.status] ?? ""}`}>${named("did", memory.status)}</span>
  ${memory.reason !== null && html`<span class=${`tag ${memory.status === "degraded" ? "bad" : "warn"}`} title=${memory.reason}>${named("reason", memory.reason)}</span>`}
  ${incomplete && html`<span class="tag warn">${t("why.incomplete")}</span>`}
  ${status >= 400 && html`<span class="tag bad">HTTP ${status}</span>`}
  <span class="muted small">${t("why.injected", { n: memory.messages, tokens: memory.tokens })}</span>
</div>`;

/** @param {{exchange: any}} props */
function Facts({ exchange }) {
  const usage = usageOf(exchange.usage);
  const tokens = (/** @type {number | null | undefined} */ value) => (value === null || value === undefined ? null : n(value));
  const cached = usage?.prompt && usage.cached ? ` (${n(Math.round((100 * usage.cached) / usage.prompt))} %)` : "";
  /** @type {[string, string | null][]} */
  const facts = [
    [t("why.model"), exchange.model],
    [t("why.profile"), exchange.profile || t("why.profile.default")],
    [t("why.finish"), exchange.finish_reason],
    [t("why.duration"), t("why.ms", { ms: n(Math.round(exchange.memory.duration_ms * 10) / 10) })],
    [t("stats.prompt"), tokens(usage?.prompt)],
    [t("stats.cached"), usage?.cached === null || usage?.cached === undefined ? null : `${n(usage.cached)}${cached}`],
    [t("stats.written"), tokens(usage?.written)],
    [t("stats.completion"), tokens(usage?.completion)],
    [t("why.reasoning"), tokens(usage?.reasoning)],
    [t("why.id"), exchange.id],
  ];
  return html`<section><h3>${t("why.facts")}</h3><dl class="pairs">${facts.filter(([, value]) => value !== null).map(([name, value]) => html`<div key=${name}>
    <dt>${name}</dt><dd><bdi class="num">${value}</bdi></dd></div>`)}</dl></section>`;
}
