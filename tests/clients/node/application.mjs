// What the programs beside this file share: they do as they are told, one line of JSON a command.
// A generator's values are told one by one, as they come.

import { createInterface } from "node:readline";

export const MODEL = "scripted-1";
export const KEY = "sk-test";
export const RESPONSES = process.env.API === "responses";
export const weather = ({ city }) => `snow in ${city}`;
export const DESCRIPTION = "Tells the weather in a city.";
export const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
export const WEATHER = {
  type: "function",
  function: { name: "weather", description: DESCRIPTION, parameters: PARAMETERS },
};

const tell = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
console.log = console.info = console.warn = console.error;

/** An exception and those that led to it, but for where it was. */
function causes(error, place) {
  const found = [];
  const seen = new Set();
  for (let each = error; each && !seen.has(each); each = each.cause ?? each.lastError) {
    seen.add(each);
    const headers = new Headers(each.headers ?? each.responseHeaders ?? {});
    found.push({
      kind: each.constructor.name,
      status: each.status ?? each.statusCode ?? null,
      retry_after: headers.get("retry-after"),
      message: String(each.message).replaceAll(place.origin, "…"),
    });
  }
  return found;
}

async function done(command, place, given) {
  const answer = command(place, given);
  if (answer?.[Symbol.asyncIterator]) {
    for await (const piece of answer) tell({ piece });
    return null;
  }
  return await answer;
}

/** Do what the lines of standard input say. */
export async function serve(commands) {
  tell({ ready: Object.keys(commands) });
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    const place = {
      origin: asked.origin,
      url: `${asked.origin}/v1`,
      headers: { "X-Session-Id": asked.session },
    };
    try {
      tell({ result: await done(commands[asked.do], place, asked.with) });
    } catch (error) {
      console.error(error);
      tell({ raised: causes(error, place) });
    }
  }
}
