// Anthropic's SDK, with its own tool loop, and the loop that people write.

import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { DESCRIPTION, KEY, MODEL, PARAMETERS, serve, weather } from "./application.mjs";

const client = ({ origin, headers }) =>
  new Anthropic({ baseURL: origin, apiKey: KEY, defaultHeaders: headers });
const user = (content) => ({ role: "user", content });
const asked = { model: MODEL, max_tokens: 200 };
const tool = { name: "weather", description: DESCRIPTION, input_schema: PARAMETERS };
const run = async (given) => weather(given);

function text(message) {
  return message.content
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("");
}

async function say(place, { text: said }) {
  return text(await client(place).messages.create({ ...asked, messages: [user(said)] }));
}

async function* stream(place, { text: said }) {
  const events = client(place).messages.stream({ ...asked, messages: [user(said)] });
  for await (const event of events)
    if (event.type === "content_block_delta" && event.delta.type === "text_delta")
      yield event.delta.text;
}

async function tools(place, { text: said, streamed }) {
  const runner = client(place).beta.messages.toolRunner({
    ...asked,
    messages: [user(said)],
    tools: [betaTool({ name: tool.name, description: DESCRIPTION, inputSchema: PARAMETERS, run })],
    stream: streamed,
    thread: false,
  });
  return text(await runner.runUntilDone());
}

async function converse(place, { texts, streamed }) {
  const messages = [];
  const answers = [];
  for (const said of texts) {
    messages.push(user(said));
    answers.push(await turn(place, messages, streamed));
  }
  return answers;
}

async function turn(place, messages, streamed) {
  for (;;) {
    const request = { ...asked, messages, tools: [tool] };
    const answer = streamed
      ? await client(place).messages.stream(request).finalMessage()
      : await client(place).messages.create(request);
    messages.push({ role: "assistant", content: answer.content });
    if (answer.stop_reason !== "tool_use") return text(answer);
    const calls = answer.content.filter((block) => block.type === "tool_use");
    const results = calls.map(({ id, input }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: weather(input),
    }));
    messages.push(user(results));
  }
}

async function headers(place, { text: said }) {
  const { response } = await client(place)
    .messages.create({ ...asked, messages: [user(said)] })
    .withResponse();
  return Object.fromEntries(response.headers);
}

await serve({ say, stream, tools, converse, headers });
