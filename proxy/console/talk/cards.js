/** What stands between the messages: the system message, the summary, the start of the window. */

import { n, named, t } from "../i18n/index.js";
import { Menu } from "../parts/menu.js";
import { html } from "../vendor/preact.js";
import { textOf } from "./contents.js";
import { Folded } from "./part.js";
import { Text } from "./text.js";

/** @param {{messages: any[], seen: boolean}} props */
export const SystemCard = ({ messages, seen }) => html`<section class=${`talk-item card-item of-the-system ${seen ? "sight-seen" : ""}`} aria-label=${t("talk.system")}>
  <span class="band"></span>
  <div class="card talk-card"><${Folded} name="system" class="system" label=${html`<b>${t("talk.system")}</b>`}>
    ${messages.map((message, at) => html`<${Text} key=${at} text=${textOf(message)} name=${`system ${at}`} />`)}
  </${Folded}></div>
</section>`;

/** @param {{summary: any, seen: number | null, actions: import("../parts/menu.js").Action[]}} props `seen`: the version that the model saw */
export function SummaryCard({ summary, seen, actions }) {
  return html`<section class=${`talk-item card-item of-the-summary ${seen !== null ? "sight-seen" : ""}`} aria-label=${t("talk.summary")}>
    <span class="band"></span>
    <div class="card talk-card summary-card">
      <header><b>${t("talk.summary")}</b>
        <span class="tag num">${t("talk.summary.version", { version: summary.version })}</span>
        ${summary.edited && html`<span class="tag warn">${t("talk.summary.edited")}</span>`}
        ${seen !== null && seen !== summary.version && html`<span class="tag">${t("talk.summary.other", { version: seen })}</span>`}
        <span class="muted small">${summary.covers_until > 0 && `${t("talk.summary.covers", { seq: n(summary.covers_until) })} · `}${t("tokens.n", { n: summary.tokens })}</span>
        <${Menu} label=${t("talk.summary.actions")} actions=${actions} />
      </header>
      <${Text} text=${summary.text} name="summary" />
    </div>
  </section>`;
}

/** @param {{reason: string}} props */
export const CutLine = ({ reason }) => html`<div class="talk-item cut" role="separator" aria-label=${named("talk.cut", reason)}>
  <span class="cut-words">${named("talk.cut", reason)}</span>
</div>`;
