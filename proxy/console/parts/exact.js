/** JSON whose numbers stay as they are written: longer than a double holds, or 10.0 rather than 10. */

/** A number that a double would write in another way. */
export class Exact {
  /** @param {string} source */
  constructor(source) {
    this.source = source;
  }

  toString() {
    return this.source;
  }

  /** Near enough for whoever only wants to see a number; `written` is for what is kept. */
  toJSON() {
    return Number(this.source);
  }
}

/** Does it hold other values: an array, or an object? @param {unknown} value @returns {value is object} */
export const isBranch = (value) => value !== null && typeof value === "object" && !(value instanceof Exact);

const EVERYWHERE = () => true;
const TOKEN = /\\.|"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * The value that a JSON text says.
 * @param {string} text @param {(name: string) => boolean} [exact] the fields below which numbers
 *   are `Exact`, where they must be; by itself all of them
 * @returns {any}
 */
export function read(text, exact = EVERYWHERE) {
  const value = JSON.parse(text);
  const mark = newMark();
  const marked = withMarks(text, mark);
  return marked === text ? value : withoutMarks(JSON.parse(marked), mark, exact);
}

/**
 * A value as a JSON text.
 * @param {unknown} value @param {number} [indent] @returns {string}
 */
export function written(value, indent) {
  const mark = newMark();
  /** @this {any} @param {string} name @param {unknown} plain */
  function marking(name, plain) {
    return this[name] instanceof Exact ? mark + this[name].source : plain;
  }
  return JSON.stringify(value, marking, indent).replaceAll(new RegExp(`"${mark}([^"]*)"`, "g"), "$1");
}

/** What no text holds, as nobody can know it before. */
const newMark = () => `exact-${crypto.getRandomValues(new Uint32Array(4)).join("-")}-`;

/** With an object in the place of each number that has to be exact. @param {string} text valid JSON @param {string} mark */
function withMarks(text, mark) {
  let quoted = false;
  return text.replace(TOKEN, (token) => {
    if (token === '"') quoted = !quoted;
    const plain = quoted || !/^[-\d]/.test(token) || String(Number(token)) === token;
    return plain ? token : `{"${mark}":"${token}"}`;
  });
}

/**
 * Step by step, as it may be nested deeper than functions can call themselves.
 * @param {any} value @param {string} mark @param {(name: string) => boolean} exact
 */
function withoutMarks(value, mark, exact) {
  const root = { "": value };
  const left = [{ holder: /** @type {any} */ (root), free: exact("") }];
  for (let at; (at = left.pop()); ) {
    for (const [name, one] of Object.entries(at.holder)) {
      const free = at.free || exact(name);
      if (!isBranch(one)) continue;
      if (mark in one) at.holder[name] = numberOf(String(/** @type {any} */ (one)[mark]), free);
      else left.push({ holder: one, free });
    }
  }
  return root[""];
}

/** @param {string} source @param {boolean} free */
const numberOf = (source, free) => (free ? new Exact(source) : Number(source));
