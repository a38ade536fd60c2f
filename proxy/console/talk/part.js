/** The parts of a message: words, pictures, calls. */

import { bytes, t } from "../i18n/index.js";
import { Json } from "../parts/json.js";
import { oneLine, visible } from "../parts/text.js";
import { html } from "../vendor/preact.js";
import { useKept } from "./kept.js";
import { folded } from "./segments.js";
import { Text } from "./text.js";

/** @typedef {import("./contents.js").Part} Part */

/** Characters of JSON that are read into a tree. */
const MAX_JSON = 200_000;

/** @param {{part: Part, name: string, children?: any}} props `children`: what belongs to a call */
export function PartView({ part, name, children }) {
  if (part.kind === "text") return html`<${Text} text=${part.text} name=${name} />`;
  if (part.kind === "refusal") {
    return html`<div class="refusal"><span class="tag warn">${t("talk.refusal")}</span><${Text} text=${part.text} name=${name} /></div>`;
  }
  if (part.kind === "reasoning") {
    return html`<${Folded} name=${name} class="reasoning" label=${t("talk.reasoning")}><${Text} text=${part.text} name=${name} /></${Folded}>`;
  }
  if (part.kind === "image") return html`<${Picture} part=${part} />`;
  if (part.kind === "chip") {
    return html`<span class="chip"><span aria-hidden="true">${part.what === "audio" ? "♪" : "▤"}</span>${t(`talk.media.${part.what}`)} <bdi>${oneLine(part.text.slice(0, 200))}</bdi></span>`;
  }
  if (part.kind === "call") return html`<${Call} call=${part} name=${name}>${children}</${Call}>`;
  return html`<${Json} value=${part.value} open=${0} />`;
}

/** @param {{name: string, label: any, class: string, children?: any}} props */
export function Folded({ name, label, class: look, children }) {
  const [open, setOpen] = useKept(`${name} open`, false);
  return html`<div class=${`folded ${look}`}>
    <button type="button" class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      <span aria-hidden="true">${open ? "▾" : "▸"}</span>${label}</button>
    ${open && html`<div class="fold-inside">${children}</div>`}
  </div>`;
}

/** Pictures that are in the message are shown; others are never fetched. @param {{part: {url: string, inline: boolean}}} props */
function Picture({ part: { url, inline } }) {
  if (inline) return html`<img class="thumbnail" src=${url} alt=${t("talk.media.image")} title=${bytes(Math.round(url.length * 0.75))} />`;
  return html`<span class="chip" title=${t("talk.media.remote")}><span aria-hidden="true">▨</span>${t("talk.media.image")} <bdi class="mono">${oneLine(url.slice(0, 300))}</bdi></span>`;
}

/** @param {{call: {name: string, arguments: string}, name: string, children?: any}} props */
function Call({ call, name, children }) {
  const label = html`<span class="call-label"><b class="mono"><bdi>${oneLine(call.name.slice(0, 200))}</bdi></b><bdi class="mono muted call-brief">${oneLine(call.arguments.slice(0, 160))}</bdi></span>`;
  return html`<${Folded} name=${name} class="call" label=${label}>
    <${Data} text=${call.arguments} name=${`${name} arguments`} />
  </${Folded}>${children}`;
}

/** JSON as a tree; what is none, or too long for one, as text. @param {{text: string, name: string}} props */
export function Data({ text, name }) {
  if (text.length > MAX_JSON || (folded(text) < text.length && !/^\s*[[{]/.test(text))) {
    return html`<${Text} text=${text} name=${name} />`;
  }
  return text.trim() === "" ? html`<p class="muted small">${t("talk.nothing")}</p>` : html`<${Json} text=${text} open=${3} />`;
}

/** The result of a call. @param {{text: string, name: string}} props */
export function Result({ text, name }) {
  const structured = /^\s*[[{]/.test(text.slice(0, 200));
  const label = html`<span class="call-label"><span>${t("talk.result")}</span><bdi class="muted call-brief mono">${visible(text.slice(0, 160)).replace(/\s+/g, " ")}</bdi></span>`;
  return html`<${Folded} name=${name} class="result" label=${label}>
    ${structured ? html`<${Data} text=${text} name=${name} />` : html`<${Text} text=${text} name=${name} />`}
  </${Folded}>`;
}
