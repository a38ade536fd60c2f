"""Responses as OpenAI's API makes them, as plain values: items, the object, the events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from tests.support.upstream.answers import CREATED, MODEL

Json = dict[str, Any]

USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 3},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 12,
}

AT_ITS_LIMIT: Json = {
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
}
"""What a response says of itself that was not to be any longer."""

_numbers = count(1)


def said(text: str, **more: Any) -> Json:
    """An item that is a message of the model's."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{next(_numbers)}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
        **more,
    }


def thought(*, encrypted: bool = True) -> Json:
    """A reasoning item."""
    number = next(_numbers)
    item: Json = {"id": f"rs_{number}", "type": "reasoning", "summary": []}
    return {**item, "encrypted_content": f"secret-{number}"} if encrypted else item


def told(text: str) -> Json:
    """A reasoning item in plain words, as servers give it that keep nothing."""
    part = {"type": "reasoning_text", "text": text}
    return {**thought(encrypted=False), "content": [part]}


def named(item: Json) -> Json:
    """What clients send that count on the item being stored."""
    return {"type": "item_reference", "id": item["id"]}


def result(item: Json, output: str) -> Json:
    """What answers a call."""
    return {"type": "function_call_output", "call_id": item["call_id"], "output": output}


def calls(name: str, arguments: str, call_id: str, **more: Any) -> Json:
    return {
        "id": f"fc_{next(_numbers)}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        **more,
    }


def response(output: Sequence[Mapping[str, Any]], **more: Any) -> Json:
    """A whole response."""
    return {
        "id": f"resp_{next(_numbers)}",
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": MODEL,
        "output": [dict(item) for item in output],
        "parallel_tool_calls": True,
        "store": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE,
        **more,
    }


def events(whole: Mapping[str, Any], *, pieces: int = 4) -> list[bytes]:
    """The stream of a response, an event a piece."""
    found: list[Json] = []
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    found += [
        {"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")
    ]
    for at, item in enumerate(whole["output"]):
        found += _item_events(at, item, pieces)
    found.append({"type": f"response.{whole['status']}", "response": whole})
    return [_event({**event, "sequence_number": n}) for n, event in enumerate(found)]


def _item_events(at: int, item: Mapping[str, Any], pieces: int) -> list[Json]:
    place = {"item_id": item.get("id"), "output_index": at}
    open_item = {**item, "status": "in_progress"}
    found: list[Json] = [
        {"type": "response.output_item.added", "output_index": at, "item": open_item}
    ]
    for index, part in enumerate(item.get("content") or [] if item["type"] == "message" else []):
        where = {**place, "content_index": index}
        text = part.get("text") or part.get("refusal") or ""
        kind = "output_text" if part["type"] == "output_text" else "refusal"
        for start in range(0, len(text), pieces):
            delta = text[start : start + pieces]
            found.append({"type": f"response.{kind}.delta", **where, "delta": delta})
        found.append({"type": f"response.{kind}.done", **where, "text": text})
    if item["type"] == "function_call":
        found.append(
            {
                "type": "response.function_call_arguments.done",
                **place,
                "arguments": item["arguments"],
                "name": item["name"],
            }
        )
    found.append({"type": "response.output_item.done", "output_index": at, "item": dict(item)})
    return found


def _event(value: Mapping[str, Any]) -> bytes:
    data = json.dumps(value, ensure_ascii=False)
    return f"event: {value['type']}\ndata: {data}\n\n".encode()


def as_messages(listed: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Items as chat messages; what was said at once is one."""
    found: list[Json] = []
    for item in listed:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            said = {"tool_call_id": item["call_id"], "content": item["output"]}
            found.append({"role": "tool", **said})
        elif kind == "function_call":
            function = {key: item[key] for key in ("name", "arguments")}
            call = {"id": item["call_id"], "type": "function", "function": function}
            if not found or found[-1]["role"] != "assistant":
                found.append({"role": "assistant", "content": None})
            found[-1].setdefault("tool_calls", []).append(call)
        elif kind == "message":
            found.append({"role": item["role"], "content": item["content"]})
    return found


def as_items(listed: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Answers of chat completions as the output of a response, with a thought before each."""
    found: list[Json] = []
    for message in listed:
        found.append(thought())
        if message.get("content"):
            found.append(said(message["content"]))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            found.append(calls(function["name"], function["arguments"], call["id"]))
    return found
