/** Only this person's sessions. */

import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { useTyped } from "../parts/search.js";
import { html, useId, useState } from "../vendor/preact.js";

const OFFERED = 100;
/** Milliseconds without a letter. */
const PAUSE = 300;

/** @param {{value: string, onChange: (user: string) => void}} props */
export function UserFilter({ value, onChange }) {
  const { api } = useApp();
  const [known, setKnown] = useState(/** @type {string[]} */ ([]));
  const [text, setText] = useTyped(value, (typed) => onChange(typed.trim()), PAUSE);
  const list = useId();
  const offer = () =>
    void api.get("/users", { limit: OFFERED }).then(
      ({ data }) => setKnown(data.data.map((/** @type {{id: string}} */ user) => user.id)),
      () => setKnown([]), // without suggestions it is a box to type in
    );
  return html`<span class=${`user-filter ${value ? "on" : ""}`}>
    <input type="search" list=${list} value=${text} aria-label=${t("sessions.user")}
      placeholder=${t("sessions.user")} autocomplete="off" spellcheck=${false} onFocus=${offer}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    <datalist id=${list}>${known.map((id) => html`<option key=${id} value=${id}></option>`)}</datalist>
  </span>`;
}
