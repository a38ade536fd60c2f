// The AI SDK with OpenAI's provider, over chat completions.

import { createOpenAI } from "@ai-sdk/openai";
import { serveModel } from "./ai.mjs";
import { KEY, MODEL } from "./application.mjs";

await serveModel(({ url, headers }) =>
  createOpenAI({ baseURL: url, apiKey: KEY, headers }).chat(MODEL),
);
