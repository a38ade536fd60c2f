/** The addresses of the console's screens, made and read.  Pure. */

/** @typedef {{screen: "sessions" | "session" | "users" | "user" | "stats" | "nothing", id: string, exchange: string | null, message: string | null, tab: string | null}} Route */

const part = encodeURIComponent;

export const links = {
  sessions: "#/sessions",
  users: "#/users",
  stats: "#/stats",
  /** @param {string} id @param {{exchange?: string | null, message?: string | null}} [at] */
  session: (id, { exchange, message } = {}) =>
    `#/sessions/${part(id)}` +
    (exchange ? `/exchanges/${part(exchange)}` : "") +
    (message ? `/messages/${part(message)}` : ""),
  /** @param {string} id @param {string} [tab] */
  user: (id, tab) => `#/users/${part(id)}${tab ? `/tabs/${part(tab)}` : ""}`,
};

/** What an address shows. @param {string} hash @returns {Route} */
export function routeOf(hash) {
  const segments = hash.replace(/^#?\/?/, "").split("/").map(decoded);
  const [screen, id = "", ...rest] = segments;
  const at = { id, exchange: after(rest, "exchanges"), message: after(rest, "messages"), tab: after(rest, "tabs") };
  if (screen === "" || screen === "sessions") return { screen: id ? "session" : "sessions", ...at };
  if (screen === "users") return { screen: id ? "user" : "users", ...at };
  return { screen: screen === "stats" ? "stats" : "nothing", ...at };
}

/** @param {string[]} segments @param {string} name */
function after(segments, name) {
  for (let index = 0; index + 1 < segments.length; index += 2) {
    if (segments[index] === name) return segments[index + 1] ?? null;
  }
  return null;
}

/** @param {string} segment */
function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
