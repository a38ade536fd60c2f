// @langchain/openai, with the tool loop that an application writes.

import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { concat } from "@langchain/core/utils/stream";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import { KEY, MODEL, serve, WEATHER, weather } from "./application.mjs";

const model = ({ url, headers }) =>
  new ChatOpenAI({
    model: MODEL,
    apiKey: KEY,
    maxRetries: 1, // six, as by default, take a minute
    configuration: { baseURL: url, defaultHeaders: headers },
  });

async function say(place, { text }) {
  return (await model(place).invoke(text)).content;
}

async function* stream(place, { text }) {
  for await (const chunk of await model(place).stream(text)) yield chunk.content;
}

async function tools(place, { text, streamed }) {
  const [answer] = await converse(place, { texts: [text], streamed });
  return answer;
}

async function converse(place, { texts, streamed }) {
  const messages = [];
  const answers = [];
  for (const text of texts) {
    messages.push(new HumanMessage(text));
    answers.push(await turn(place, messages, streamed));
  }
  return answers;
}

/** Ask until it is said in words; the messages have grown by what was said. */
async function turn(place, messages, streamed) {
  const bound = model(place).bindTools([WEATHER]);
  for (;;) {
    const said = streamed ? await whole(await bound.stream(messages)) : await bound.invoke(messages);
    messages.push(said);
    if (!said.tool_calls?.length) return said.content;
    for (const call of said.tool_calls) {
      messages.push(new ToolMessage({ content: weather(call.args), tool_call_id: call.id }));
    }
  }
}

async function whole(chunks) {
  let said;
  for await (const chunk of chunks) said = said === undefined ? chunk : concat(said, chunk);
  return said;
}

async function extract(place, { text }) {
  const Person = z.object({ name: z.string() });
  const structured = model(place).withStructuredOutput(Person, { method: "functionCalling" });
  return await structured.invoke(text);
}

await serve({ say, stream, tools, converse, extract });
