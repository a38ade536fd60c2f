/** From one exchange to the one before it and the one after. */

import { seg } from "../api.js";
import { useApp } from "../context.js";
import { t, time } from "../i18n/index.js";
import { Button } from "../parts/button.js";
import { useShown } from "../parts/shown.js";
import { Ago } from "../parts/time.js";
import { html, useState } from "../vendor/preact.js";

/** @param {{session: string, exchange: any, exchanges: readonly any[], onExchange: (id: string) => void}} props */
export function Stepper({ session, exchange, exchanges, onExchange }) {
  const { api, failed } = useApp();
  const shown = useShown(exchange.id);
  const [oldest, setOldest] = useState("");
  const at = exchanges.findIndex((each) => each.id === exchange.id);
  const [newer, older] = [exchanges[at - 1], exchanges[at + 1]];
  const back = async () => {
    if (older) return onExchange(older.id);
    const found = await before(api, session, exchange);
    if (shown.current !== exchange.id) return;
    if (found) onExchange(found);
    else setOldest(exchange.id);
  };
  return html`<div class="stepper" role="group" aria-label=${t("why.exchanges")}>
    <${Button} class="icon-button" aria-label=${t("why.older")} title=${t("why.older")}
      off=${oldest === exchange.id} onClick=${() => void back().catch(failed)}>‹</${Button}>
    <div class="stepper-at"><b>${at === 0 ? t("why.newest") : t("why.exchange")}</b>
      <span class="muted small" title=${time(exchange.created_at)}><${Ago} at=${exchange.created_at} /></span></div>
    <${Button} class="icon-button" aria-label=${t("why.newer")} title=${t("why.newer")}
      off=${at <= 0} onClick=${() => onExchange(newer.id)}>›</${Button}>
  </div>`;
}

/**
 * The exchange before one that nothing older is loaded of; null if it is the first.
 * @param {import("../api.js").Api} api @param {string} session @param {any} exchange @returns {Promise<string | null>}
 */
async function before(api, session, exchange) {
  const path = `/sessions/${seg(session)}`;
  const first = exchange.message_ids[0];
  if (first === undefined) return null;
  const { data: message } = await api.get(`${path}/messages/${seg(first)}`);
  const { data: page } = await api.get(`${path}/exchanges`, { after: message.seq, limit: 1 });
  return page.data[0]?.id ?? null;
}
