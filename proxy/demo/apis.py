"""The pretended model's APIs: what each request says, and how an answer looks in each.  Pure.

OpenAI's chat completions and Responses, and Anthropic's Messages: text alone, and what it cost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

Json = dict[str, Any]

NAME = "pretend-1"
"""The model's."""


class Used(msgspec.Struct, frozen=True):
    """The tokens of a request's messages and of its answer; ``streamed``: wanted in a stream too.

    The newer APIs tell it there always.
    """

    prompt: int
    completion: int
    streamed: bool


class Api(msgspec.Struct, frozen=True):
    """``heard``: the messages of a request's body, in chat completions' form; raises LookupError,
    TypeError and AttributeError for what is no request.  ``whole`` and ``events``: an assistant
    message as the body of an answer, and as server-sent events, under a name that begins with
    ``prefix``.
    """

    path: str
    prefix: str
    heard: Callable[[Json], list[Json]]
    whole: Callable[[Json, str, Used], Json]
    events: Callable[[Json, str, Used], Iterator[bytes]]


def _words(message: Json) -> list[str]:
    return re.findall(r"\S+\s*", message.get("content") or "")


def _event(value: Json, name: str = "") -> bytes:
    kind = f"event: {name}\n" if name else ""
    return f"{kind}data: {json.dumps(value)}\n\n".encode()


def _text(parts: object) -> str:
    """The text of a content that is a string, or parts of which some have a text."""
    if isinstance(parts, str):
        return parts
    each = parts if isinstance(parts, list) else []
    return "\n".join(part["text"] for part in each if isinstance(part.get("text"), str))


# Chat completions


def _whole_completion(message: Json, name: str, used: Used) -> Json:
    whole = _completion(name, "chat.completion", {"message": message}, _reason(message))
    return whole | {"usage": _completion_usage(used)}


def completion_events(message: Json, name: str, used: Used) -> Iterator[bytes]:
    """The answer as server-sent events, a word each; what it ``used`` in one of its own."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += ({"content": word} for word in _words(message))
    for call in message.get("tool_calls", ()):
        deltas.append({"tool_calls": [{"index": 0, **call}]})
    for delta in deltas:
        yield _event(_completion(name, "chat.completion.chunk", {"delta": delta}, None))
    last = _completion(name, "chat.completion.chunk", {"delta": {}}, _reason(message))
    yield _event(last)
    if used.streamed:
        yield _event(last | {"choices": [], "usage": _completion_usage(used)})
    yield b"data: [DONE]\n\n"


def _completion_usage(used: Used) -> Json:
    return {
        "prompt_tokens": used.prompt,
        "completion_tokens": used.completion,
        "total_tokens": used.prompt + used.completion,
    }


def _reason(message: Json) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _completion(name: str, kind: str, said: Json, reason: str | None) -> Json:
    choice = {"index": 0, **said, "finish_reason": reason}
    return {"id": name, "object": kind, "created": 0, "model": NAME, "choices": [choice]}


# Responses


def _input(body: Json) -> list[Json]:
    said = body["input"]
    items = [{"role": "user", "content": said}] if isinstance(said, str) else said
    first = (
        [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    )
    return [*first, *(_of_role(each["role"], each["content"]) for each in items if "role" in each)]


def _of_role(role: str, content: object) -> Json:
    return {"role": "system" if role == "developer" else role, "content": _text(content)}


def _response(message: Json, name: str, used: Used) -> Json:
    item = _item(name, "completed", message.get("content") or "")
    return _response_of(name, "completed", [item]) | {"usage": _response_usage(used)}


def _response_usage(used: Used) -> Json:
    return {
        "input_tokens": used.prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": used.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.prompt + used.completion,
    }


def _response_of(name: str, status: str, output: Sequence[Json]) -> Json:
    return {
        "id": name,
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": NAME,
        "output": output,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _item(name: str, status: str, text: str | None) -> Json:
    content = [] if text is None else [_part(text)]
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}


def _response_events(message: Json, name: str, used: Used) -> Iterator[bytes]:
    for number, (kind, more) in enumerate(_steps(message, name, used)):
        full = {"type": kind, "sequence_number": number, **more}
        yield _event(full, kind)


def _steps(message: Json, name: str, used: Used) -> Iterable[tuple[str, Json]]:
    """Types of events, and what each has beside that."""
    text = message.get("content") or ""
    at: Json = {"item_id": f"msg_{name}", "output_index": 0, "content_index": 0}
    yield "response.created", {"response": _response_of(name, "in_progress", [])}
    item = {"output_index": 0, "item": _item(name, "in_progress", None)}
    yield "response.output_item.added", item
    yield "response.content_part.added", {**at, "part": _part("")}
    for word in _words(message):
        yield "response.output_text.delta", {**at, "delta": word, "logprobs": []}
    yield "response.output_text.done", {**at, "text": text, "logprobs": []}
    yield "response.content_part.done", {**at, "part": _part(text)}
    done = {"output_index": 0, "item": _item(name, "completed", text)}
    yield "response.output_item.done", done
    yield "response.completed", {"response": _response(message, name, used)}


# Messages


def _messages(body: Json) -> list[Json]:
    first = [_of_role("system", body["system"])] if body.get("system") else []
    return [*first, *(_of_role(each["role"], each["content"]) for each in body["messages"])]


def _message(message: Json, name: str, used: Used) -> Json:
    content = [{"type": "text", "text": message.get("content") or ""}]
    return _message_of(name, content, "end_turn", used)


def _message_of(name: str, content: Sequence[Json], reason: str | None, used: Used) -> Json:
    return {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": NAME,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": used.prompt, "output_tokens": used.completion},
    }


def _message_events(message: Json, name: str, used: Used) -> Iterator[bytes]:
    block = {"index": 0, "content_block": {"type": "text", "text": ""}}
    deltas = [{"index": 0, "delta": {"type": "text_delta", "text": w}} for w in _words(message)]
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    steps: list[tuple[str, Json]] = [
        (
            "message_start",
            {"message": _message_of(name, [], None, msgspec.structs.replace(used, completion=0))},
        ),
        ("content_block_start", block),
        *(("content_block_delta", delta) for delta in deltas),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": end, "usage": {"output_tokens": used.completion}}),
        ("message_stop", {}),
    ]
    for kind, more in steps:
        yield _event({"type": kind, **more}, kind)


APIS = (
    Api(
        "/v1/chat/completions",
        "chatcmpl-",
        lambda body: list(body["messages"]),
        _whole_completion,
        completion_events,
    ),
    Api("/v1/responses", "resp_", _input, _response, _response_events),
    Api("/v1/messages", "msg_", _messages, _message, _message_events),
)
"""All that it speaks."""
