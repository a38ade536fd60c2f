// The official SDK, with its own tool loop.

import OpenAI from "openai";
import { DESCRIPTION, KEY, MODEL, PARAMETERS, serve, weather } from "./application.mjs";

const client = ({ url, headers }) =>
  new OpenAI({ baseURL: url, apiKey: KEY, defaultHeaders: headers });
const user = (content) => ({ role: "user", content });
const tool = {
  type: "function",
  function: {
    name: "weather",
    description: DESCRIPTION,
    parameters: PARAMETERS,
    parse: JSON.parse,
    function: weather,
  },
};

async function say(place, { text }) {
  const answer = await client(place).chat.completions.create({
    model: MODEL,
    messages: [user(text)],
  });
  return answer.choices[0].message.content;
}

async function* stream(place, { text }) {
  const chunks = await client(place).chat.completions.create({
    model: MODEL,
    messages: [user(text)],
    stream: true,
  });
  for await (const chunk of chunks) yield chunk.choices[0].delta.content ?? "";
}

async function tools(place, { text, streamed }) {
  const [answer] = await converse(place, { texts: [text], streamed });
  return answer;
}

async function converse(place, { texts, streamed }) {
  let messages = [];
  const answers = [];
  for (const text of texts) {
    const runner = client(place).chat.completions.runTools({
      model: MODEL,
      messages: [...messages, user(text)],
      tools: [tool],
      stream: streamed,
    });
    answers.push(await runner.finalContent());
    messages = runner.messages;
  }
  return answers;
}

async function headers(place, { text }) {
  const { response } = await client(place)
    .chat.completions.create({ model: MODEL, messages: [user(text)] })
    .withResponse();
  return Object.fromEntries(response.headers);
}

await serve({ say, stream, tools, converse, headers });
