// The AI SDK with its provider for OpenAI-compatible upstreams.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { serveModel } from "./ai.mjs";
import { KEY, MODEL } from "./application.mjs";

await serveModel(({ url, headers }) =>
  createOpenAICompatible({ name: "proxy", baseURL: url, apiKey: KEY, headers })(MODEL),
);
