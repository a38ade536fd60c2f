/** The summary in force, its versions, and what can be done with it. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { n, t } from "../i18n/index.js";
import { Empty } from "../parts/empty.js";
import { usePoll } from "../parts/poll.js";
import { Ago } from "../parts/time.js";
import { changeSummary } from "../talk/summarizing.js";
import { Text } from "../talk/text.js";
import { html, useEffect } from "../vendor/preact.js";

/** @param {import("./index.js").Inspected} props */
export function Summary(props) {
  const { session, etag, onJump, onChanged, onOpen } = props;
  const app = useApp();
  const { summary, id } = session;
  const run = (/** @type {"rebuild" | "forget"} */ how) => void changeSummary(how, { app, session, etag, changed: onChanged });
  const edit = () => onOpen({ kind: "summary" });
  return html`<div class="inspector-panel">
    ${summary === null
      ? html`<${Empty} title=${t("summary.none")}><p class="muted">${t("summary.none.hint")}</p>
          <p><button type="button" class="button" onClick=${edit}>${t("summary.write")}</button>
            ${" "}<button type="button" class="button" onClick=${() => run("rebuild")}>${t("talk.summary.rebuild")}</button></p></${Empty}>`
      : html`<section class="card pad of-the-summary">
          <${Head} summary=${summary} />
          <${Text} text=${summary.text} name="summary in force" />
          <${Covers} session=${session} onJump=${onJump} />
          <footer class="buttons"><button type="button" class="button" onClick=${edit}>${t("edit")}</button>
            <button type="button" class="button" onClick=${() => run("rebuild")}>${t("talk.summary.rebuild")}</button>
            <button type="button" class="button danger-quiet" onClick=${() => run("forget")}>${t("talk.summary.forget")}</button></footer>
        </section>`}
    <${Versions} session=${id} current=${summary?.version ?? 0} />
  </div>`;
}

/** @param {{summary: any}} props */
const Head = ({ summary }) => html`<header class="section-head">
  <span class="tag num">${t("talk.summary.version", { version: n(summary.version) })}</span>
  ${summary.edited && html`<span class="tag warn">${t("talk.summary.edited")}</span>`}
  <span class="muted small num">${t("tokens.n", { n: summary.tokens })}</span>
  <${Ago} class="muted small" at=${summary.created_at} />
  ${summary.model && html`<bdi class="muted small mono">${summary.model}</bdi>`}</header>`;

/** Until where, as a way there. @param {{session: any, onJump: (message: string, session: string | null) => void}} props */
function Covers({ session: { id, summary }, onJump }) {
  const { api, failed } = useApp();
  const until = summary.covers_until;
  const jump = async () => {
    const { data } = await api.get(`/sessions/${seg(id)}/messages`, { state: "active,superseded", after: until - 1, limit: 1 });
    if (data.data[0]) onJump(data.data[0].id, null);
  };
  if (until === 0) return html`<p class="muted small">${t("summary.covers.none")}</p>`;
  return html`<p class="small"><button type="button" class="link-button" onClick=${() => void jump().catch(failed)}>${t("talk.summary.covers", { seq: n(until) })}</button></p>`;
}

/** @param {{session: string, current: number}} props */
function Versions({ session, current }) {
  const { data, refresh } = usePoll(`/sessions/${seg(session)}/summaries`, { limit: 100 }, 0);
  useEffect(refresh, [current]);
  const versions = data?.data ?? [];
  if (versions.length === 0) return null;
  return html`<section><h3>${t("profile.versions")} <span class="muted num">${n(versions.length)}</span></h3>
    <ol class="versions summaries" reversed>${versions.map((/** @type {any} */ version) => html`<li key=${version.version}><details>
      <summary><${Head} summary=${version} /></summary>
      <${Text} text=${version.text} name=${`summary ${version.version}`} />
      ${version.covers_until > 0 && html`<p class="muted small">${t("talk.summary.covers", { seq: n(version.covers_until) })}</p>`}
    </details></li>`)}</ol></section>`;
}
