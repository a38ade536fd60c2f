/** How long a session is kept, in the units people use. */

import { n, t } from "../i18n/index.js";

/** The largest first. @typedef {"days" | "hours" | "minutes" | "seconds"} Unit @type {readonly (readonly [Unit, number])[]} */
export const UNITS = [["days", 86_400], ["hours", 3600], ["minutes", 60], ["seconds", 1]];

/** Seconds in the largest unit that needs no fraction. @param {number} seconds @returns {{count: number, unit: Unit}} */
export function inUnits(seconds) {
  const [unit, size] = UNITS.find(([, size]) => seconds > 0 && seconds % size === 0) ?? ["days", 86_400];
  return { count: seconds / size, unit };
}

/** @param {number} count @param {Unit} unit */
export const inSeconds = (count, unit) => count * (UNITS.find(([name]) => name === unit)?.[1] ?? 1);

/** "7 days without activity"; 0 is for ever. @param {number} seconds */
export function lasting(seconds) {
  if (seconds === 0) return t("session.ttl.ever");
  const { count, unit } = inUnits(seconds);
  return t("session.ttl.idle", { time: `${n(count)} ${t(`unit.${unit}`)}` });
}
