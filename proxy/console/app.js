/** The console's entry: who is signed in.  All that is behind the sign-in is loaded while it is shown. */

import { locale, preferred, setLocale, t } from "./i18n/index.js";
import { links } from "./links.js";
import { SignIn } from "./sign_in.js";
import { html, render, useCallback, useEffect, useState } from "./vendor/preact.js";

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./context.js").Caller} Caller */
/** `refused`: the key is no longer taken. @typedef {{api: Api, caller: Caller, refused: boolean, Inside: typeof import("./inside.js").Inside}} SignedIn */
/** @typedef {"auto" | "light" | "dark"} Theme */

/** Most of the console. @returns {Promise<typeof import("./inside.js")>} */
const inside = () => import("./inside.js").catch(() => Promise.reject(new Error(t("signin.broken"))));

function Console() {
  const [signedIn, setSignedIn] = useState(/** @type {SignedIn | null} */ (null));
  const [look, setLook] = useLook();
  useEffect(() => void inside().catch(() => {}), []); // whoever enters is told if it fails again
  const enter = useCallback(async (/** @type {Api} */ api, /** @type {Caller} */ caller) => {
    const { Inside } = await inside();
    const refused = (/** @type {SignedIn | null} */ now) => (now?.api === api ? { ...now, refused: true } : now);
    api.onRefused = () => setSignedIn(refused);
    setSignedIn({ api, caller, refused: false, Inside });
  }, []);
  const leave = useCallback(() => setSignedIn(null), []);
  if (!signedIn) return html`<${SignIn} enter=${enter} look=${look} setLook=${setLook} />`;
  const { Inside, api, caller, refused } = signedIn;
  const again = async (/** @type {Api} */ other, /** @type {Caller} */ who) => {
    if (isSame(caller, who)) {
      api.renew(other);
      return setSignedIn({ ...signedIn, refused: false });
    }
    if (caller.tenant !== who.tenant) history.replaceState(null, "", links.sessions); // they may have the same names
    return enter(other, who);
  };
  return html`<${Inside} key=${`${caller.admin} ${caller.tenant}`} ...${{ api, caller, refused, enter, again, leave, look, setLook }} />`;
}

/** Do both see the same memory?  The administrator sees all. @param {Caller} one @param {Caller} other */
const isSame = (one, other) => one.admin === other.admin && (one.admin || one.tenant === other.tenant);

/** @typedef {{locale: import("./i18n/index.js").Locale, theme: Theme}} Look */

/** Language and colours, for as long as the page is open. @returns {[Look, (look: Partial<Look>) => void]} */
function useLook() {
  const [look, setLook] = useState(() => {
    setLocale(preferred());
    return /** @type {Look} */ ({ locale: locale(), theme: "auto" });
  });
  const change = (/** @type {Partial<Look>} */ wanted) => {
    if (wanted.locale) setLocale(wanted.locale);
    if (wanted.theme) document.documentElement.dataset.theme = wanted.theme;
    setLook((now) => ({ ...now, ...wanted }));
  };
  return [look, change];
}

/** A file that is dropped beside its place is not opened in place of the console. @param {DragEvent} event */
const stay = (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault();

addEventListener("dragover", stay);
addEventListener("drop", stay);

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(html`<${Console} />`, root);
}
