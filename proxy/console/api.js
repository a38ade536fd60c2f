/** The memory API over HTTP.  The key lives in this object and nowhere else. */

import { t } from "./i18n/index.js";
import { read, written } from "./parts/exact.js";

/** A list is given as several values of one name. @typedef {Record<string, string | number | boolean | string[] | null | undefined>} Params */
/** @typedef {{data: any, etag: string | null, status: number}} Answer */

const BASE = new URL("../v1", import.meta.url).href;

/** A refusal, in the words of the API; `code` is "unreachable" where no answer came. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 where no answer came
   * @param {string} code
   * @param {string} message
   * @param {string | null} [param]
   */
  constructor(status, code, message, param = null) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

/** Will it pass by itself: no answer, or a refusal for lack of something? @param {unknown} error */
export const isOutage = (error) => error instanceof ApiError && (error.status === 0 || error.status === 503);

/** An id as one segment of a path. @param {string} id */
export const seg = (id) => encodeURIComponent(id);

/** As it was read: whoever changed it meanwhile is not overruled. @param {{etag: string | null}} read */
export const unchanged = ({ etag }) => ({ headers: /** @type {Record<string, string>} */ (etag ? { "if-match": etag } : {}) });

/** Can this be sent as a key at all?  RFC 6750's b64token and what people use besides. */
const KEY = /^[\x21-\x7e]+$/;

export class Api {
  /** null: it is no longer taken. @type {string | null} */ #key;
  /** What goes on with another. @type {((key: string) => void)[]} */ #waiting = [];

  /**
   * @param {string | null} key "" for callers without one
   * @param {string | null} tenant whose memory, for the administrator; else null
   */
  constructor(key, tenant = null) {
    this.#key = key;
    this.tenant = tenant;
    /** Told when the key is no longer taken; all questions wait for another then.  null: they fail. @type {(() => void) | null} */
    this.onRefused = null;
    /** Told of every answer that is none of an outage. @type {() => void} */
    this.onAnswer = () => {};
    /** How often something was changed: what was read before may be so no longer. */
    this.changes = 0;
  }

  /** The same caller with another tenant's memory. @param {string | null} tenant */
  of(tenant) {
    return new Api(this.#key, tenant);
  }

  /** Another key in place of one that is no longer taken. @param {Api} other who has it */
  renew(other) {
    const key = (this.#key = other.#key ?? "");
    for (const goOn of this.#waiting.splice(0)) goOn(key);
  }

  /**
   * @param {string} path
   * @param {Params} [params]
   * @param {{signal?: AbortSignal, etag?: string | null}} [options]
   * @returns {Promise<Answer>} `data` is null with status 304
   */
  get(path, params = {}, { signal, etag } = {}) {
    /** @type {Record<string, string>} */
    const headers = etag ? { "if-none-match": etag } : {};
    return this.#ask("GET", path, { params, headers, signal });
  }

  /** @param {string} path @param {unknown} [body] @param {Asking} [options] */
  post(path, body, options = {}) {
    return this.#ask("POST", path, { ...options, body });
  }

  /** @param {string} path @param {unknown} body @param {Asking} [options] */
  patch(path, body, options = {}) {
    return this.#ask("PATCH", path, { ...options, body });
  }

  /** @param {string} path @param {unknown} body @param {Asking} [options] */
  put(path, body, options = {}) {
    return this.#ask("PUT", path, { ...options, body });
  }

  /** @param {string} path @param {Params} [params] @param {Asking} [options] */
  del(path, params = {}, options = {}) {
    return this.#ask("DELETE", path, { ...options, params });
  }

  /**
   * Fetch a file and hand it to the browser to be saved.
   * @param {string} path
   * @param {Params} params
   * @param {string} filename
   * @param {(bytes: number) => void} [onProgress]
   */
  async download(path, params, filename, onProgress = () => {}) {
    const response = await this.#fetch("GET", path, { params });
    if (!response.ok) throw await refusal(response);
    save(await whole(response, onProgress), filename);
  }

  /**
   * @param {string} path
   * @param {Params} params
   * @param {Blob} file
   * @param {(sent: number, total: number) => void} [onProgress]
   * @returns {Promise<Answer>}
   */
  async upload(path, params, file, onProgress = () => {}) {
    const response = await this.#keyed((key) => this.#upload(key, this.#url(path, params), file, onProgress));
    this.changes += 1; // what was before a mistake in the file is there
    if (!response.ok) throw await refusal(response);
    return { data: parsed(await response.text()), etag: null, status: response.status };
  }

  /**
   * By XMLHttpRequest, which tells how much is sent.
   * @param {string} key @param {URL} url @param {Blob} file @param {(sent: number, total: number) => void} onProgress
   * @returns {Promise<Response>}
   */
  #upload(key, url, file, onProgress) {
    const request = new XMLHttpRequest();
    request.open("POST", url);
    if (key) request.setRequestHeader("authorization", `Bearer ${key}`);
    request.setRequestHeader("content-type", "application/x-ndjson");
    request.upload.onprogress = (event) => onProgress(event.loaded, event.total);
    return new Promise((resolve, reject) => {
      request.onload = () => resolve(new Response(request.responseText, { status: request.status }));
      request.onerror = () => reject(unreachable());
      request.send(file);
    });
  }

  /** @param {string} method @param {string} path @param {Asking & {params?: Params, body?: unknown}} options */
  async #ask(method, path, options) {
    const response = await this.#fetch(method, path, options);
    const etag = response.headers.get("etag");
    if (response.status === 304) return { data: null, etag, status: 304 };
    if (!response.ok) throw await refusal(response);
    if (!isQuestion(method, path, options)) this.changes += 1;
    return { data: parsed(await response.text()), etag, status: response.status };
  }

  /** @param {string} method @param {string} path @param {Asking & {params?: Params, body?: unknown}} options */
  #fetch(method, path, options) {
    return this.#keyed((key) => this.#send(key, method, path, options), options.asker);
  }

  /**
   * What is refused for its key has done nothing: it is asked again with another.
   * @param {(key: string) => Promise<Response>} send @param {Asking["asker"]} [asker]
   * @returns {Promise<Response>}
   */
  async #keyed(send, asker) {
    const key = await this.#taken();
    if (asker?.current === null) throw new DOMException("nobody waits for it", "AbortError");
    const response = await send(key);
    if (response.status !== 401 || this.onRefused === null) return response;
    if (key === this.#key) {
      this.#key = null;
      this.onRefused();
    }
    return this.#keyed(send, asker);
  }

  /** The key, as soon as there is one that is taken. @returns {Promise<string>} */
  #taken = async () => this.#key ?? new Promise((resolve) => this.#waiting.push(resolve));

  /** @param {string} key @param {string} method @param {string} path @param {Asking & {params?: Params, body?: unknown}} options */
  async #send(key, method, path, { params = {}, headers = {}, body, signal }) {
    if (key && !KEY.test(key)) throw new ApiError(401, "invalid_api_key", "");
    /** @type {Record<string, string>} */
    const all = { ...headers };
    if (key) all.authorization = `Bearer ${key}`;
    if (body !== undefined) all["content-type"] ??= "application/json";
    const sent = body === undefined ? undefined : written(body);
    const options = /** @type {RequestInit} */ ({ method, headers: all, body: sent, signal });
    try {
      const answer = await fetch(this.#url(path, params), { ...options, ...PRIVATE });
      if (answer.status < 500) this.onAnswer();
      return answer;
    } catch (error) {
      if (signal?.aborted) throw error;
      throw unreachable();
    }
  }

  /** @param {string} path @param {Params} params */
  #url(path, params) {
    const url = new URL(BASE + path);
    const all = { ...params, ...(this.tenant !== null && { tenant: this.tenant }) };
    for (const [name, value] of Object.entries(all)) {
      if (value === undefined || value === null || value === "") continue;
      for (const one of [value].flat()) url.searchParams.append(name, String(one));
    }
    return url;
  }
}

/** `asker`: once it is gone from the screen, nothing is begun. @typedef {{headers?: Record<string, string>, params?: Params, signal?: AbortSignal, asker?: {current: unknown}}} Asking */

const PRIVATE = /** @type {const} */ ({
  cache: "no-store",
  credentials: "omit",
  referrerPolicy: "no-referrer",
  redirect: "error",
});

const unreachable = () => new ApiError(0, "unreachable", t("error.silent"));

/** Does it only ask? @param {string} method @param {string} path @param {{params?: Params, body?: any}} options */
const isQuestion = (method, path, { params, body }) =>
  method === "GET" || params?.dry_run === true || body?.dry_run === true || (method === "POST" && /\/(search|context)$/.test(path));

/** @param {Response} response */
async function refusal(response) {
  const { status } = response;
  const error = parsed(await response.text())?.error ?? {};
  const message = typeof error.message === "string" ? error.message : `HTTP ${status}`;
  return new ApiError(status, String(error.code ?? error.type ?? status), message, error.param);
}

/** Fields that others have written; the numbers of all others are the API's own. */
const THEIRS = new Set(["document", "message", "messages", "metadata", "patch", "system_messages", "tools", "value"]);

/** @param {string} text */
function parsed(text) {
  try {
    return text === "" ? null : read(text, (name) => THEIRS.has(name));
  } catch {
    return null;
  }
}

/** A body, told of as it arrives. @param {Response} response @param {(bytes: number) => void} onProgress */
async function whole(response, onProgress) {
  const reader = response.body?.getReader();
  /** @type {BlobPart[]} */
  const parts = [];
  let bytes = 0;
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    onProgress((bytes += value.length));
  }
  return new Blob(parts, { type: response.headers.get("content-type") ?? "" });
}

/** Let the browser save this as a file. @param {Blob} blob @param {string} filename */
export function save(blob, filename) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
