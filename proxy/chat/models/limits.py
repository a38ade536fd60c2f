"""Context windows of models, and recognition of the error that a prompt was too long.

Never uses the network.
"""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from proxy.chat import jsontext
from proxy.lazy import lazy_import

if TYPE_CHECKING:
    from proxy.chat.models import catalogue
else:
    catalogue = lazy_import("proxy.chat.models.catalogue")

_MAX_ERROR = 64 * 1024

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|model_max_prompt_tokens_exceeded"
    r"|(maximum|max|available) (model |prompt |context |sequence |seq )+(length|size)"
    r"|(maximum|model'?s?|exceeds?( the)?|larger than the) context (length|window|size|limit)"
    r"|(the )?context (length|window|size|limit)( was| has been| is)? exceed"
    r"|greater than the context length|context (the )?overflows|longer than the model's context"
    r"|(prompt|input|request)( is|:)? too (long|large)(?! for model.*per (minute|day))"
    r"|too many (input )?tokens(?! per)|exceeded model token limit|prompt exceeds"
    r"|exceeds the maximum number of (input )?tokens|input token count"
    r"|reduce the length of (the |your )?(messages|prompt|input)|reduce your message size"
    r"|`?inputs`? (tokens \+|must have less than)|range of input length should be"
    r"|max_(completion_)?tokens must be at least 1, got -(?!1\b)",  # vLLM, of the room that is left
    re.IGNORECASE,
)

MIN_CONTEXT_WINDOW = 4_000
"""Tokens of prompt and answer that fit into any chat model: the list of models is only loaded for
more, so that the first chat is not delayed."""

MAX_NAME = 512
"""Characters of a model's name that count: they come from clients, and several caches keep them."""


class ModelList:
    """Loads the list of models in a thread: it takes a third of a second."""

    def __init__(self) -> None:
        self._loading: asyncio.Future[None] | None = None

    async def wait_loaded(self, tokens: int) -> None:
        """Wait until the list is loaded, if ``context_window`` needs it for ``tokens`` tokens.

        Concurrent callers share one thread, which the cancellation of a caller does not stop.
        """
        if tokens <= MIN_CONTEXT_WINDOW:
            return
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(_load_list))
        if not self._loading.done():
            await asyncio.shield(self._loading)


def _load_list() -> None:
    """Import the slow part; not ``catalogue``, since lazy modules are not thread-safe."""
    importlib.import_module("genai_prices.data_snapshot").get_snapshot()


def context_window(model: str | None, tokens: int) -> int | None:
    """The maximum of a model's prompt and answer together, in tokens; None if it is not known, or
    if ``tokens`` tokens fit into any model."""
    return _cached_window(model and model[:MAX_NAME]) if tokens > MIN_CONTEXT_WINDOW else None


@lru_cache(maxsize=512)
def _cached_window(model: str | None) -> int | None:
    return catalogue.window_of(model)


def is_context_error(status: int, body: bytes) -> bool:
    """Whether an upstream's error says that the prompt did not fit into the model's context.

    Never for rate limits (429).  Knows the messages of OpenAI, Azure, Anthropic, Bedrock, Cohere,
    Gemini, Groq, Mistral, Moonshot, OpenRouter, xAI, vLLM, SGLang, TGI, llama.cpp, LM Studio.
    """
    if status < 400 or status in (401, 403, 404, 429):
        return False
    return bool(_TOO_LONG.search("\n".join(_messages(body[:_MAX_ERROR]))))


def _messages(body: bytes) -> Iterator[str]:
    """The messages in an error; all of it if it is not JSON.  An echoed request is not included."""
    try:
        answer = jsontext.decode_shallow(body)
    except jsontext.UNREADABLE:  # plain text, or an HTML page
        yield body.decode(errors="replace")
        return
    if isinstance(answer, list):  # Gemini's OpenAI-compatible API
        answer = answer[0] if answer else None
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    for holder in (answer, error):
        if isinstance(holder, str):
            yield holder
        elif isinstance(holder, dict):
            yield from (
                value
                for key in ("message", "code", "type", "detail", "error")
                if isinstance(value := holder.get(key), str)
            )
            metadata = holder.get("metadata")  # OpenRouter: the upstream's own error, as text
            if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
                yield str(metadata["raw"])
