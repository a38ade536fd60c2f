"""Replies from payloads, streamed or plain."""

from __future__ import annotations

import json
from collections.abc import Iterable

from proxy.chat.reply.answer import Choice, Reply
from proxy.chat.reply.reply import ReplyBuilder, read_reply

Fields = dict[str, object]


def built(payloads: Iterable[object], **options: int) -> Reply:
    builder = ReplyBuilder(**options)
    for payload in payloads:
        builder.feed(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
    return builder.build()


def deltas(*parts: Fields, finish: str | None = "stop", index: int = 0) -> list[object]:
    """Chunks with these deltas, and the finish in one of its own."""
    chunks: list[object] = [
        {"choices": [{"index": index, "delta": part, "finish_reason": None}]} for part in parts
    ]
    if finish:
        chunks.append({"choices": [{"index": index, "delta": {}, "finish_reason": finish}]})
    return chunks


def streamed(*parts: Fields, finish: str | None = "stop") -> Choice:
    (choice,) = built(deltas(*parts, finish=finish)).choices
    return choice


def plain(message: Fields, **more: object) -> Choice:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop", **more}]}
    reply = read_reply(json.dumps(body).encode())
    assert reply is not None
    (choice,) = reply.choices
    return choice


def call(arguments: str, id: str = "c1", name: str = "f", **more: object) -> Fields:
    function = {"name": name, "arguments": arguments}
    return {**more, "id": id, "type": "function", "function": function}


def piece(arguments: str, **more: object) -> Fields:
    return {"tool_calls": [{**more, "function": {"arguments": arguments}}]}


def calls_in(choice: Choice) -> list[tuple[str, str, str]]:
    calls = json.loads(choice.body)["tool_calls"]
    return [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]
