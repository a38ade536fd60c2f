/** What is shown before there is any session: how to make the first. */

import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { copy } from "../parts/copying.js";
import { Empty } from "../parts/empty.js";
import { html, useState } from "../vendor/preact.js";

/** Where chats go: the root that this page is below. */
const base = () => new URL("../v1", document.baseURI).href;

/** @param {string} url */
const curl = (url) => `curl ${url}/chat/completions \\
  -H "Authorization: Bearer $OPENAI_API_KEY" \\
  -H "Content-Type: application/json" \\
  -H "X-Session-Id: my-first-session" \\
  -d '{"model": "gpt-4o-mini",
       "messages": [{"role": "user", "content": "Hello!"}]}'`;

/** @param {string} url */
const python = (url) => `from openai import OpenAI

client = OpenAI(
    base_url="${url}",
    default_headers={"X-Session-Id": "my-first-session"},
)
client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "Hello!"}],
)`;

export function First() {
  const [language, setLanguage] = useState(/** @type {"curl" | "Python"} */ ("curl"));
  const app = useApp();
  const text = (language === "curl" ? curl : python)(base());
  return html`<${Empty} title=${t("first.title")} mark="✦">
    <p class="muted">${t("first.lead")}</p>
    <div class="snippet card">
      <div class="snippet-head">
        ${/** @type {const} */ (["curl", "Python"]).map((name) => html`<button type="button" key=${name}
          class="tab" aria-pressed=${language === name} onClick=${() => setLanguage(name)}>${name}</button>`)}
        <button type="button" class="link-button" onClick=${() => void copy(text, app)}>${t("copy")}</button>
      </div>
      <pre tabindex="0" aria-label=${language}>${text}</pre>
    </div>
    <p class="muted small">${t("first.key")}</p>
  </${Empty}>`;
}
