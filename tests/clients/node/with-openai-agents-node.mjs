// OpenAI's Agents SDK over either API.

import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
  user,
} from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { DESCRIPTION, KEY, MODEL, RESPONSES, serve, weather } from "./application.mjs";

setTracingDisabled(true);

function agent({ url, headers }) {
  const client = new OpenAI({ baseURL: url, apiKey: KEY, defaultHeaders: headers });
  return new Agent({
    name: "Assistant",
    model: RESPONSES
      ? new OpenAIResponsesModel(client, MODEL)
      : new OpenAIChatCompletionsModel(client, MODEL),
    tools: [
      tool({
        name: "weather",
        description: DESCRIPTION,
        parameters: z.object({ city: z.string() }),
        execute: weather,
      }),
    ],
  });
}

async function say(place, { text }) {
  return (await run(agent(place), text)).finalOutput;
}

async function* stream(place, { text }) {
  const result = await run(agent(place), text, { stream: true });
  yield* result.toTextStream();
}

async function tools(place, { text, streamed }) {
  const [answer] = await converse(place, { texts: [text], streamed });
  return answer;
}

async function converse(place, { texts, streamed }) {
  const kept = agent(place);
  let history = [];
  const answers = [];
  for (const text of texts) {
    const result = await run(kept, [...history, user(text)], { stream: streamed });
    if (streamed) await result.completed;
    answers.push(result.finalOutput);
    history = result.history;
  }
  return answers;
}

await serve({ say, stream, tools, converse });
