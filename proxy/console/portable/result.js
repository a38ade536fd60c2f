/** What an import did. */

import { n, t } from "../i18n/index.js";
import { html } from "../vendor/preact.js";

/** @param {{result: any}} props */
export const Result = ({ result }) => html`<div role="status">
  <p><b>${t(result.dry_run ? "import.counted" : "import.done")}</b> <span class="tag">${result.format}</span></p>
  <table class="figures"><tbody>
    ${["sessions", "messages", "exchanges", "memories"].map((name) => figure(t(name), result[name] ?? 0))}
    ${figure(t("import.skipped.sessions"), result.skipped?.sessions ?? 0)}
    ${figure(t("import.skipped.memories"), result.skipped?.memories ?? 0)}
  </tbody></table>
  ${result.warnings?.length > 0 && html`<h3>${t("import.warnings", { n: result.warnings.length })}</h3>
    <ul class="warnings" tabindex="0">${result.warnings.map((/** @type {unknown} */ each, /** @type {number} */ index) =>
      html`<li key=${index}><bdi>${typeof each === "string" ? each : JSON.stringify(each)}</bdi></li>`)}</ul>`}
</div>`;

/** @param {string} name @param {number} count */
const figure = (name, count) => html`<tr key=${name}><th scope="row">${name}</th><td class="num">${n(count)}</td></tr>`;
