/** Asking again and again, cheaply: with the ETag, only while the page is seen. */

import { useApp } from "../context.js";
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";

/** @typedef {import("../api.js").Params} Params */
/** @typedef {import("../api.js").ApiError} ApiError */
/** @typedef {{data: any, etag: string | null, error: ApiError | null, loading: boolean, refresh: () => void}} Polled */

const SLOWEST = 30_000;
/** After the first failure of what is asked once. */
const AGAIN = 750;

/**
 * A path's answer, kept up to date.  With another path or other parameters it starts anew.  After
 * an error it waits twice as long each time; what was there stays.
 * @param {string | null} path null: nothing is asked
 * @param {Params} [params]
 * @param {number} [ms] between an answer and the next question; 0: asked until there is one
 * @returns {Polled}
 */
export function usePoll(path, params = {}, ms = 1500) {
  const { api } = useApp();
  const asked = JSON.stringify([path, params, api.tenant]);
  const [state, setState] = useState(
    /** @type {{asked: string, data: any, etag: string | null, error: ApiError | null}} */ (fresh(asked)),
  );
  const wake = useRef(() => {});
  useEffect(() => {
    if (path === null) return;
    const poll = new Poll(ms, async (signal, etag) => {
      const answer = await api.get(path, params, { signal, etag });
      if (answer.status !== 304) {
        setState({ asked, data: answer.data, etag: answer.etag, error: null });
      } else setState((now) => (now.error ? { ...now, error: null } : now));
      return answer.etag;
    }, (error) => setState((now) => ({ ...(now.asked === asked ? now : fresh(asked)), error })));
    wake.current = poll.now;
    return poll.stop;
  }, [asked, ms]);
  const refresh = useCallback(() => wake.current(), []);
  const current = state.asked === asked ? state : fresh(asked);
  return { ...current, loading: current.data === null && current.error === null, refresh };
}

/** @param {string} asked */
const fresh = (asked) => ({ asked, data: null, etag: null, error: null });

/** One question, repeated while the page is seen; `ask` gets the last ETag and gives the next. */
export class Poll {
  #timer = 0;
  #failures = 0;
  #done = false;
  /** @type {string | null} */ #etag = null;
  #asking = new AbortController();

  /**
   * @param {number} ms
   * @param {(signal: AbortSignal, etag: string | null) => Promise<string | null>} ask
   * @param {(error: any) => void} onError
   */
  constructor(ms, ask, onError) {
    this.ms = ms;
    this.ask = ask;
    this.onError = onError;
    document.addEventListener("visibilitychange", this.#seen);
    void this.#run();
  }

  /** At once, unless it was stopped: what wakes it may come late. */
  now = () => {
    if (this.#asking.signal.aborted) return;
    this.#asking.abort();
    this.#asking = new AbortController();
    clearTimeout(this.#timer);
    void this.#run();
  };

  stop = () => {
    this.#asking.abort();
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#seen);
  };

  #seen = () => {
    if (!document.hidden && !this.#done) this.now();
    else if (document.hidden) clearTimeout(this.#timer);
  };

  async #run() {
    const { signal } = this.#asking;
    try {
      this.#etag = await this.ask(signal, this.#etag);
      this.#failures = 0;
      this.#done = this.ms === 0;
    } catch (error) {
      if (signal.aborted) return;
      this.#failures += 1;
      this.#done = this.ms === 0 && /** @type {any} */ (error).status === 404; // that is an answer too
      this.onError(error);
    }
    if (signal.aborted || this.#done || document.hidden) return;
    this.#timer = setTimeout(() => void this.#run(), this.#wait());
  }

  #wait = () => Math.min((this.ms || AGAIN) * 2 ** this.#failures, Math.max(SLOWEST, this.ms));
}
