/** A session's summary is made anew or forgotten, each after a question. */

import { seg } from "../api.js";
import { t } from "../i18n/index.js";
import { patched } from "../parts/patching.js";

/** Whose summary, as it was read, and who is told of a change. @typedef {{app: import("../context.js").App, session: any, etag: string | null, changed: () => void}} Summarized */

/** @param {"rebuild" | "forget"} how @param {Summarized} whose */
export async function changeSummary(how, whose) {
  const { app, changed } = whose;
  const question = { title: t(`talk.summary.${how}.title`), body: t(`talk.summary.${how}.hint`), action: t(`talk.summary.${how}`) };
  if (!(await app.confirm({ ...question, danger: how === "forget" }))) return;
  await (how === "forget" ? forget(whose) : rebuild(whose)).then(
    (now) => (now === null ? app.toast(t(`talk.summary.${how}.done`), "success") : app.toast(t("talk.overtaken"), "error")),
    app.failed,
  );
  changed();
}

/** @param {Summarized} whose @returns null: done; else the summary as somebody else has changed it */
const forget = ({ app, session: { id, summary }, etag }) =>
  patched(app.api, `/sessions/${seg(id)}`, { summary: null }, { value: summary, etag }, (data) => data.summary);

/** @param {Summarized} whose @returns {Promise<null>} */
const rebuild = ({ app, session: { id } }) => app.api.post(`/sessions/${seg(id)}/summary/rebuild`).then(() => null);
