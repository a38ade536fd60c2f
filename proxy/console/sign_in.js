/** Signing in: a key, kept in the page's memory alone; or none, on the proxy's own machine. */

import { Api } from "./api.js";
import { t } from "./i18n/index.js";
import { LookMenu } from "./look.js";
import { useShown } from "./parts/shown.js";
import { html, useEffect, useRef, useState } from "./vendor/preact.js";

/** @typedef {import("./context.js").Caller} Caller */
/** @typedef {(api: Api, caller: Caller) => Promise<void>} Enter */

/** @param {{enter: Enter, look: import("./app.js").Look, setLook: (look: Partial<import("./app.js").Look>) => void}} props */
export function SignIn({ enter, look, setLook }) {
  useEffect(() => void (document.title = `${t("signin.title")} · memory-proxy`), []);
  return html`<div class="signin">
    <header class="signin-top"><${LookMenu} look=${look} setLook=${setLook} /></header>
    <main class="signin-card">
      <img src="console/icon.svg" alt="" width="44" height="44" />
      <h1>memory-proxy</h1>
      <p class="muted">${t("signin.lead")}</p>
      <${KeyForm} enter=${enter} />
      <p class="muted small">${t("signin.memory")}</p>
    </main>
  </div>`;
}

/** Asks for a key until one is known. @param {{enter: Enter, tenant?: string}} props `tenant`: whose memory was looked at */
export function KeyForm({ enter, tenant }) {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const [open, setOpen] = useState(false);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const shown = useShown(true);
  useEffect(() => {
    input.current?.focus();
    void known("").then(() => setOpen(true)).catch(() => setOpen(false));
  }, []);
  const attempt = async (/** @type {string} */ wanted) => {
    setBusy(true);
    setProblem("");
    try {
      const found = await known(wanted, tenant);
      if (shown.current) await enter(...found);
    } catch (error) {
      setProblem(reason(error, wanted));
      input.current?.focus();
    } finally {
      setBusy(false);
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (key.trim()) void attempt(key.trim());
    else setProblem(t("signin.empty"));
  };
  return html`<form class="key-form" onSubmit=${submit}>
    <label class="field"><span>${t("signin.key")}</span>
      <input ref=${input} name="key" type="password" autocomplete="off" spellcheck=${false}
        placeholder="sk-…" value=${key} aria-invalid=${Boolean(problem)} aria-describedby="signin-problem"
        onInput=${(/** @type {any} */ event) => setKey(event.target.value)} />
    </label>
    <p id="signin-problem" class="problem" role="alert">${problem}</p>
    <button class="button primary wide" type="submit" disabled=${busy}>${t("signin.enter")}</button>
    ${open && html`<button class="button wide" type="button" disabled=${busy}
      onClick=${() => attempt("")}>${t("signin.without")}</button>`}
  </form>`;
}

/** Milliseconds before each further attempt where the memory cannot be read at once. */
const AGAIN = [200, 500, 1000, 2000];

/** Ask, and again for as long as the proxy is only busy. @template T @param {() => Promise<T>} ask @returns {Promise<T>} */
async function patiently(ask) {
  for (const pause of AGAIN) {
    try {
      return await ask();
    } catch (error) {
      if (/** @type {any} */ (error).status !== 503) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return ask();
}

/**
 * Who calls with this key.  The administrator goes on with the same tenant, or begins with the first there is.
 * @param {string} key @param {string} [before] whose memory was looked at @returns {Promise<[Api, Caller]>}
 */
async function known(key, before) {
  const api = new Api(key);
  const { data: caller } = await patiently(() => api.get("/whoami"));
  if (!caller.admin) return [api, caller];
  const all = await tenants(api);
  const tenant = caller.tenant ?? all.find((each) => each === before) ?? all[0] ?? "anonymous";
  return [api.of(tenant), { ...caller, tenant }];
}

/** The tenants there are, for the administrator. @param {Api} api @returns {Promise<string[]>} */
export async function tenants(api) {
  const { data } = await patiently(() => api.get("/tenants", { limit: 1000 }));
  return data.data.map((/** @type {{id: string}} */ each) => each.id);
}

/** @param {any} error @param {string} key */
function reason(error, key) {
  if (error.status === 401) return t(key ? "signin.wrong" : "signin.needed");
  if (error.status === 0) return t("error.unreachable");
  return error.message;
}
