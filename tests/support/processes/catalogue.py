"""The clients that are tested: where each runs, and what it can be told to do.

say: one message, by an instance made for it.  stream: the same, told piece by piece.  tools: a turn
with tool calls, in the client's own loop.  converse: several turns, of which the client keeps the
history.  extract: structure, wanted by a tool call.  Python's are programs/with_NAME.py in
tests/clients, Node.js' are node/with-NAME.mjs.
"""

from __future__ import annotations

from tests.support.processes.applications import Client

ALL = ("say", "stream", "tools", "converse")
ASKS = ("say", "tools", "converse")


def client(name: str, environment: str, *does: str) -> Client:
    return Client(name, environment, frozenset(does))


CLIENTS = (
    client("openai", "current", *ALL, "results_alone", "headers"),
    client("openai-async", "current", *ALL),
    client("anthropic", "messages", *ALL, "threads", "results_alone", "extract", "headers"),
    client("langchain", "current", *ALL, "extract", "headers"),
    client("langgraph", "current", "say", "tools", "converse"),
    client("pydantic-ai", "current", *ALL, "extract"),
    client("openai-agents", "current", *ALL),
    client("haystack", "current", *ALL),
    client("autogen", "current", *ALL),
    client("agno", "current", *ALL),
    client("smolagents", "current", "say", "stream", "tools"),
    client("llm", "current", "say", "converse"),
    client("llama-index", "older", *ALL),
    client("instructor", "older", "say", "extract"),
    client("litellm", "older", *ALL),
    client("dspy", "older", "say", "converse"),
    client("google-adk", "older", *ALL),
    client("shell-gpt", "older", "say", "converse"),
    client("crewai", "heavy", "say", "converse"),
    client("semantic-kernel", "heavy", *ALL),
    client("openai-node", "node", *ALL, "headers"),
    client("anthropic-node", "node", *ALL, "headers"),
    client("ai-sdk", "node", *ALL, "extract"),
    client("ai-sdk-compatible", "node", *ALL, "extract"),
    client("langchain-node", "node", *ALL, "extract"),
    client("openai-agents-node", "node", *ALL),
    client("openai-agents-responses", "current", *ASKS),
    client("pydantic-ai-responses", "current", *ASKS),
    client("agno-responses", "current", *ASKS),
    client("langchain-responses", "current", *ASKS),
    client("ai-sdk-responses", "node", *ASKS),
    client("openai-agents-node-responses", "node", *ASKS),
)

ONLY_STREAMS = frozenset({"shell-gpt"})
NEVER_STREAMS = frozenset({"dspy"})
"""In a conversation."""

TELLS_CALLS_AS_TEXT = frozenset({"smolagents"})
FEEBLE_IDS = {
    "agno": ("vllm", "mistral", "empty"),
    "pydantic-ai": ("empty",),
    "google-adk": ("empty",),
    "openai-node": ("empty",),
    "ai-sdk": ("empty",),
    "ai-sdk-compatible": ("empty",),
}
"""Ids of an upstream in whose place a client sends others."""

WAITS_WHEN_BUSY = frozenset({"crewai"})
"""They heed a retry-after by themselves, whatever else the upstream says, for tens of seconds."""

NEVER_RETRIES = frozenset({"litellm", "dspy", "langchain-node"})
"""Or not where only the response's own header says how soon."""

WANTS_IDS = frozenset(
    {
        *("openai-agents", "openai-agents-node", "semantic-kernel", "langchain-node", "litellm"),
        *("anthropic", "anthropic-node"),
        *(each.name for each in CLIENTS if each.api == "responses"),
    }
)
"""They can do nothing with a call that has an empty id, or not in a stream, or their API knows no
such ids."""

SPEAKS_MESSAGES = frozenset({"anthropic", "anthropic-node"})
"""The Messages API instead of chat completions."""


def of(*does: str) -> list[Client]:
    """The clients that can do all of this."""
    return [each for each in CLIENTS if each.does >= set(does)]
