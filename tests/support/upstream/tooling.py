"""Models that call memory's tools, a memory that notes what it is asked, and who looks at both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.chat.reply.answer import Reply as ChatReply
from proxy.chat.reply.reply import ReplyBuilder
from proxy.errors import RawHeaders
from proxy.gateway.tools.toolbox import ToolContext, ToolResult
from tests.support.upstream.spoken import DONE, Json, call, chunk, delta, events
from tests.support.upstream.streams import reference

SAVE, SEARCH = "memory_save", "memory_search"
USED = {
    "prompt_tokens": 7,
    "completion_tokens": 5,
    "total_tokens": 12,
    "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": None},
}


class FakeTools:
    """A memory in a list; ``hold`` keeps every call waiting, ``failure`` is raised by all."""

    def __init__(self) -> None:
        self.saved: list[str] = []
        self.asked: list[str] = []
        self.whose: list[ToolContext] = []
        self.found = "Kai lives in Kiel."
        self.failure: Exception | None = None
        self.hold: asyncio.Event | None = None
        self.begun = asyncio.Event()

    def reset(self) -> None:
        FakeTools.__init__(self)

    async def save(self, whose: ToolContext, text: str) -> ToolResult:
        await self._wait(whose)
        self.saved.append(text)
        return ToolResult("Saved.", (f"fact_{len(self.saved)}",))

    async def search(self, whose: ToolContext, query: str, room: int) -> ToolResult:
        await self._wait(whose)
        self.asked.append(query)
        return ToolResult(self.found, ("fact_found",))

    async def _wait(self, whose: ToolContext) -> None:
        self.whose.append(whose)
        self.begun.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.failure is not None:
            raise self.failure


def saves(text: str, index: int = 0, id: str = "m1", pieces: int = 2) -> list[Json]:
    """The chunks of a call that saves."""
    return calls(SAVE, json.dumps({"text": text}), index, id, pieces)


def searches(query: str, index: int = 0, id: str = "m1", pieces: int = 2) -> list[Json]:
    return calls(SEARCH, json.dumps({"query": query}), index, id, pieces)


def calls(name: str, arguments: str, index: int = 0, id: str = "c1", pieces: int = 2) -> list[Json]:
    """A call as it is streamed: id and name first, then its arguments."""
    size = -(-len(arguments) // pieces) or 1
    first = call(index, "", id=id, type="function", name=name)
    return [
        first,
        *(call(index, arguments[at : at + size]) for at in range(0, len(arguments), size)),
    ]


def text(*pieces: str) -> list[Json]:
    return [delta(content=piece) for piece in pieces]


def stream(
    *parts: Sequence[Json],
    finish: str | None = "tool_calls",
    usage: Mapping[str, Any] | None = None,
    id: str = "chatcmpl-1",
) -> bytes:
    """A whole stream: the role, these chunks, the finish, usage if there is any, the end."""
    chunks = [delta(role="assistant", content=None), *(one for part in parts for one in part)]
    if finish is not None:
        chunks.append(delta(finish=finish))
    if usage is not None:
        chunks.append(chunk(usage=usage))
    named = [{"id": id, "created": 1, **one} for one in chunks]
    return events(*named) + DONE


@dataclass(frozen=True)
class Seen:
    """A stream as a client reads it."""

    text: str
    calls: tuple[tuple[str, str, str], ...]
    indexes: tuple[int, ...]
    finish: tuple[str, ...]
    usage: Json | None
    ids: frozenset[str]
    roles: int
    dones: int
    error: bool = False


def seen(raw: bytes) -> Seen:
    payloads = reference(raw)
    reply = read(payloads)
    chunks = [json.loads(payload) for payload in payloads if payload != b"[DONE]"]
    choices = [choice for one in chunks for choice in one.get("choices", ())]
    deltas = [choice.get("delta", {}) for choice in choices]
    pieces = [piece for one in deltas for piece in one.get("tool_calls") or ()]
    body = json.loads(reply.choices[0].body) if reply.choices else {}
    return Seen(
        text=body.get("content") or "",
        calls=tuple(_named(one) for one in body.get("tool_calls", ())),
        indexes=tuple(dict.fromkeys(piece["index"] for piece in pieces if "index" in piece)),
        finish=tuple(choice["finish_reason"] for choice in choices if choice.get("finish_reason")),
        usage=json.loads(reply.usage) if reply.usage else None,
        ids=frozenset(one["id"] for one in chunks if "id" in one),
        roles=sum("role" in one for one in deltas),
        dones=payloads.count(b"[DONE]"),
        error=reply.error,
    )


def read(payloads: Iterable[bytes]) -> ChatReply:
    builder = ReplyBuilder()
    for payload in payloads:
        builder.feed(payload)
    return builder.build()


def _named(one: Json) -> tuple[str, str, str]:
    return one["id"], one["function"]["name"], one["function"]["arguments"]


@dataclass
class FakeReply:
    """A reply of the upstream, in these pieces."""

    pieces: Sequence[bytes]
    status: int = 200
    headers: RawHeaders = field(
        default_factory=lambda: [(b"content-type", b"text/event-stream"), (b"x-request-id", b"r")]
    )
    closed: bool = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    async def read(self, limit: int = 1 << 24) -> bytes:
        return b"".join(self.pieces)

    async def close(self) -> None:
        self.closed = True
