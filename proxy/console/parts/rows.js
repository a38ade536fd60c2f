/** A list by activity, newest first, that is loaded page by page and kept up to date.  Pure. */

/** `at`: last activity (Unix seconds). @typedef {{id: string, at: number, gone?: boolean}} Row */

/**
 * The rows with another page behind them.
 * @template {Row} R @param {R[]} rows @param {R[]} page @returns {R[]}
 */
export function appended(rows, page) {
  const known = new Set(rows.map((row) => row.id));
  const news = page.filter((row) => !known.has(row.id));
  return news.length === 0 ? rows : [...rows, ...news];
}

/**
 * Does the newest of a list end in what is known and has not changed?  Then nothing is between them.
 * @template {Row} R @param {R[]} rows as they were @param {R[]} newest @returns {boolean}
 */
export function meets(rows, newest) {
  const last = newest.at(-1);
  return last === undefined || rows.some(({ id, at }) => id === last.id && at === last.at);
}

/**
 * The rows as the newest of them, asked for again, say.  What should be among those and is not has
 * gone.
 * @template {Row} R @param {R[]} rows @param {R[]} newest @param {boolean} more are there rows behind `newest`?
 * @returns {R[]}
 */
export function refreshed(rows, newest, more) {
  const last = more ? (newest.at(-1)?.at ?? Infinity) : -Infinity;
  const known = new Set(newest.map((row) => row.id));
  const rest = rows.filter((row) => !known.has(row.id) && row.at <= last);
  return [...newest, ...rest];
}

/**
 * The rows with what `refreshed` changed, each at its place: for somebody who is reading.  New ones
 * are left out, those that have gone are marked.
 * @template {Row} R @param {R[]} rows @param {R[]} wanted what `refreshed` gave @returns {R[]}
 */
export function inPlace(rows, wanted) {
  const now = new Map(wanted.map((row) => [row.id, row]));
  return rows.map((row) => now.get(row.id) ?? { ...row, gone: true });
}

/**
 * The ids of rows that have been active since.  One that was not there is new if it has been active
 * after `since`: old ones come by imports.
 * @template {Row} R @param {R[]} rows as they were @param {R[]} newest @param {number} since @returns {string[]}
 */
export function active(rows, newest, since) {
  const before = new Map(rows.map((row) => [row.id, row.at]));
  return newest.filter((row) => row.at > (before.get(row.id) ?? since)).map((row) => row.id);
}
