"""The scripted upstream: chats, and the models that write memory.  A process of its own.

A request whose ``model`` is the name of a feature is a writer's; all others are chats.  All are
answered at once.  With ``--count`` tokens are counted, else they are a quarter of the bytes: where
time is measured, counting would take most of it.  ``GET /v1/tally`` says what came so far.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any
from zlib import crc32

import msgspec
import uvloop

from bench.upstream import Mock, Signal, plain, serve
from bench.writing.player import WRITERS, written
from bench.writing.words import RECALLS, Speaker, tellings_in
from proxy.chat.models.tokens import Tokenizers
from proxy.chat.tools.offer import SAVE, SEARCH

ANSWERS = 64
"""Different answers; the same question has the same."""

_BLOCK = re.compile(r'<memory version="\d+" kind="(\w+)">.*?</memory>', re.DOTALL)

Count = Callable[[str], int]


class Tally(msgspec.Struct):
    """What chats have asked.  ``rounds`` are requests that follow a call of memory's tools.

    Tokens: ``prompt`` of the first requests, ``again`` of the rounds, ``calls`` of the answers that
    call, ``blocks`` of memory by kind, ``tools`` of the functions that are offered.
    """

    chats: int = 0
    rounds: int = 0
    calls_made: int = 0
    prompt: int = 0
    again: int = 0
    calls: int = 0
    tools: int = 0
    blocks: dict[str, int] = {}


NO_TOOLS = msgspec.Raw(b"")


class Said(msgspec.Struct):
    role: str
    content: str | None = None


class Request(msgspec.Struct):
    model: str
    messages: list[Said]
    tools: msgspec.Raw = NO_TOOLS

    @property
    def text(self) -> str:
        """Of the last message."""
        return self.messages[-1].content or ""

    @property
    def own(self) -> str:
        """The person's own words in their last message."""
        said = next(each for each in reversed(self.messages) if each.role == "user")
        return _BLOCK.sub("", said.content or "").strip()

    @property
    def is_round(self) -> bool:
        return self.messages[-1].role == "tool"


class Script:
    """What is answered.  ``count`` gives the tokens of a text, None: nothing is tallied."""

    def __init__(self, count: Count | None) -> None:
        self._count = count
        speaker = Speaker(seed=2)
        self._answers = [speaker.answer() for _ in range(ANSWERS)]
        self.tally = Tally()

    def answer(self, body: bytes) -> bytes:
        request = msgspec.json.decode(body, type=Request)
        if request.model in WRITERS:
            return self._answer(request, body, {"content": written(request.model, request.text)})
        message = self._message(request)
        if self._count is not None:
            self._note(request, message, self._count)
        return self._answer(request, body, message)

    def _message(self, request: Request) -> dict[str, Any]:
        calls = [] if request.is_round or request.tools == NO_TOOLS else _calls(request.own)
        if calls:
            return {"content": None, "tool_calls": calls}
        return {"content": self._answers[crc32(request.own.encode()) % ANSWERS]}

    def _note(self, request: Request, message: dict[str, Any], count: Count) -> None:
        tally = self.tally
        texts = [each.content or "" for each in request.messages]
        offered = count(bytes(request.tools).decode())
        tokens = sum(map(count, texts)) + offered
        calls = message.get("tool_calls", [])
        tally.calls_made += len(calls)
        tally.calls += count(json.dumps(calls)) if calls else 0
        if request.is_round:
            tally.rounds += 1
            tally.again += tokens
            return
        tally.chats += 1
        tally.prompt += tokens
        tally.tools += offered
        for found in (found for text in texts for found in _BLOCK.finditer(text)):
            kind = found[1]
            tally.blocks[kind] = tally.blocks.get(kind, 0) + count(found[0])

    def _answer(self, request: Request, body: bytes, message: dict[str, Any]) -> bytes:
        finish = "tool_calls" if "tool_calls" in message else "stop"
        said = {"role": "assistant", **message}
        if self._count is None:
            used = len(body) // 4, len(said["content"] or "") // 4
        else:
            used = self._count(request.text), self._count(said["content"] or "")
        return msgspec.json.encode(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 0,
                "model": request.model,
                "choices": [{"index": 0, "message": said, "finish_reason": finish}],
                "usage": {
                    "prompt_tokens": used[0],
                    "completion_tokens": used[1],
                    "total_tokens": sum(used),
                },
            }
        )


def _calls(text: str) -> list[dict[str, Any]]:
    """The calls of memory's tools that a person's message gives reason for."""
    wanted = [(SAVE, {"text": telling.noted}) for telling in tellings_in(text)]
    if RECALLS in text:
        wanted.append((SEARCH, {"query": text.partition("?")[0]}))
    return [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for number, (name, arguments) in enumerate(wanted)
    ]


class Connection(Mock):
    """One connection that plays a script."""

    def __init__(self, script: Script) -> None:
        super().__init__(Signal())
        self._script = script

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._body: list[bytes] = []

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        if self._url == b"/v1/tally":
            self._transport.write(plain(msgspec.json.encode(self._script.tally)))
        else:
            self._transport.write(plain(self._script.answer(b"".join(self._body))))


def main() -> None:
    count = Tokenizers().counter_for(None).count_text if "--count" in sys.argv[1:] else None
    script = Script(count)
    uvloop.run(serve(lambda: Connection(script)))


if __name__ == "__main__":
    main()
