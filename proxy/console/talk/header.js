/** The session's facts, and what can be done with all of it. */

import { n, short, t, time } from "../i18n/index.js";
import { links } from "../links.js";
import { Menu } from "../parts/menu.js";
import { oneLine } from "../parts/text.js";
import { Ago } from "../parts/time.js";
import { html } from "../vendor/preact.js";

/** @param {{session: any, id: string, actions: import("../parts/menu.js").Action[], inspecting: boolean, inspect: () => void, children?: any}} props */
export function Header({ session, id, actions, inspecting, inspect, children }) {
  return html`<header class="head talk-head">
    <div class="talk-name">
      <h1><a class="up" href=${links.sessions}>${t("nav.sessions")}<span aria-hidden="true"> /</span> </a><bdi class=${session?.title ? "" : "mono"}>${oneLine(session?.title ?? id)}</bdi></h1>
      ${session && html`<${Facts} session=${session} />`}
    </div>
    <div class="head-end">
      ${children}
      <button type="button" class="button inspect" aria-pressed=${inspecting} onClick=${inspect}>${t("talk.inspect")}</button>
      <${Menu} label=${t("talk.session.actions")} actions=${actions} />
    </div>
  </header>`;
}

/** @param {{session: any}} props */
const Facts = ({ session }) => html`<p class="facts muted small">
  ${session.title && html`<bdi class="mono">${session.id}</bdi>`}
  ${session.user_id !== null && html`<a href=${links.user(session.user_id)}><bdi>${session.user_id}</bdi></a>`}
  <span class="num">${t("messages.n", { n: session.messages })}</span>
  <span class="num" title=${n(session.tokens)}>${short(session.tokens)} ${t("tokens.unit", { n: session.tokens })}</span>
  <span title=${time(session.created_at)}>${t("talk.begun")} <${Ago} at=${session.created_at} /></span>
  <span>${t("active")} <${Ago} at=${session.last_active_at} /></span>
</p>`;
