/** One message: who says what, whether the model saw it, and what can be done with it. */

import { n, t, time } from "../i18n/index.js";
import { Menu } from "../parts/menu.js";
import { Ago } from "../parts/time.js";
import { html } from "../vendor/preact.js";
import { partsOf, textOf } from "./contents.js";
import { PartView, Result } from "./part.js";

/** @typedef {import("./items.js").MessageItem} MessageItem */
/** @typedef {import("./marks.js").Mark} Mark */
/** @typedef {import("./branches.js").Stored} Stored */
/** What a message asks of its screen. @typedef {{actions: (stored: Stored) => import("../parts/menu.js").Action[], turn: (fork: import("./branches.js").Fork, step: number) => void, activate: (stored: Stored) => void, choose: (stored: Stored) => void, why: (stored: Stored) => void}} Doing */

const ROLES = ["user", "assistant", "system", "developer", "tool", "function"];

/** @param {{item: MessageItem, marks: import("./marks.js").Marks, chosen: string | null, flash: boolean, doing: Doing}} props `chosen`: the exchange that is looked at */
export function Message({ item, marks, chosen, flash, doing }) {
  const { stored, fork } = item;
  const mark = marks.of.get(stored.id);
  const role = ROLES.includes(stored.message.role) ? stored.message.role : "other";
  const looks = [
    "talk-item", "message", `by-${role}`, stored.state, `sight-${mark?.sight ?? "none"}`,
    item.turn && "turn", flash && "flash", chosen === stored.exchange_id && "chosen",
  ];
  return html`<article class=${looks.filter(Boolean).join(" ")} id=${`m-${stored.id}`} data-id=${stored.id}
    data-focus tabindex="-1" aria-label=${t(`talk.role.${role}`)}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Enter" && event.target === event.currentTarget && doing.why(stored)}>
    <${Band} mark=${mark} />
    <div class="message-all">
      ${fork && html`<${Switch} fork=${fork} stored=${stored} doing=${doing} />`}
      ${item.first && role !== "user" && html`<p class="role">${t(`talk.role.${role}`)}</p>`}
      <div class="bubble" onClick=${(/** @type {MouseEvent} */ event) => isPlain(event) && doing.choose(stored)}><${Words} stored=${stored} results=${item.results} doing=${doing} /></div>
      <${Foot} stored=${stored} mark=${mark} doing=${doing} />
    </div>
  </article>`;
}

/** A click on the words themselves, not on what is in them, nor to select some. @param {MouseEvent} event */
const isPlain = (event) =>
  event.target instanceof Element &&
  !event.target.closest("a, button, img, pre, [popover]") &&
  (getSelection()?.isCollapsed ?? true);

/** The stripe beside what the model saw. @param {{mark: Mark | undefined}} props */
export const Band = ({ mark }) => html`<span class="band" title=${mark ? t(`talk.sight.${mark.sight}`) : undefined}>
  ${mark && html`<span class="sr-only">${t(`talk.sight.${mark.sight}`)}</span>`}</span>`;

/** @param {{stored: Stored, results: Stored[], doing: Doing}} props */
function Words({ stored, results, doing }) {
  const { message } = stored;
  if (message.role === "tool" || message.role === "function") {
    return html`<${Result} text=${textOf(message)} name=${stored.id} />`;
  }
  const parts = partsOf(message);
  const called = new Set(parts.flatMap((part) => (part.kind === "call" ? [part.id] : [])));
  const rest = results.filter((result) => !called.has(result.message.tool_call_id));
  return html`${parts.length === 0 && html`<p class="muted">${t("talk.blank")}</p>`}
    ${parts.map((part, at) => html`<${PartView} key=${at} part=${part} name=${`${stored.id} ${at}`}>
      ${part.kind === "call" && results.filter((one) => one.message.tool_call_id === part.id).map((one) => answer(one, doing))}
    </${PartView}>`)}
    ${rest.map((one) => answer(one, doing))}`;
}

/** @param {Stored} stored @param {Doing} doing */
const answer = (stored, doing) => html`<div class="answer" key=${stored.id} id=${`m-${stored.id}`}>
  <${Result} text=${textOf(stored.message)} name=${stored.id} />
  <${Menu} label=${t("talk.actions")} actions=${doing.actions(stored)} />
</div>`;

/** @param {{stored: Stored, mark: Mark | undefined, doing: Doing}} props */
const Foot = ({ stored, mark, doing }) => html`<footer class="message-foot">
  ${stored.incomplete && html`<span class="tag warn">${t("talk.incomplete")}</span>`}
  ${stored.state === "superseded" && html`<span class="tag">${t("talk.superseded")}</span>`}
  ${mark?.sight === "recalled" && html`<span class="tag accent">${t("talk.recalled")}${mark.score === undefined ? "" : html` <span class="num">${mark.score.toFixed(2)}</span>`}</span>`}
  <span class="message-meta">
    <span title=${time(stored.created_at)}><${Ago} at=${stored.created_at} /></span>
    <span class="num">${t("tokens.n", { n: stored.tokens })}</span>
    <span class="num">#${n(stored.seq)}</span>
    <button type="button" class="link-button" onClick=${() => doing.why(stored)}>${t("talk.why")}</button>
    <${Menu} label=${t("talk.actions")} actions=${doing.actions(stored)} />
  </span>
</footer>`;

/** @param {{fork: import("./branches.js").Fork, stored?: Stored, doing: Doing}} props */
export const Switch = ({ fork, stored, doing }) => html`<div class="switch" role="group" aria-label=${t("talk.branches")}>
  <button type="button" class="icon-button" aria-label=${t("talk.branch.before")} disabled=${fork.index === 0}
    onClick=${() => doing.turn(fork, -1)}>‹</button>
  <span class="num" aria-live="polite">${n(fork.index + 1)}/${n(fork.options.length)}</span>
  <button type="button" class="icon-button" aria-label=${t("talk.branch.after")} disabled=${fork.index === fork.options.length - 1}
    onClick=${() => doing.turn(fork, 1)}>›</button>
  ${stored?.state === "superseded" && html`<button type="button" class="link-button" onClick=${() => doing.activate(stored)}>${t("talk.activate")}</button>`}
</div>`;
