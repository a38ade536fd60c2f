"""Answers as an OpenAI-compatible upstream makes them, as plain values.

Pure: what to say, in which pieces, and where to stop.  ``ScriptedUpstream`` says it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Piece = bytes | asyncio.Event
"""Bytes to send at once, or an event to wait for before going on."""
Framing = Literal["auto", "chunked", "length", "close"]
Headers = tuple[tuple[str | bytes, str | bytes], ...]

MODEL = "scripted-1"
CREATED = 1_700_000_000
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One answer.

    ``pieces`` are the body; ``framing`` "auto" is chunked unless the body is one piece.  ``cut``
    closes the connection after so many bytes of the body, as it stands on the wire without its
    framing (0: after the headers).  ``hang`` stays silent for ever: "headers" instead of any
    answer, "body" once the pieces are sent.  ``before`` must be set before the headers go.
    ``drop`` closes the connection instead of answering.  ``raw`` is sent as it is, headers and
    all, and the connection closed.  ``length`` lies about the Content-Length.  ``close`` ends the
    connection after the answer.
    """

    status: int = 200
    headers: Headers = (("content-type", "application/json"),)
    pieces: Sequence[Piece] = ()
    framing: Framing = "auto"
    cut: int | None = None
    hang: Literal["headers", "body"] | None = None
    before: asyncio.Event | None = None
    drop: bool = False
    raw: bytes | None = None
    length: int | None = None
    close: bool = False


SILENT = Script(hang="headers")
DROPPED = Script(drop=True)


def json_answer(value: object, status: int = 200, headers: Headers = ()) -> Script:
    """A plain JSON answer with a Content-Length."""
    body = json.dumps(value, ensure_ascii=False).encode()
    return Script(
        status=status,
        headers=(("content-type", "application/json"), *headers),
        pieces=(body,),
    )


def error_answer(status: int, message: str, code: str | None = None, param: str = "") -> Script:
    """An error in OpenAI's shape."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "param": param or None, "code": code}
    return json_answer({"error": error}, status)


def sse(
    pieces: Sequence[Piece],
    *,
    headers: Headers = (("content-type", "text/event-stream; charset=utf-8"),),
    framing: Framing = "chunked",
    cut: int | None = None,
    hang: Literal["body"] | None = None,
) -> Script:
    """A stream of raw pieces; an ``asyncio.Event`` among them holds back what follows it."""
    return Script(headers=headers, pieces=pieces, framing=framing, cut=cut, hang=hang)


def tool_call(name: str, arguments: str, id: str = "call_1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_completion(
    content: str | None = "",
    *,
    tool_calls: Sequence[Mapping[str, Any]] = (),
    n: int = 1,
    usage: Mapping[str, Any] | None = USAGE,
    refusal: str | None = None,
    finish_reason: str | None = None,
    model: str = MODEL,
) -> dict[str, Any]:
    """A ``chat.completion`` object; with ``n > 1`` the further choices say their number too."""
    reason = finish_reason or ("tool_calls" if tool_calls else "stop")
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": [
            {
                "index": index,
                "message": _said(content, index, refusal, tool_calls),
                "logprobs": None,
                "finish_reason": reason,
            }
            for index in range(n)
        ],
    }
    if usage is not None:
        answer["usage"] = dict(usage)
    return answer


def _said(
    content: str | None, index: int, refusal: str | None, calls: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    text = f"{content} ({index})" if content and index else content
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
    if calls:
        message["tool_calls"] = [dict(call) for call in calls]
    return message


def chat_stream(
    content_pieces: Sequence[str] = (),
    tool_calls: Sequence[Mapping[str, Any]] = (),
    finish_reason: str | None = None,
    include_usage: bool = False,
    *,
    n: int = 1,
    done: bool = True,
    newline: bytes = b"\n",
    split: int | None = None,
    model: str = MODEL,
) -> list[bytes]:
    """The events of a streamed answer, one a piece; with ``split`` so many bytes a piece.

    ``finish_reason`` "" leaves the finish out.
    """
    reason = ("tool_calls" if tool_calls else "stop") if finish_reason is None else finish_reason
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
    deltas += [{"content": piece} for piece in content_pieces]
    deltas += [delta for at, call in enumerate(tool_calls) for delta in _fragments(at, call)]
    chunks = [
        _chunk([{"index": index, "delta": delta, "logprobs": None, "finish_reason": None}], model)
        for delta in deltas
        for index in range(n)
    ]
    if reason:
        chunks += [
            _chunk([{"index": i, "delta": {}, "logprobs": None, "finish_reason": reason}], model)
            for i in range(n)
        ]
    if include_usage:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({**_chunk([], model), "usage": dict(USAGE)})
    payloads = [json.dumps(chunk, ensure_ascii=False).encode() for chunk in chunks]
    if done:
        payloads.append(b"[DONE]")
    events = [event(payload, newline) for payload in payloads]
    return events if split is None else pieces_of(b"".join(events), split)


def event(payload: bytes, newline: bytes = b"\n") -> bytes:
    return b"data: " + payload + newline * 2


def pieces_of(raw: bytes, size: int) -> list[bytes]:
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def _chunk(choices: list[dict[str, Any]], model: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": model,
        "system_fingerprint": "fp_1",
        "choices": choices,
    }


def _fragments(index: int, call: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A call as it is streamed: its id and name first, then its arguments in small pieces."""
    function = call["function"]
    first = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
    arguments: str = function["arguments"]
    rest = [arguments[at : at + 5] for at in range(0, len(arguments), 5)]
    return [{"tool_calls": [first]}] + [
        {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in rest
    ]
