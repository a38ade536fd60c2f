"""The bytes of the requests, and which session each one goes to."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from bench.plan import Level, Plan, Row, sessions

Json = dict[str, Any]
Messages = list[Json]

Api = Literal["chat completions", "Messages", "Responses"]
APIS: tuple[Api, ...] = ("chat completions", "Messages", "Responses")

_QUESTION = "What did we say about the plans, and what is left to be done?"


def session_names(plan: Plan, row: Row) -> list[str]:
    """Its seeded sessions."""
    return [f"s{row.size}-{number}" for number in range(sessions(plan, row.size))]


def turn_in(api: Api, session: str) -> bytes:
    """The same question in one of the APIs."""
    asked = [{"role": "user", "content": _QUESTION}]
    path, body = _ASKED[api](asked)
    return _post(path, body, b"x-session-id: %b\r\n" % session.encode())


_ASKED: Mapping[Api, Callable[[Messages], tuple[bytes, Json]]] = {
    "chat completions": lambda asked: (b"/v1/chat/completions", {"messages": asked}),
    "Messages": lambda asked: (b"/v1/messages", {"messages": asked, "max_tokens": 100}),
    "Responses": lambda asked: (b"/v1/responses", {"input": asked}),
}


def turn(session: str, extra: bytes = b"", *, stream: bool = False) -> bytes:
    """A question in a session."""
    return request(b"x-session-id: %b\r\n%b" % (session.encode(), extra), stream=stream)


def request(extra: bytes = b"", *, stream: bool = False) -> bytes:
    """A question, with header lines of its own."""
    message = {"role": "user", "content": _QUESTION}
    return _post(b"/v1/chat/completions", {"stream": stream, "messages": [message]}, extra)


def _post(path: bytes, said: Json, extra: bytes) -> bytes:
    body = json.dumps({"model": "mock", **said}).encode()
    return (
        b"POST %b HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer bench\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"
        % (path, len(body), extra, body)
    )


class Requests:
    """The requests of a row, one after another; a session is used no longer than it keeps its
    size, and one of size 0 once."""

    def __init__(self, plan: Plan, row: Row) -> None:
        self._row = row
        self._names = _names(plan, row)

    def plain(self) -> bytes:
        return self._request(b"", stream=False)

    def stream(self, level: Level) -> bytes:
        shape = f"x-bench-chunks: {level.chunks}\r\nx-bench-interval: {level.interval}\r\n"
        return self._request(shape.encode(), stream=True)

    def _request(self, extra: bytes, *, stream: bool) -> bytes:
        if self._row.store is None:
            return request(extra, stream=stream)
        return turn(next(self._names), extra, stream=stream)


def _names(plan: Plan, row: Row) -> Iterator[str]:
    if row.size == 0:
        return (f"new-{number}" for number in itertools.count())
    return itertools.cycle(session_names(plan, row))
