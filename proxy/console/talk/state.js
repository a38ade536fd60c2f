/** What the conversation screen knows: the session, its messages, its exchanges, all kept live. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { usePoll } from "../parts/poll.js";
import { useEffect, useMemo, useReducer, useState } from "../vendor/preact.js";
import { treeOf, viewOf } from "./branches.js";
import { Log } from "./log.js";
import { marksOf } from "./marks.js";
import { Whys } from "./whys.js";

const LIVE = 1200;

/** @typedef {ReturnType<typeof useTalk>} Talk */

/** @param {string} id of the session @param {string | null} wanted the exchange that is asked for */
export function useTalk(id, wanted) {
  const { api, failed } = useApp();
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const { log, whys } = useMemo(() => ({ log: new Log(api, id), whys: new Whys(api, id) }), [api, id]);
  const [chosen, choose] = useState(/** @type {ReadonlyMap<string, string>} */ (new Map()));
  const polled = usePoll(`/sessions/${seg(id)}`, {}, LIVE);
  const { data: session, etag } = polled;
  useEffect(() => {
    log.onChange = whys.onChange = () => redraw(null);
    return () => void (log.onChange = whys.onChange = () => {});
  }, [log, whys]);
  const renew = () => {
    if (session === null) return;
    void log.renew(session.end);
    void whys.renew().catch(failed);
  };
  useEffect(renew, [etag, log]);
  const { messages } = log;
  useEffect(() => void whys.learn(messages).catch(failed), [messages]);
  const seq = messages.find((one) => one.exchange_id === wanted)?.seq ?? null;
  useEffect(() => {
    if (wanted && log.loaded) void whys.around(wanted, seq).catch(failed);
  }, [wanted, log.loaded]);
  const tree = useMemo(() => treeOf(messages, whys.follows), [messages, whys.follows]);
  const view = useMemo(() => viewOf(tree, chosen), [tree, chosen]);
  const exchange = (wanted ? whys.known.get(wanted) : whys.list[0]) ?? null;
  useEffect(() => {
    if (exchange) void whys.more(exchange.id).catch(failed);
  }, [exchange?.id, whys]);
  const marks = useMemo(() => marksOf(exchange, id, messages), [exchange, id, messages]);
  const changed = () => {
    polled.refresh();
    renew();
  };
  return { id, session, etag, error: polled.error, log, whys, tree, view, chosen, choose, exchange, marks, changed };
}
