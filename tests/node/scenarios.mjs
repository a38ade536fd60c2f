// The official SDK as an application uses it: `node scenarios.mjs NAME BASE_URL`.
// Prints what the application saw as one line of JSON.

import OpenAI from "openai";

const [, , name, baseURL] = process.argv;
const model = "scripted-1";
const client = new OpenAI({
  baseURL,
  apiKey: "sk-test",
  maxRetries: 2,
  defaultHeaders: { "X-Session-Id": "talk" },
});

const user = (content) => [{ role: "user", content }];
const memory = (headers) =>
  Object.fromEntries([...headers].filter(([header]) => header.startsWith("x-memory-")));

const tools = [
  {
    type: "function",
    function: {
      name: "weather",
      parameters: { type: "object", properties: { city: { type: "string" } } },
    },
  },
];

const scenarios = {
  async create() {
    const first = await client.chat.completions.create({ model, messages: user("one") });
    const second = await client.chat.completions.create({ model, messages: user("two") });
    return [first, second].map((answer) => answer.choices[0].message.content);
  },

  async stream() {
    const stream = await client.chat.completions.create({
      model,
      messages: user("one"),
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    return { text, total: usage.total_tokens };
  },

  async helper() {
    const runner = client.chat.completions.stream({ model, messages: user("one") });
    return await runner.finalContent();
  },

  async tools() {
    const first = await client.chat.completions.create({
      model,
      messages: user("weather?"),
      tools,
      stream: true,
    });
    const ids = [];
    for await (const chunk of first) {
      for (const call of chunk.choices[0]?.delta.tool_calls ?? []) {
        if (call.id) ids.push(call.id);
      }
    }
    const messages = ids.map((id) => ({ role: "tool", tool_call_id: id, content: "snow" }));
    const second = await client.chat.completions.create({ model, messages, tools });
    return { ids, text: second.choices[0].message.content };
  },

  async loop() {
    const runner = client.chat.completions.runTools({
      model,
      messages: user("weather?"),
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            parameters: tools[0].function.parameters,
            parse: JSON.parse,
            function: ({ city }) => `snow in ${city}`,
          },
        },
      ],
    });
    return await runner.finalContent();
  },

  async headers() {
    await client.chat.completions.create({ model, messages: user("one") });
    const { data, response } = await client.chat.completions
      .create({ model, messages: user("two") })
      .withResponse();
    return { text: data.choices[0].message.content, memory: memory(response.headers) };
  },

  async error() {
    try {
      await client.chat.completions.create({ model, messages: user("one") });
    } catch (error) {
      return { kind: error.constructor.name, status: error.status, code: error.code };
    }
    return null;
  },
};

console.log(JSON.stringify(await scenarios[name]()));
