"""A model that thinks before it calls tools, and whose upstream wants its thoughts back."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.upstream.answers import (
    Script,
    chat_completion,
    error_answer,
    json_answer,
    sse,
)
from tests.support.upstream.connection import Request
from tests.support.upstream.spoken import delta
from tests.support.upstream.tooling import calls as call_chunks
from tests.support.upstream.tooling import stream, text

MUST_GO_BACK = "The reasoning_content in the thinking mode must be passed back to the API."
UNSUPPORTED = "'messages.1' : property 'reasoning_content' is unsupported"


class Thinker:
    """Says what it is told to say; ``refused`` counts the requests that it did not take.

    As strict as DeepSeek: each answer with calls must come back with thoughts, an empty text at
    least.  With ``everywhere`` each answer must; with ``takes_none`` none may have any.
    """

    def __init__(self, *, everywhere: bool = False, takes_none: bool = False) -> None:
        self.everywhere, self.takes_none = everywhere, takes_none
        self.refused = 0
        self._said: deque[tuple[str | None, str, Sequence[Mapping[str, Any]]]] = deque()

    def says(
        self, content: str | None, thoughts: str = "", calls: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._said.append((content, thoughts, calls))

    def __call__(self, request: Request) -> Script:
        answers = [each for each in request.messages if each["role"] == "assistant"]
        if self.takes_none and any("reasoning_content" in each for each in answers):
            self.refused += 1
            return error_answer(400, UNSUPPORTED)
        wanted = [each for each in answers if self.everywhere or each.get("tool_calls")]
        if not self.takes_none and not all(_has_thoughts(each) for each in wanted):
            self.refused += 1
            return error_answer(400, MUST_GO_BACK, "invalid_request_error")
        content, thoughts, calls = self._said.popleft()
        return (_streamed if request.json.get("stream") else _plain)(content, thoughts, calls)


def _has_thoughts(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("reasoning_content"), str)


def _plain(content: str | None, thoughts: str, calls: Sequence[Mapping[str, Any]]) -> Script:
    answer = chat_completion(content, tool_calls=calls)
    if thoughts:
        answer["choices"][0]["message"]["reasoning_content"] = thoughts
    return json_answer(answer)


def _streamed(content: str | None, thoughts: str, calls: Sequence[Mapping[str, Any]]) -> Script:
    thinking = [delta(reasoning_content=word + " ") for word in thoughts.split(" ") if word]
    if thinking:
        thinking[-1] = delta(reasoning_content=thoughts.rpartition(" ")[2])
    made = [
        chunk
        for at, call in enumerate(calls)
        for chunk in call_chunks(
            call["function"]["name"], call["function"]["arguments"], at, call["id"]
        )
    ]
    finish = "tool_calls" if calls else "stop"
    return sse([stream(thinking, text(content) if content else [], made, finish=finish)])
