/** How much can be typed. */

import { t } from "../i18n/index.js";

/** Characters of a session's title. */
export const MAX_TITLE = 200;

/**
 * A box's `ref`: no more characters than the API takes, counted as it counts them; `maxlength` counts
 * an emoji twice.
 * @param {number} most
 */
export const atMost = (most) => (/** @type {HTMLInputElement | HTMLTextAreaElement | null} */ box) =>
  box?.setCustomValidity([...box.value].length > most ? t("limit.most", { n: most }) : "");
