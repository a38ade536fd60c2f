// The AI SDK with OpenAI's provider, over either API.

import { createOpenAI } from "@ai-sdk/openai";
import { serveModel } from "./ai.mjs";
import { KEY, MODEL, RESPONSES } from "./application.mjs";

await serveModel(({ url, headers }) => {
  const openai = createOpenAI({ baseURL: url, apiKey: KEY, headers });
  return RESPONSES ? openai.responses(MODEL) : openai.chat(MODEL);
});
