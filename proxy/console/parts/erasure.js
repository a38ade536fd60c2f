/** Erasing what was counted before; what has changed by then is counted again, and goes with what still comes. */

import { unchanged } from "../api.js";
import { useApp } from "../context.js";
import { t } from "../i18n/index.js";
import { useEffect, useState } from "../vendor/preact.js";
import { useShown } from "./shown.js";

/** `receipt`: of what was counted, then of what is gone; `growing`: it has changed since. @typedef {{receipt: any, growing: boolean, error: any, busy: boolean, count: () => Promise<void>, erase: () => Promise<void>}} Erasure */

/** @param {string} path of a session or of a person @returns {Erasure} */
export function useErasure(path) {
  const { api } = useApp();
  const asker = useShown(true);
  const [{ receipt, etag }, setTold] = useState({ receipt: /** @type {any} */ (null), etag: /** @type {string | null} */ (null) });
  const [growing, setGrowing] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const tag = async () => (await api.get(path).catch(nobody)).etag;
  const counted = async () => {
    const read = await tag();
    const { data } = await api.del(path, { dry_run: true }); // of what comes between the two nothing is erased yet
    setTold({ receipt: data, etag: read });
  };
  const again = async () => {
    await counted();
    setGrowing(true);
    throw new Error(t("erase.again"));
  };
  const erased = async () => {
    if (!growing && etag === null && (await tag()) !== null) return again();
    try {
      const { data } = await api.del(path, {}, { asker, ...(growing ? {} : unchanged({ etag })) });
      setTold({ receipt: data, etag: null });
    } catch (refusal) {
      if (/** @type {any} */ (refusal).status !== 412) throw refusal;
      await again();
    }
  };
  const run = (/** @type {() => Promise<void>} */ act) => {
    setBusy(true);
    setError(null);
    return act().catch(setError).finally(() => setBusy(false));
  };
  const count = () => run(counted);
  useEffect(() => void count(), []);
  return { receipt, growing, error, busy, count, erase: () => run(erased) };
}

/** A person of whom there is nothing is erased all the same. @param {any} error */
function nobody(error) {
  if (error.status === 404) return { etag: null };
  throw error;
}
