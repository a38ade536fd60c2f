/** Times as people say them, kept right while they are shown. */

import { html, useEffect, useState } from "../vendor/preact.js";
import { ago, dated, time } from "../i18n/index.js";

const EVERY = 15_000;

/** @param {{at: number | null | undefined, class?: string}} props `at`: Unix seconds */
export function Ago({ at, class: name = "" }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), EVERY);
    return () => clearInterval(timer);
  }, []);
  if (typeof at !== "number") return html`<span class=${name}>–</span>`;
  return html`<time class=${name} dateTime=${iso(at)} title=${time(at)}>${ago(at)}</time>`;
}

/** @param {number} at */
const iso = (at) => dated(at, (date) => date.toISOString());
