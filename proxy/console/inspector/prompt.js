/** What stood in a prompt, in its order: by ids, which is all that is kept; words are asked for. */

import { seg } from "../api.js";
import { n, named, t } from "../i18n/index.js";
import { usePoll } from "../parts/poll.js";
import { oneLine } from "../parts/text.js";
import { textOf } from "../talk/contents.js";
import { html, useState } from "../vendor/preact.js";
import { groupsOf } from "./figures.js";

/** Characters of a message in a list. */
const MAX_CHARACTERS = 90;
/** Messages whose words are asked for at once. */
const PAGE = 1000;

/** @param {{shown: readonly any[], cut: number, session: string, onJump: (message: string, session: string | null) => void}} props */
export function PromptList({ shown, cut, session, onJump }) {
  if (shown.length === 0) return html`<p class="muted">${t("why.shown.none")}</p>`;
  return html`<ol class="prompt-list">${groupsOf([...shown]).map((group, at) => html`<li key=${at}>
      ${group.pieces.length > 1
        ? html`<${Messages} ...${{ group, session, onJump }} />`
        : html`<${Piece} ...${{ piece: group.pieces[0], session, onJump }} />`}</li>`)}</ol>
    ${cut > 0 && html`<p class="note">${t("why.shown.cut", { n: cut })}</p>`}`;
}

/** @param {{group: import("./figures.js").Group, session: string, onJump: (message: string, session: string | null) => void}} props */
function Messages({ group, session, onJump }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}>
    <summary><i class="swatch of-messages"></i><span>${t("messages.n", { n: group.pieces.length })}</span>
      <span class="muted num">${n(group.tokens)}</span></summary>
    ${open && html`<${Window} pieces=${group.pieces} session=${session} onJump=${onJump} />`}
  </details>`;
}

/** @param {{pieces: import("./figures.js").Piece[], session: string, onJump: (message: string, session: string | null) => void}} props */
function Window({ pieces, session, onJump }) {
  const path = `/sessions/${seg(session)}/messages`;
  const first = usePoll(`${path}/${seg(pieces[0]?.id ?? "")}`, {}, 0);
  const after = first.data ? first.data.seq - 1 : null;
  const all = usePoll(after === null ? null : path, { state: "active,superseded", after, limit: PAGE }, 0);
  const known = new Map((all.data?.data ?? []).map((/** @type {any} */ one) => [one.id, one.message]));
  return html`<ol class="prompt-list inside">${pieces.map((piece) => html`<li key=${piece.id}>
    <${Piece} ...${{ piece, session, onJump, message: known.get(piece.id) }} /></li>`)}</ol>`;
}

/** @param {{piece: import("./figures.js").Piece, session: string, message?: any, onJump: (message: string, session: string | null) => void}} props */
function Piece({ piece, session, message, onJump }) {
  const { kind, id, session_id: from, tokens, score, version } = piece;
  const words = message ? oneLine(textOf(message).slice(0, MAX_CHARACTERS)) : "";
  const label = html`<span class="piece-kind">${message ? named("talk.role", String(message.role)) : named("piece", kind)}
      ${version !== undefined && html` <span class="muted">${t("talk.summary.version", { version })}</span>`}</span>
    <bdi class="piece-words muted">${words || (from && from !== session ? from : "")}</bdi>
    ${score !== undefined && html`<span class="muted num">${score.toFixed(2)}</span>`}
    <span class="muted num">${n(tokens)}</span>`;
  const jumps = id !== null && from !== null;
  return html`<div class="piece"><i class=${`swatch of-${COLOURS[kind] ?? "known"}`}></i>
    ${jumps ? html`<button type="button" class="piece-button" onClick=${() => onJump(id, from === session ? null : from)}>${label}</button>` : html`<span class="piece-button">${label}</span>`}
  </div>`;
}

/** By what a piece is. @type {Record<string, string>} */
const COLOURS = { system: "system", summary: "summary", message: "messages", passage: "recalled", instruction: "recalled", preference: "recalled" };
