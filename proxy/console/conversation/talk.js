/** What the parts of the conversation's screen share. */

import { createContext, useContext } from "../vendor/preact.js";

/** @typedef {import("./content.js").Message} Message */

/**
 * @typedef {object} Talk
 * @property {string} id the session's
 * @property {string} path of the session in the API
 * @property {any} session the session object
 * @property {string | null} etag its tag
 * @property {string | null} chosen the exchange that is looked at
 * @property {(exchange: string) => void} choose look at an exchange
 * @property {(message: string) => void} jump go to a message
 * @property {(message: string | null) => void} look show the branch of a message; null: the active one
 * @property {(action: import("./actions.js").Action) => void} act
 * @property {() => void} changed something was changed here
 * @property {Map<string, Message>} byId the messages that are loaded
 * @property {string} wanted what is searched for, in lower case
 */

export const TalkContext = createContext(/** @type {Talk} */ (/** @type {unknown} */ (null)));

/** @returns {Talk} */
export const useTalk = () => useContext(TalkContext);
