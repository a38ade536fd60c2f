/** One message of the conversation, with what can be done with it. */

import { day, n, t, time } from "../i18n/index.js";
import { Menu } from "../parts/menu.js";
import { oneLine } from "../parts/text.js";
import { html } from "../vendor/preact.js";
import { Body } from "./body.js";
import { isBlank, wordsOf } from "./content.js";
import { memo } from "./preact_more.js";
import { Switch } from "./switch.js";

/** @typedef {import("./content.js").Message} Message */
/** @typedef {import("./rows.js").MessageRow} Row */
/** @typedef {import("./talk.js").Talk} Talk */

const KNOWN = ["user", "assistant", "tool", "function", "system", "developer"];

/** @param {{row: Row, talk: Talk, chosen: boolean, flash: boolean, wanted: string}} props */
function draw({ row, talk, chosen, flash, wanted }) {
  const { message, mark } = row;
  const role = KNOWN.includes(message.message.role) ? message.message.role : "other";
  const answer = message.origin === "response";
  const pick = () => {
    if (answer && !getSelection()?.toString()) talk.choose(message.exchange_id);
  };
  return html`${row.day && html`<p class="day"><span>${day(message.created_at)}</span></p>`}
  <article class=${`bubble-row ${role} ${row.turn ? "turn" : ""} ${mark} ${message.state} ${chosen ? "chosen" : ""} ${flash ? "flash" : ""}`}
    data-focus tabindex="-1" aria-label=${t(`talk.role.${role}`)} data-id=${message.id} data-mark=${mark}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Enter" && event.target === event.currentTarget && answer && talk.choose(message.exchange_id)}>
    <span class="band" title=${mark ? t(`talk.mark.${mark}`) : undefined}></span>
    <div class="bubble" onClick=${answer ? pick : undefined}>
      <header class="bubble-head">
        <span class="who">${t(`talk.role.${role}`)}${message.message.name && html` <bdi>${oneLine(String(message.message.name))}</bdi>`}</span>
        <${Tags} row=${row} />
        <span class="facts num"><time dateTime=${new Date(message.created_at * 1000).toISOString()}>${time(message.created_at)}</time>
          · ${t("tokens.n", { n: message.tokens })} · #${message.seq}</span>
        ${answer && html`<button type="button" class="link-button why" aria-pressed=${chosen} onClick=${(/** @type {Event} */ event) => {
          event.stopPropagation();
          talk.choose(message.exchange_id);
        }}>${t("talk.why")}</button>`}
        ${menuOf(message, talk, row.results.size)}
      </header>
      <${Body} message=${message} results=${row.results} wanted=${wanted} menu=${(/** @type {Message} */ result) => menuOf(result, talk, 0)} />
      ${isBlank(message.message) && html`<p class="muted blank">${t("talk.blank")}</p>`}
      ${row.fork && html`<${Switch} fork=${row.fork} talk=${talk} />`}
    </div>
  </article>`;
}

export const Bubble = memo(draw);

/** @param {{row: Row}} props */
const Tags = ({ row: { message, mark, recalled } }) => html`
  ${message.incomplete && html`<span class="tag warn">${t("talk.incomplete")}</span>`}
  ${message.state === "superseded" && html`<span class="tag">${t("talk.superseded")}</span>`}
  ${message.origin === "import" && html`<span class="tag">${t("talk.imported")}</span>`}
  ${recalled && html`<span class="tag recalled" title=${t("talk.recalled.hint")}>★ ${t("talk.recalled", { score: recalled.score.toFixed(2) })}</span>`}
  ${(mark === "out" || mark === "covered") && html`<span class="tag dim">${t(`talk.mark.${mark}`)}</span>`}`;

/** @param {Message} message @param {Talk} talk @param {number} results */
function menuOf(message, talk, results) {
  const { act } = talk;
  const active = message.state === "active";
  const actions = [
    { label: t("edit"), onClick: () => act({ kind: "edit", message }) },
    { label: t("talk.copy"), onClick: () => act({ kind: "copy", text: wordsOf(message.message) }) },
    { label: t("talk.json"), onClick: () => act({ kind: "json", message }) },
    { label: t("talk.fork.here"), onClick: () => act({ kind: "fork", message }) },
    ...(active
      ? [{ label: t("talk.rewind.here"), onClick: () => act({ kind: "rewind", message }) }]
      : [{ label: t("talk.activate"), onClick: () => act({ kind: "activate", message }) }]),
    { label: t("talk.forget.here"), onClick: () => act({ kind: "forget", exchange: message.exchange_id }) },
    { label: t("delete"), danger: true, onClick: () => act({ kind: "remove", message, results }) },
  ];
  return html`<${Menu} label=${`${t("more")} #${n(message.seq)}`} actions=${actions} />`;
}
