/** The frame of all screens: where one is, where one can go, whose memory it is. */

import { useApp } from "./context.js";
import { Help } from "./help.js";
import { t } from "./i18n/index.js";
import { links } from "./links.js";
import { LookMenu } from "./look.js";
import { Empty } from "./parts/empty.js";
import { isTyping, useKeys } from "./parts/keys.js";
import { Menu } from "./parts/menu.js";
import { Sessions } from "./sessions/index.js";
import { tenants } from "./sign_in.js";
import { Stats } from "./stats/index.js";
import { Conversation } from "./talk/index.js";
import { Person } from "./users/person.js";
import { Users } from "./users/index.js";
import { html, useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

/** @typedef {import("./app.js").Look} Look */

/** @param {{look: Look, setLook: (look: Partial<Look>) => void, leave: () => void, choose: (tenant: string) => void}} props */
export function Shell({ look, setLook, leave, choose }) {
  const { route, caller, navigate } = useApp();
  const [help, setHelp] = useState(false);
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const choice = useRef(/** @type {HTMLElement | null} */ (null));
  useFocusOnArrival(main, route, caller.chosen ? choice : main);
  useKeys({ "?": () => setHelp(true), Escape: ({ target }) => (isTyping(target) ? unfocused(target) : navigate(above(route))) });
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      main.current?.focus();
    }}>${t("skip")}</a>
    <div class="shell">
      <header class="top">
        <a class="brand" href=${links.sessions}><img src="console/icon.svg" alt="" width="22" height="22" /><span class="brand-name">memory-proxy</span></a>
        <${Navigation} screen=${route.screen} />
        <div class="top-end">
          ${caller.admin && html`<${TenantChoice} box=${choice} tenant=${caller.tenant} choose=${choose} />`}
          ${caller.client && html`<span class="tag">${caller.client}</span>`}
          <${LookMenu} look=${look} setLook=${setLook} />
          <${Menu} label=${t("account")} actions=${[
            { label: t("help.title"), onClick: () => setHelp(true) },
            { label: t("signout"), onClick: leave },
          ]}><span aria-hidden="true">⋯</span></${Menu}>
        </div>
      </header>
      <main id="main" ref=${main} tabindex="-1"><${Screen} key=${`${route.screen}/${route.id}`} /></main>
    </div>
    ${help && html`<${Help} onClose=${() => setHelp(false)} version=${caller.version} />`}`;
}

/** @param {{screen: string}} props */
function Navigation({ screen }) {
  const entries = /** @type {const} */ ([
    ["sessions", links.sessions, ["sessions", "session"]],
    ["users", links.users, ["users", "user"]],
    ["stats", links.stats, ["stats"]],
  ]);
  return html`<nav class="nav" aria-label=${t("nav")}>
    ${entries.map(([name, path, screens]) => html`<a key=${name} href=${path} class=${`nav-${name}`}
      aria-current=${/** @type {readonly string[]} */ (screens).includes(screen) ? "page" : undefined}>
      <span class="nav-icon" aria-hidden="true"></span>${t(`nav.${name}`)}</a>`)}
  </nav>`;
}

/** @param {{box: {current: HTMLElement | null}, tenant: string, choose: (tenant: string) => void}} props */
function TenantChoice({ box, tenant, choose }) {
  const { api, failed } = useApp();
  const [known, setKnown] = useState(/** @type {string[]} */ ([]));
  useEffect(() => void tenants(api).then(setKnown, failed), []);
  const all = known.includes(tenant) ? known : [tenant, ...known];
  return html`<label class="tenant"><span class="sr-only">${t("tenant")}</span>
    <select ref=${box} value=${tenant} title=${`${t("tenant")}: ${tenant}`}
      onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
      ${all.map((id) => html`<option key=${id} value=${id}>${brief(id)}</option>`)}
    </select></label>`;
}

/** A digest is told by its beginning. @param {string} id */
const brief = (id) => (/^[0-9a-f]{32,}$/.test(id) ? `${id.slice(0, 12)}…` : id);

function Screen() {
  const { route, failed } = useApp();
  const [broken, mend] = useErrorBoundary((error) => failed(error));
  if (broken) {
    return html`<${Empty} title=${t("error.bug")} mark="!">
      <p class="muted mono">${String(broken)}</p>
      <button type="button" class="button" onClick=${mend}>${t("retry")}</button>
    </${Empty}>`;
  }
  if (route.screen === "sessions") return html`<${Sessions} />`;
  if (route.screen === "session") {
    return html`<${Conversation} session=${route.id} exchange=${route.exchange} message=${route.message} />`;
  }
  if (route.screen === "users") return html`<${Users} />`;
  if (route.screen === "user") return html`<${Person} id=${route.id} />`;
  if (route.screen === "stats") return html`<${Stats} />`;
  return html`<${Empty} title=${t("nothing.title")}><p><a href=${links.sessions}>${t("nav.sessions")}</a></p></${Empty}>`;
}

/** What is typed in a box is not lost to a key that leads away. @param {EventTarget | null} box */
const unfocused = (box) => box instanceof HTMLElement && box.blur();

/** @param {import("./links.js").Route} route */
const above = (route) =>
  route.screen === "session" ? links.sessions : route.screen === "user" ? links.users : location.hash;

/**
 * Another screen: the focus goes there, so that it is read out.
 * @param {{current: HTMLElement | null}} main @param {import("./links.js").Route} route
 * @param {{current: HTMLElement | null}} first what has it at the beginning
 */
function useFocusOnArrival(main, route, first) {
  const place = useRef(first);
  useLayoutEffect(() => {
    if (!main.current?.contains(document.activeElement)) place.current.current?.focus({ preventScroll: true });
    place.current = main;
  }, [route.screen, route.id]);
}
