/** Changing a part of what others change too, without losing what they did. */

import { unchanged } from "../api.js";
import { t } from "../i18n/index.js";
import { written } from "./exact.js";

/** A part as it was read, and the ETag of the whole. @typedef {{value: any, etag: string | null}} Read */

const ATTEMPTS = 5;

/**
 * PATCH, as long as the part that is changed is as it was; the rest may have changed meanwhile.
 * @param {import("../api.js").Api} api @param {string} path @param {unknown} body @param {Read} was
 * @param {(data: any) => any} read the part @returns {Promise<Read | null>} null: done; else the part as somebody else has changed it
 */
export async function patched(api, path, body, was, read) {
  let { etag } = was;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      await api.patch(path, body, unchanged({ etag }));
      return null;
    } catch (error) {
      if (/** @type {any} */ (error).status !== 412) throw error;
    }
    const now = await api.get(path);
    const value = read(now.data);
    if (written(value) !== written(was.value)) return { value, etag: now.etag };
    etag = now.etag;
  }
  throw new Error(t("talk.overtaken"));
}
