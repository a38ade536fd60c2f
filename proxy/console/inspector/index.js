/** The inspector beside a conversation: what memory did and would do, and the session itself. */

import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { Tabs } from "../parts/tabs.js";
import { html, useState } from "../vendor/preact.js";
import { WouldBeSent } from "./sent.js";
import { Session } from "./session.js";
import { Summary } from "./summary.js";
import { Why } from "./why.js";

/**
 * @typedef {object} Inspected
 * @property {any} session the session object of the API, live
 * @property {string | null} etag of it
 * @property {any} exchange the one that is chosen, or null
 * @property {import("../talk/wanted.js").Missing | null} missing why the one that is asked for cannot be shown
 * @property {readonly any[]} exchanges those that are loaded, the newest first
 * @property {{loaded: boolean, error: any}} whys whether they have been asked for, and what came of it
 * @property {(id: string) => void} onExchange
 * @property {(message: string, session: string | null) => void} onJump to a message; null: of this session
 * @property {() => void} onChanged the session was edited
 * @property {(open: import("../talk/actions.js").Open) => void} onOpen a dialog, which stays where the session goes
 */

/** Under this the chosen tab is kept while one goes from conversation to conversation. */
const TAB = "inspector tab";

const PANELS = /** @type {Record<string, any>} */ ({ why: Why, sent: WouldBeSent, summary: Summary, session: Session });

/** @param {Inspected} props */
export function Inspector(props) {
  const { kept } = useApp();
  const [chosen, setChosen] = useState(/** @type {string} */ (kept.get(TAB) ?? "why"));
  const choose = (/** @type {string} */ name) => {
    kept.set(TAB, name);
    setChosen(name);
  };
  const tabs = Object.keys(PANELS).map((name) => ({ name, label: t(`inspector.${name}`) }));
  return html`<div class="inspector">
    <h2 class="sr-only">${t("inspector")}</h2>
    <${Tabs} tabs=${tabs} chosen=${chosen} choose=${choose} label=${t("inspector")}>
      <${PANELS[chosen]} key=${props.session.id} ...${props} />
    </${Tabs}>
  </div>`;
}
