/** What every screen is given. */

import { createContext, useContext } from "./vendor/preact.js";

/** @typedef {import("./api.js").Api} Api */
/** `chosen`: the tenant, at the top of the page. @typedef {{tenant: string, admin: boolean, client: string | null, profiles: string[], version: string, chosen?: boolean}} Caller */
/** `typed`: what has to be typed before it can be done. @typedef {{title: string, body?: any, action: string, danger?: boolean, typed?: string}} Question */
/** @typedef {"info" | "success" | "error"} Kind */

/**
 * @typedef {object} App
 * @property {Api} api
 * @property {Caller} caller
 * @property {import("./links.js").Route} route
 * @property {(path: string) => void} navigate to an address of `links.js`
 * @property {(message: string, kind?: Kind) => void} toast
 * @property {(error: unknown) => void} failed says what went wrong as a toast
 * @property {(question: Question) => Promise<boolean>} confirm
 * @property {string} locale
 * @property {Map<string, any>} kept what screens keep for when one comes back to them
 */

export const AppContext = createContext(/** @type {App} */ (/** @type {unknown} */ (null)));

/** @returns {App} */
export const useApp = () => useContext(AppContext);
