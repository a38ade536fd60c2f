/** What the conversation screen knows: the session, its messages, its exchanges, all kept live. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { Poll, usePoll } from "../parts/poll.js";
import { useEffect, useMemo, useReducer, useState } from "../vendor/preact.js";
import { treeOf, viewOf } from "./branches.js";
import { Log } from "./log.js";
import { marksOf } from "./marks.js";
import { useWanted } from "./wanted.js";
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
  useAgain(log, whys);
  const { messages } = log;
  useEffect(() => void whys.learn(messages).catch(failed), [messages]);
  const seq = messages.find((one) => one.exchange_id === wanted)?.seq ?? null;
  const missing = useWanted(whys, wanted, seq, log.loaded);
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
  return { id, session, etag, error: polled.error, log, whys, tree, view, chosen, choose, exchange, missing, marks, changed };
}

/** What failed is asked for again until it is there, less and less often. @param {Log} log @param {Whys} whys */
function useAgain(log, whys) {
  const failing = log.error !== null || whys.error !== null;
  useEffect(() => {
    if (!failing) return;
    return new Poll(LIVE, () => again(log, whys), () => {}).stop; // the list says that it is out of date
  }, [failing, log, whys]);
}

/** @param {Log} log @param {Whys} whys */
async function again(log, whys) {
  await Promise.all([log.again(), whys.renew()]);
  if (log.error !== null) throw log.error;
  return null;
}
