/** What is behind the sign-in: which screen is shown, and what all screens share. */

import { isOutage } from "./api.js";
import { AppContext } from "./context.js";
import { t } from "./i18n/index.js";
import { links, routeOf } from "./links.js";
import { Confirm, Dialog } from "./parts/dialog.js";
import { SHOWN, Toasts } from "./parts/toast.js";
import { Shell } from "./shell.js";
import { KeyForm } from "./sign_in.js";
import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact.js";

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./context.js").Caller} Caller */
/** @typedef {import("./app.js").Look} Look */
/** @typedef {import("./sign_in.js").Enter} Enter */

/** @param {{api: Api, caller: Caller, refused: boolean, enter: Enter, again: Enter, leave: () => void, look: Look, setLook: (look: Partial<Look>) => void}} props */
export function Inside({ api, caller, refused, enter, again, leave, look, setLook }) {
  const route = useRoute(api.tenant);
  const [toasts, toast, close] = useToasts(api);
  const [question, confirm, answer] = useConfirm(route);
  const kept = useRef(new Map()).current;
  const app = useMemo(
    () => ({
      api,
      caller,
      route,
      toast,
      confirm,
      kept,
      locale: look.locale,
      navigate: (/** @type {string} */ path) => void (location.hash = path),
      failed: (/** @type {unknown} */ error) => toast(words(error), "error", isOutage(error)),
    }),
    [api, caller, route, look.locale],
  );
  const choose = (/** @type {string} */ tenant) => {
    history.replaceState({ tenant }, "", links.sessions);
    void enter(api.of(tenant), { ...caller, tenant, chosen: true });
  };
  return html`<${AppContext.Provider} value=${app}>
    <${Shell} ...${{ look, setLook, leave, choose }} />
    <${Toasts} toasts=${toasts} close=${close} />
    ${question && html`<${Confirm} question=${question} answer=${answer} />`}
    ${refused && html`<${Refused} ...${{ caller, again, leave }} />`}
  </${AppContext.Provider}>`;
}

/** The key is no longer taken: what is there, and what is typed, waits for another. @param {{caller: Caller, again: Enter, leave: () => void}} props */
const Refused = ({ caller, again, leave }) => html`<${Dialog} title=${t("signin.title")}>
  <div class="dialog-body"><p class="note warn" role="alert">${t("signin.refused")}</p><${KeyForm} enter=${again} tenant=${caller.tenant} /></div>
  <footer class="dialog-foot"><button type="button" class="button" onClick=${leave}>${t("signout")}</button></footer>
</${Dialog}>`;

/** What went wrong, in words. @param {unknown} error */
const words = (error) => (error instanceof Error ? error.message : String(error));

/** @param {string | null} tenant whose memory, for the administrator */
function useRoute(tenant) {
  const [route, setRoute] = useState(() => arrived(tenant));
  useLayoutEffect(() => {
    const changed = () => setRoute(arrived(tenant));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, [tenant]);
  return route;
}

/** Another tenant may have the same names: what was seen of one leads to the list. @param {string | null} tenant */
function arrived(tenant) {
  if (tenant !== null) {
    const theirs = (history.state?.tenant ?? tenant) !== tenant;
    history.replaceState({ tenant }, "", theirs ? links.sessions : null);
  }
  return routeOf(location.hash);
}

/** @param {Api} api @returns {[import("./parts/toast.js").Toast[], (message: string, kind?: import("./context.js").Kind, passing?: boolean) => void, (id: number) => void]} */
function useToasts(api) {
  const [toasts, setToasts] = useState(/** @type {import("./parts/toast.js").Toast[]} */ ([]));
  const next = useRef(1);
  const close = useCallback(
    (/** @type {number} */ id) => setToasts((all) => all.filter((each) => each.id !== id)),
    [],
  );
  const toast = useCallback((/** @type {string} */ message, kind = "info", passing = false) => {
    const id = next.current++;
    setToasts((all) => [...all.filter((each) => each.message !== message), { id, message, kind, passing }].slice(-4));
    if (kind !== "error") setTimeout(() => close(id), SHOWN);
  }, []);
  useEffect(() => {
    api.onAnswer = () => setToasts((all) => (all.some(({ passing }) => passing) ? all.filter(({ passing }) => !passing) : all));
    return () => void (api.onAnswer = () => {});
  }, [api]);
  return [toasts, toast, close];
}

/** A question is of its screen: with another address nobody answers it any more. @param {import("./links.js").Route} route @returns {[import("./context.js").Question | null, (question: import("./context.js").Question) => Promise<boolean>, (yes: boolean) => void]} */
function useConfirm(route) {
  const [asked, setAsked] = useState(
    /** @type {{question: import("./context.js").Question, resolve: (yes: boolean) => void, route: import("./links.js").Route} | null} */ (null),
  );
  const confirm = useCallback(
    (/** @type {import("./context.js").Question} */ question) =>
      /** @type {Promise<boolean>} */ (new Promise((resolve) => setAsked({ question, resolve, route }))),
    [route],
  );
  const answer = (/** @type {boolean} */ yes) => {
    asked?.resolve(yes);
    setAsked(null);
  };
  const left = asked !== null && asked.route !== route;
  useEffect(() => {
    if (left) answer(false);
  }, [left]);
  return [left ? null : (asked?.question ?? null), confirm, answer];
}
