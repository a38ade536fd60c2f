/** What can be done with a message and with the session, each after a question. */

import { seg, unchanged } from "../api.js";
import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { links } from "../links.js";
import { copy } from "../parts/copying.js";
import { visible } from "../parts/text.js";
import { html, useMemo, useRef, useState } from "../vendor/preact.js";
import { textOf } from "./contents.js";
import { callsOf } from "./items.js";
import { changeSummary } from "./summarizing.js";

/** @typedef {import("./branches.js").Stored} Stored */
/** @typedef {import("./state.js").Talk} Talk */
/** The dialog that is open. @typedef {{kind: "edit", stored: Stored} | {kind: "fork", until: string | null} | {kind: "forget", exchange: string | null} | {kind: "delete" | "details" | "export" | "metadata" | "summary" | "system"}} Open */
/** @typedef {import("../context.js").App} App */
/** `inspect`: let the inspector be seen. @typedef {{app: App, talk: Talk, inspect: () => void, setOpen: (open: Open) => void}} Hands */

const QUOTED = 400;

/** @param {Talk} talk @param {() => void} inspect */
export function useDoing(talk, inspect) {
  const app = useApp();
  const [open, setOpen] = useState(/** @type {Open | null} */ (null));
  const hands = useRef(/** @type {Hands} */ ({ app, talk, inspect, setOpen }));
  hands.current = { app, talk, inspect, setOpen };
  const doing = useMemo(
    () => /** @type {import("./message.js").Doing} */ ({
      actions: (stored) => ofMessage(stored, () => hands.current),
      activate: (stored) => void activate(stored, hands.current),
      choose: (stored) => lookAt(stored, hands.current),
      why: (stored) => why(stored, hands.current),
      turn: ({ at, index, options }, step) => {
        const { chosen, choose } = hands.current.talk;
        const to = options[index + step];
        if (to !== undefined) choose(new Map([...chosen, [at, to]]));
      },
    }),
    [],
  );
  return { doing, open, setOpen, close: () => setOpen(null), ofSession: ofSession(hands.current), ofSummary: ofSummary(hands.current) };
}

/** @param {Stored} stored @param {() => Hands} hands @returns {import("../parts/menu.js").Action[]} */
function ofMessage(stored, hands) {
  const active = stored.state === "active";
  const address = () => new URL(links.session(hands().talk.id, { message: stored.id }), document.baseURI).href;
  return [
    { label: t("talk.why.long"), onClick: () => why(stored, hands()) },
    { label: t("talk.copy.text"), onClick: () => void copy(textOf(stored.message), hands().app) },
    { label: t("talk.copy.link"), onClick: () => void copy(address(), hands().app) },
    { label: t("talk.edit"), onClick: () => hands().setOpen({ kind: "edit", stored }) },
    { label: t("talk.fork"), onClick: () => hands().setOpen({ kind: "fork", until: stored.id }) },
    active
      ? { label: t("talk.rewind"), onClick: () => void rewind(stored, hands()) }
      : { label: t("talk.activate"), onClick: () => void activate(stored, hands()) },
    { label: t("talk.forget"), onClick: () => hands().setOpen({ kind: "forget", exchange: stored.exchange_id }) },
    { label: t("talk.delete"), danger: true, onClick: () => void remove(stored.id, hands()) },
  ];
}

/** @param {Hands} hands @returns {import("../parts/menu.js").Action[]} */
const ofSession = ({ setOpen }) => [
  { label: t("export"), onClick: () => setOpen({ kind: "export" }) },
  { label: t("talk.fork.all"), onClick: () => setOpen({ kind: "fork", until: null }) },
  { label: t("talk.forget.all"), onClick: () => setOpen({ kind: "forget", exchange: null }) },
  { label: t("talk.session.delete"), danger: true, onClick: () => setOpen({ kind: "delete" }) },
];

/** @param {Hands} hands @returns {import("../parts/menu.js").Action[]} */
const ofSummary = (hands) => [
  { label: t("talk.edit"), onClick: () => hands.setOpen({ kind: "summary" }) },
  { label: t("talk.summary.rebuild"), onClick: () => void changeSummary("rebuild", summarized(hands)) },
  { label: t("talk.summary.forget"), danger: true, onClick: () => void changeSummary("forget", summarized(hands)) },
];

/** @param {Hands} hands @returns {import("./summarizing.js").Summarized} */
const summarized = ({ app, talk: { session, etag, changed } }) => ({ app, session, etag, changed });

/** Its exchange is the one that is looked at. @param {Stored} stored @param {Hands} hands */
const lookAt = ({ exchange_id: exchange }, { app, talk }) => app.navigate(links.session(talk.id, { exchange }));

/** The same, and it is seen what memory did, where the inspector is not beside it. @param {Stored} stored @param {Hands} hands */
function why(stored, hands) {
  lookAt(stored, hands);
  hands.inspect();
}

/** @param {Hands} hands */
const path = ({ talk }) => `/sessions/${seg(talk.id)}`;

/** @param {Hands} hands @param {Promise<unknown>} work @param {string} done */
const told = ({ app, talk }, work, done) =>
  work.then(() => (app.toast(done, "success"), talk.changed()), (error) => {
    if (error.status === 412) app.toast(t("talk.overtaken"), "error");
    else app.failed(error);
    talk.changed();
  });

/** @param {Stored} stored */
const quoted = (stored) => {
  const text = textOf(stored.message);
  return html`<blockquote class="quoted" dir="auto"><bdi>${visible(text.slice(0, QUOTED))}${text.length > QUOTED ? "…" : ""}</bdi></blockquote>`;
};

/** As it is now, and only as long as it is so. @param {string} id of a message @param {Hands} hands */
async function remove(id, hands) {
  const { api, confirm, failed } = hands.app;
  const at = `${path(hands)}/messages/${seg(id)}`;
  const read = await api.get(at).catch(failed);
  if (!read) return;
  const calls = new Set(callsOf(read.data.message));
  const results = hands.talk.log.messages.filter((one) => calls.has(one.message.tool_call_id)).length;
  const body = html`${quoted(read.data)}<p>${t("talk.delete.hint")}</p>
    ${results > 0 && html`<p class="note warn">${t("talk.delete.results", { n: results })}</p>`}`;
  const sure = await confirm({ title: t("talk.delete.title"), body, action: t("delete"), danger: true });
  if (sure) await told(hands, api.del(at, {}, unchanged(read)), t("talk.deleted"));
}

/** @param {Stored} stored @param {Hands} hands */
async function rewind(stored, hands) {
  const active = hands.talk.log.messages.filter((one) => one.state === "active" && one.seq >= stored.seq);
  const body = html`${quoted(stored)}<p>${t(hands.talk.log.bottom ? "talk.rewind.hint" : "talk.rewind.more", { n: active.length })}</p>`;
  const sure = await hands.app.confirm({ title: t("talk.rewind.title"), body, action: t("talk.rewind.now") });
  if (!sure) return;
  await told(hands, hands.app.api.post(`${path(hands)}/rewind`, { to: stored.id }, unchanged(hands.talk)), t("talk.rewound"));
}

/** @param {Stored} stored @param {Hands} hands */
async function activate(stored, hands) {
  const { entries } = hands.talk.view;
  const at = entries.findIndex((entry) => entry.stored.id === stored.id);
  const end = at < 0 ? stored : (entries.at(-1)?.stored ?? stored);
  const body = html`${quoted(stored)}<p>${t("talk.activate.hint")}</p>`;
  const sure = await hands.app.confirm({ title: t("talk.activate.title"), body, action: t("talk.activate") });
  if (!sure) return;
  const asked = hands.app.api.post(`${path(hands)}/messages/${seg(end.id)}/activate`, undefined, unchanged(hands.talk));
  await told(hands, asked.then(() => hands.talk.choose(new Map())), t("talk.activated"));
}
