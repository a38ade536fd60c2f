/** What a message says, as parts that can be shown.  Pure: OpenAI's chat format in, plain values out. */

/** @typedef {{role: string, content?: any, [name: string]: any}} Said */
/** @typedef {{id: string, seq: number, exchange_id: string, message: Said, tokens: number, state: "active" | "superseded", origin: "request" | "response" | "import", incomplete: boolean, created_at: number}} Message */
/** `src`: a data: URL that can be shown. @typedef {{type: "text" | "refusal" | "reasoning" | "kept", text: string} | {type: "image", src: string | null, text: string} | {type: "audio" | "file", text: string} | {type: "other", value: unknown}} Part */
/** @typedef {{id: string, name: string, arguments: string}} Call */

/** What history keeps in the place of media: its type, size and hash. */
const PLACEHOLDER = /^\[[^[\]\n]{1,200}, \d+ bytes, sha256 [0-9a-f]{16}\]$/;

/** Raster images only: they are pictures and nothing else. */
const IMAGE = /^data:image\/(?:png|jpeg|jpg|gif|webp|avif|bmp)[;,]/i;

/** @param {any} value */
const text = (value) => (typeof value === "string" ? value : value == null ? "" : (JSON.stringify(value) ?? ""));

/** All that a message says but its tool calls. @param {Said} message @returns {Part[]} */
export function partsOf(message) {
  const reasoning = [message.reasoning_content, message.reasoning].find((each) => typeof each === "string" && each);
  const refusal = typeof message.refusal === "string" && message.refusal;
  return [
    .../** @type {Part[]} */ (reasoning ? [{ type: "reasoning", text: reasoning }] : []),
    ...contentParts(message.content),
    .../** @type {Part[]} */ (refusal ? [{ type: "refusal", text: refusal }] : []),
    .../** @type {Part[]} */ (message.audio ? [{ type: "audio", text: text(message.audio.transcript ?? message.audio.id) }] : []),
  ];
}

/** @param {any} content @returns {Part[]} */
function contentParts(content) {
  if (typeof content === "string") return content === "" ? [] : [plain(content)];
  if (Array.isArray(content)) return content.map(partOf);
  return content == null ? [] : [{ type: "other", value: content }];
}

/** @param {string} said @returns {Part} */
const plain = (said) => ({ type: PLACEHOLDER.test(said) ? "kept" : "text", text: said });

/** @type {Record<string, (part: any) => Part>} */
const READERS = {
  text: (part) => plain(text(part.text)),
  refusal: (part) => ({ type: "refusal", text: text(part.refusal) }),
  thinking: (part) => ({ type: "reasoning", text: text(part.thinking ?? part.text) }),
  reasoning: (part) => ({ type: "reasoning", text: text(part.reasoning ?? part.text) }),
  image_url: (part) => image(text(part.image_url?.url ?? part.image_url)),
  input_audio: (part) => media("audio", part.input_audio?.data, part.input_audio?.format),
  file: (part) => media("file", part.file?.file_data, part.file?.filename ?? part.file?.file_id),
};

/** @param {any} part @returns {Part} */
function partOf(part) {
  if (typeof part === "string") return plain(part);
  const read = Object.hasOwn(READERS, String(part?.type)) ? READERS[part.type] : undefined;
  return read ? read(part) : { type: "other", value: part };
}

/** @param {string} url @returns {Part} */
function image(url) {
  if (PLACEHOLDER.test(url)) return { type: "kept", text: url };
  return { type: "image", src: IMAGE.test(url) ? url : null, text: url.startsWith("data:") ? url.slice(0, 60) : url };
}

/** @param {"audio" | "file"} type @param {any} data @param {any} label @returns {Part} */
function media(type, data, label) {
  if (typeof data === "string" && PLACEHOLDER.test(data)) return { type: "kept", text: data };
  return { type, text: text(label) };
}

/** The calls of a message, of either format. @param {Said} message @returns {Call[]} */
export function callsOf(message) {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  const old = message.function_call;
  return [
    ...calls.map((/** @type {any} */ call) => ({
      id: text(call?.id),
      name: text(call?.function?.name ?? call?.custom?.name ?? call?.type),
      arguments: text(call?.function?.arguments ?? call?.custom?.input),
    })),
    ...(old ? [{ id: `function:${text(old.name)}`, name: text(old.name), arguments: text(old.arguments) }] : []),
  ];
}

/** Which call a message answers, "" if none. @param {Said} message */
export function answerTo(message) {
  if (message.role === "tool") return text(message.tool_call_id);
  return message.role === "function" ? `function:${text(message.name)}` : "";
}

/** Does it say nothing at all? @param {Said} message */
export const isBlank = (message) =>
  callsOf(message).length === 0 &&
  partsOf(message).every((part) => part.type === "text" && part.text.trim() === "");

/** All its text, to be searched and copied. @param {Said} message */
export const wordsOf = (message) =>
  [
    ...partsOf(message).map((part) => ("text" in part ? part.text : text(part.value))),
    ...callsOf(message).map((call) => `${call.name}(${call.arguments})`),
  ].join("\n\n");
