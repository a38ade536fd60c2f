/** The exchange that the address asks for: loaded, or known not to be there. */

import { useEffect, useState } from "../vendor/preact.js";

/** Why it cannot be shown, and how to try again. @typedef {{error: import("../api.js").ApiError, retry: () => void}} Missing */

/** @param {import("./whys.js").Whys} whys @param {string | null} id @param {number | null} seq of one of its messages @param {boolean} ready @returns {Missing | null} */
export function useWanted(whys, id, seq, ready) {
  const [failed, setFailed] = useState(/** @type {{id: string, error: import("../api.js").ApiError} | null} */ (null));
  const known = id === null || whys.known.has(id);
  const load = () => {
    setFailed(null);
    if (id !== null && ready && !known) void whys.around(id, seq).catch((error) => setFailed({ id, error }));
  };
  useEffect(load, [whys, id, ready, known]);
  return !known && failed?.id === id ? { error: failed.error, retry: load } : null;
}
