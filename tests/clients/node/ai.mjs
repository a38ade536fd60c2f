// The AI SDK, whatever its model comes from.

import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { DESCRIPTION, serve, weather } from "./application.mjs";

const tools = {
  weather: tool({
    description: DESCRIPTION,
    inputSchema: z.object({ city: z.string() }),
    execute: weather,
  }),
};
const Person = tool({
  description: "A person.",
  inputSchema: z.object({ name: z.string() }),
});

export async function serveModel(model) {
  async function say(place, { text }) {
    return (await generateText({ model: model(place), prompt: text })).text;
  }

  async function* stream(place, { text }) {
    yield* streamText({ model: model(place), prompt: text }).textStream;
  }

  async function converse(place, { texts, streamed }) {
    const messages = [];
    const answers = [];
    for (const text of texts) {
      messages.push({ role: "user", content: text });
      const asked = { model: model(place), messages, tools, stopWhen: stepCountIs(5) };
      const result = streamed ? streamText(asked) : await generateText(asked);
      answers.push(await result.text);
      messages.push(...(await result.response).messages);
    }
    return answers;
  }

  async function turn(place, { text, streamed }) {
    const [answer] = await converse(place, { texts: [text], streamed });
    return answer;
  }

  async function extract(place, { text }) {
    const { toolCalls } = await generateText({
      model: model(place),
      prompt: text,
      tools: { Person },
      toolChoice: "required",
    });
    return toolCalls[0].input;
  }

  await serve({ say, stream, tools: turn, converse, extract });
}
