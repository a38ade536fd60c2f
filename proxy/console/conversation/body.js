/** What a message says, drawn: text, pictures, chips for what cannot be shown, calls with their results. */

import { bytes, t } from "../i18n/index.js";
import { Json, parsed } from "../parts/json.js";
import { linkOf, oneLine, visible } from "../parts/text.js";
import { html, useState } from "../vendor/preact.js";
import { callsOf, partsOf, wordsOf } from "./content.js";
import { LongText } from "./long_text.js";

/** @typedef {import("./content.js").Part} Part */
/** @typedef {import("./content.js").Call} Call */
/** @typedef {import("./content.js").Message} Message */

/** Longer JSON is shown as text, in portions. */
const LONGEST = 100_000;

/** @param {{message: Message, results: Map<string, Message>, wanted: string, menu: (message: Message) => any}} props */
export const Body = ({ message, results, wanted, menu }) => html`
  ${partsOf(message.message).map((part, index) => html`<${One} key=${index} part=${part} wanted=${wanted} />`)}
  ${callsOf(message.message).map((call, index) => html`<${CallView} key=${index} call=${call} wanted=${wanted}
    result=${results.get(call.id) ?? null} menu=${menu} />`)}`;

/** @param {{part: Part, wanted: string}} props */
function One({ part, wanted }) {
  if (part.type === "text") return html`<${LongText} text=${part.text} wanted=${wanted} />`;
  if (part.type === "refusal") return html`<div class="refusal"><b>${t("talk.refusal")}</b><${LongText} text=${part.text} wanted=${wanted} /></div>`;
  if (part.type === "reasoning") return html`<${Fold} label=${t("talk.reasoning")} class="reasoning"><${LongText} text=${part.text} wanted=${wanted} /></${Fold}>`;
  if (part.type === "image") return html`<${Picture} src=${part.src} text=${part.text} />`;
  if (part.type === "other") return html`<${Json} value=${part.value} open=${1} />`;
  return html`<p class="media"><span class="media-kind">${t(`talk.media.${part.type}`)}</span> <bdi class="mono">${oneLine(part.text)}</bdi></p>`;
}

/** Pictures that came with the message are shown; others are never fetched. @param {{src: string | null, text: string}} props */
function Picture({ src, text }) {
  const [large, setLarge] = useState(false);
  if (src === null) {
    const link = linkOf(text);
    const address = visible(text);
    return html`<p class="media"><span class="media-kind">${t("talk.media.image")}</span>
      ${link ? html`<a href=${link} rel="noreferrer noopener" target="_blank"><bdi class="mono">${address}</bdi></a>` : html`<bdi class="mono">${address}</bdi>`}
      <span class="muted">${t("talk.media.link")}</span></p>`;
  }
  const size = bytes(Math.round((src.length - src.indexOf(",")) * 0.75));
  return html`<button type="button" class=${`thumb ${large ? "large" : ""}`} aria-expanded=${large}
    title=${size} onClick=${() => setLarge(!large)}><img src=${src} alt=${t("talk.image", { size })} loading="lazy" decoding="async" /></button>`;
}

/** @param {{label: any, class?: string, open?: boolean, children?: any}} props */
export function Fold({ label, class: name = "", open = false, children }) {
  const [unfolded, setUnfolded] = useState(open);
  return html`<div class=${`fold ${name}`}>
    <button type="button" class="fold-head" aria-expanded=${unfolded} onClick=${() => setUnfolded(!unfolded)}>
      <span class="fold-mark" aria-hidden="true">${unfolded ? "▾" : "▸"}</span>${label}</button>
    ${unfolded && html`<div class="fold-body">${children}</div>`}
  </div>`;
}

/** @param {{call: Call, result: Message | null, wanted: string, menu: (message: Message) => any}} props */
function CallView({ call, result, wanted, menu }) {
  const broken = call.arguments.length <= LONGEST && call.arguments.trim() !== "" && parsed(call.arguments).broken;
  const hit = wanted !== "" && `${call.name} ${call.arguments} ${result ? wordsOf(result.message) : ""}`.toLowerCase().includes(wanted);
  const label = html`<span class="call-name">${t("talk.call")} <bdi class="mono">${oneLine(call.name)}</bdi></span>
    <bdi class="call-brief mono">${oneLine(call.arguments.slice(0, 120))}</bdi>
    ${broken && html`<span class="tag warn">${t("talk.call.broken")}</span>`}
    ${!result && html`<span class="tag">${t("talk.call.open")}</span>`}`;
  return html`<${Fold} key=${hit} class="call" label=${label} open=${hit}>
    <p class="label">${t("talk.call.arguments")} <span class="mono">${call.id}</span></p>
    <${Arguments} text=${call.arguments} />
    ${result && html`<div class=${`result ${result.state}`} id=${result.id}>
      <p class="label">${t("talk.call.result")}${menu(result)}</p>
      <${Result} message=${result} wanted=${wanted} />
    </div>`}
  </${Fold}>`;
}

/** @param {{text: string}} props */
const Arguments = ({ text }) =>
  text.trim() === "" ? html`<p class="muted">${t("talk.call.none")}</p>`
  : text.length > LONGEST ? html`<${LongText} text=${text} plain=${true} />`
  : html`<${Json} text=${text} open=${3} />`;

/** A result that is JSON is shown as such. @param {{message: Message, wanted: string}} props */
function Result({ message, wanted }) {
  const { content } = message.message;
  const read = typeof content === "string" && content.length <= LONGEST && /^\s*[[{]/.test(content) ? parsed(content) : null;
  if (read && !read.broken && wanted === "") return html`<${Json} value=${read.value} open=${2} />`;
  return partsOf(message.message).map((part, index) => html`<${One} key=${index} part=${part} wanted=${wanted} />`);
}
