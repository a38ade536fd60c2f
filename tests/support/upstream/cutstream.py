"""A stream of thirty events that stops at any byte, and clients that read so far."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tests.support.processes.running import Running
from tests.support.store.inside import AUTHORIZATION
from tests.support.upstream.answers import Piece, Script, chat_completion, sse
from tests.support.upstream.connection import Request
from tests.support.upstream.wireclient import WireClient
from tests.support.waiting import PATIENCE

WORDS = [f"w{number} " for number in range(28)]
TEXT = "".join(WORDS)
TOGETHER = 60
"""Clients at a time."""


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"


EVENTS = [*(event({"content": word}) for word in WORDS), event({}, "stop"), b"data: [DONE]\n\n"]
STREAM = b"".join(EVENTS)
ENDS = list(accumulate(map(len, EVENTS)))
FINISHED = ENDS[-2] - 1
"""From so many bytes on the line with the finish is complete: it ends with its first newline."""
PLAIN = json.dumps(chat_completion(TEXT)).encode()


def question(session: str, *, stream: bool = True, before: str = "") -> dict[str, Any]:
    """A request whose last message is the session's name; ``before`` is one more before it."""
    said = [{"role": "user", "content": text} for text in (before, session) if text]
    return {"model": "scripted-1", "stream": stream, "messages": said}


async def asks(
    proxy: Running, session: str, *, stream: bool = True, before: str = ""
) -> WireClient:
    """A client that has asked; its own to close."""
    client = await WireClient(proxy.url).__aenter__()
    headers = {"x_session_id": session, "authorization": AUTHORIZATION}
    await client.ask(question(session, stream=stream, before=before), **headers)
    return client


def until(count: int, never: asyncio.Event, stream: bytes = STREAM) -> Script:
    """A stream that stops after so many bytes, until the event is set."""
    return sse([stream[:count], never, stream[count:]] if count else [never, stream])


def plain_until(count: int, never: asyncio.Event) -> Script:
    pieces: list[Piece] = [PLAIN[:count], never, PLAIN[count:]] if count else [never, PLAIN]
    return Script(pieces=pieces, framing="length", length=len(PLAIN))


def by_session(request: Request) -> str:
    text: str = request.messages[-1]["content"]
    return text


def bounds(count: int) -> tuple[str, str]:
    """The texts that may have been read from so many bytes: of ended events, of ended lines."""
    ended = sum(end <= count for end in ENDS[: len(WORDS)])
    lines = sum(end - 1 <= count for end in ENDS[: len(WORDS)])
    return "".join(WORDS[:ended]), "".join(WORDS[:lines])


async def batches(counts: Sequence[int], one: Any) -> None:
    for at in range(0, len(counts), TOGETHER):
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(one(count) for count in counts[at : at + TOGETHER]))
