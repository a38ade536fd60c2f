/** What a message says, in parts.  Pure: it may hold anything, a model or a client wrote it. */

import { written } from "../parts/exact.js";

/** @typedef {{kind: "text", text: string} | {kind: "refusal", text: string} | {kind: "reasoning", text: string} | {kind: "image", url: string, inline: boolean} | {kind: "chip", what: "audio" | "file", text: string} | {kind: "call", id: string, name: string, arguments: string} | {kind: "other", value: unknown}} Part */

/** Images that are shown are in the message itself: nothing is fetched. */
const INLINE = /^data:image\/(png|jpeg|gif|webp|avif|bmp);base64,/i;

/** @param {any} message @returns {Part[]} */
export function partsOf(message) {
  return [
    ...reasoningOf(message),
    ...contentOf(message.content),
    ...(typeof message.refusal === "string" && message.refusal ? [said("refusal", message.refusal)] : []),
    ...(message.audio ? [chip("audio", message.audio.transcript ?? message.audio.id)] : []),
    ...list(message.tool_calls).map(callOf),
    ...(message.function_call ? [callOf({ function: message.function_call })] : []),
  ];
}

/** All that is text in a message, to be searched. @param {any} message */
export const textOf = (message) =>
  partsOf(message)
    .map((part) => ("text" in part ? part.text : part.kind === "call" ? `${part.name} ${part.arguments}` : ""))
    .join("\n");

/** @param {any} value @returns {any[]} */
const list = (value) => (Array.isArray(value) ? value : []);

/** @param {"text" | "refusal" | "reasoning"} kind @param {string} text @returns {Part} */
const said = (kind, text) => ({ kind, text });

/** @param {"audio" | "file"} what @param {unknown} text @returns {Part} */
const chip = (what, text) => ({ kind: "chip", what, text: typeof text === "string" ? text : "" });

/** @param {any} message @returns {Part[]} */
function reasoningOf(message) {
  const found = [message.reasoning_content, message.reasoning, message.thinking].find((one) => typeof one === "string");
  return found ? [said("reasoning", found)] : [];
}

/** @param {unknown} content @returns {Part[]} */
function contentOf(content) {
  if (content === null || content === undefined || content === "") return [];
  if (typeof content === "string") return [said("text", content)];
  return Array.isArray(content) ? content.map(partOf) : [{ kind: "other", value: content }];
}

/** @param {any} part @returns {Part} */
function partOf(part) {
  if (typeof part?.text === "string") return said("text", part.text);
  if (typeof part?.refusal === "string") return said("refusal", part.refusal);
  const image = part?.image_url?.url ?? part?.image_url;
  if (typeof image === "string") return { kind: "image", url: image, inline: INLINE.test(image) };
  if (part?.input_audio) return chip("audio", part.input_audio.format);
  if (part?.file) return chip("file", part.file.filename ?? part.file.file_id);
  return { kind: "other", value: part };
}

/** @param {any} call @returns {Part} */
const callOf = (call) => {
  const given = call?.function?.arguments ?? call?.custom?.input ?? "";
  return {
    kind: "call",
    id: String(call?.id ?? ""),
    name: String(call?.function?.name ?? call?.custom?.name ?? "?"),
    arguments: typeof given === "string" ? given : written(given),
  };
};
