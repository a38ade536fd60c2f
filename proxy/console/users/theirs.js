/** A person's latest sessions. */

import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { links } from "../links.js";
import { Empty, Failed, Loading, Stale } from "../parts/empty.js";
import { usePoll } from "../parts/poll.js";
import { Row, rowOf } from "../sessions/row.js";
import { html } from "../vendor/preact.js";

const FEW = 25;

/** @param {{user: string}} props */
export function Theirs({ user }) {
  const { kept, navigate } = useApp();
  const { data, error, refresh } = usePoll("/sessions", { user, preview: true, limit: FEW }, 2000);
  const all = () => {
    kept.set("sessions user", user);
    kept.set("sessions query", "");
    navigate(links.sessions);
  };
  if (data === null) return error ? html`<${Failed} error=${error} retry=${refresh} />` : html`<${Loading} />`;
  if (data.data.length === 0) return html`<${Empty} title=${t("sessions.none")} />`;
  return html`<${Stale} error=${error} /><ul class="theirs card">${data.data.map((/** @type {any} */ session) => html`<li key=${session.id}>
      <${Row} row=${rowOf(session)} fresh=${false} onOpen=${() => {}} /></li>`)}</ul>
    ${data.has_more && html`<p><button type="button" class="link-button" onClick=${all}>${t("person.all")}</button></p>`}`;
}
