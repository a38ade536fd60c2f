/** Where a conversation could have gone on another way: ‹ 2/3 ›. */

import { t } from "../i18n/index.js";
import { html } from "../vendor/preact.js";

/** @param {{fork: import("./tree.js").Fork, talk: import("./talk.js").Talk}} props */
export function Switch({ fork: { options, at }, talk }) {
  const option = options[at];
  const go = (/** @type {number} */ step) => {
    const to = options[at + step];
    if (to) talk.look(to.active ? null : (to.head?.id ?? null));
  };
  const [place, total] = [at + 1, options.length];
  return html`<div class="switch" role="group" aria-label=${t("talk.branches")} onClick=${(/** @type {Event} */ event) => event.stopPropagation()}>
    <button type="button" class="icon-button" aria-label=${t("talk.branch.before")} disabled=${at === 0} onClick=${() => go(-1)}>‹</button>
    <span class="num" aria-live="polite"><span class="sr-only">${t("talk.branch")} </span>${place}/${total}</span>
    <button type="button" class="icon-button" aria-label=${t("talk.branch.next")} disabled=${place === total} onClick=${() => go(1)}>›</button>
    ${option?.active
      ? html`<span class="tag good">${t(option.head ? "talk.branch.active" : "talk.branch.ended")}</span>`
      : option?.head && html`<button type="button" class="link-button" onClick=${() => option.head && talk.act({ kind: "activate", message: option.head })}>${t("talk.activate")}</button>`}
  </div>`;
}
