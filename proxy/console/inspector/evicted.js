/** How much was left out of a prompt, and why. */

import { named, t } from "../i18n/index.js";
import { html } from "../vendor/preact.js";

/** @param {{evicted: {messages: number, tokens: number, reason: string | null}}} props */
export const Evicted = ({ evicted }) =>
  evicted.messages > 0 &&
  html`<section><h3>${t("why.evicted")}</h3>
    <p class="evicted"><b class="num">${t("messages.n", { n: evicted.messages })}</b> <span class="muted num">${t("tokens.n", { n: evicted.tokens })}</span>
      ${evicted.reason !== null && html`<span class="evicted-why">${named("evicted", evicted.reason)}</span>`}</p></section>`;
