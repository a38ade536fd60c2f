/** Going to a message, wherever it is: loaded or not, on this branch or on another. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { useCallback, useEffect, useRef, useState } from "../vendor/preact.js";
import { choosing } from "./branches.js";

/** Milliseconds that a message is marked after a jump. */
const FLASH = 2500;

/** `near`: only as far as is needed to see it. @typedef {{message: string, near: boolean}} Jump */
/** @typedef {{jump: Jump | null, jumped: () => void, flash: string | null, go: (message: string, near?: boolean) => void}} Jumping */

/** @param {import("./state.js").Talk} talk @param {string | null} wanted by the address @returns {Jumping} */
export function useJumping(talk, wanted) {
  const { api, failed } = useApp();
  const [jump, setJump] = useState(/** @type {Jump | null} */ (null));
  const [flash, setFlash] = useState(/** @type {string | null} */ (null));
  const now = useRef(talk);
  now.current = talk;
  const go = useCallback((/** @type {string} */ message, near = false) => {
    const { log, id } = now.current;
    const place = async () => {
      const known = log.messages.find((one) => one.id === message);
      if (known) return;
      const { data } = await api.get(`/sessions/${seg(id)}/messages/${seg(message)}`);
      await log.show(data.seq);
    };
    void place().then(() => setJump({ message, near }), failed);
  }, [api]);
  useEffect(() => {
    const { tree, view, chosen, choose } = talk;
    if (jump === null || view.entries.some(({ stored }) => stored.id === jump.message)) return;
    const choice = choosing(tree, jump.message, chosen);
    if (choice.size !== chosen.size || [...choice].some(([at, to]) => chosen.get(at) !== to)) choose(choice);
  }, [jump, talk.tree]);
  useEffect(() => {
    if (wanted !== null && talk.log.loaded) go(wanted);
  }, [wanted, talk.log.loaded]);
  useEffect(() => {
    if (flash === null) return;
    const timer = setTimeout(() => setFlash(null), FLASH);
    return () => clearTimeout(timer);
  }, [flash]);
  const jumped = useCallback(() => {
    setJump((done) => (done && !done.near && setFlash(done.message), null));
  }, []);
  return { jump, jumped, flash, go };
}
