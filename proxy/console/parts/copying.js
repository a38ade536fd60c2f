/** Copying text, on plain HTTP as well: there the browser has no `navigator.clipboard`. */

import { t } from "../i18n/index.js";

/** Copy it, and say so; or say why not. @param {string} text @param {Pick<import("../context.js").App, "toast" | "failed">} app */
export const copy = (text, { toast, failed }) =>
  (isSecureContext ? navigator.clipboard.writeText(text) : copied(text)).then(() => toast(t("copied")), failed);

/** Through a box with the text selected in it; the focus stays where it was. @param {string} text */
async function copied(text) {
  const before = document.activeElement;
  const box = document.createElement("textarea");
  box.className = "sr-only";
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  if (!done) throw new Error(t("copy.failed"));
}
