"""Answers of the Messages API as plain values, and what it refuses.

Pure.  Nothing of the proxy is used here.  The rules are those of the API's reference, its guides to
tool use, extended thinking and prompt caching, and its errors as people have reported them.
``alternating`` is the rule of older releases, and of other servers of this API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

from tests.support.upstream.answers import (
    MODEL,
    Script,
    json_answer,
    pieces_of,
    sse,
    tool_call,
)
from tests.support.upstream.connection import Request
from tests.support.upstream.strict import Refused

Json = dict[str, Any]

USAGE = {
    "input_tokens": 7,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 11,
    "output_tokens": 5,
}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def tool_use(name: str, given: Mapping[str, Any], id: str = "toolu_1") -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": dict(given)}


def tool_result(id: str, content: Any, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def thinking(thought: str) -> Json:
    """A thought that the upstream will know again."""
    return {"type": "thinking", "thinking": thought, "signature": signature(thought)}


def signature(thought: str) -> str:
    return sha256(f"secret {thought}".encode()).hexdigest()


def message(*blocks: Json, stop_reason: str | None = None, **more: Any) -> Json:
    """A ``message`` object."""
    called = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks),
        "stop_reason": stop_reason or ("tool_use" if called else "end_turn"),
        "stop_sequence": None,
        "usage": dict(USAGE),
        **more,
    }


def answered(*blocks: Json, stream: bool = False, **more: Any) -> Script:
    """What the upstream is to say, plain or streamed."""
    return told(message(*blocks, **more), stream=stream)


def told(said: Json, *, stream: bool) -> Script:
    return sse(message_stream(said)) if stream else json_answer(said)


def message_stream(said: Json, split: int | None = None) -> list[bytes]:
    """The events of a streamed answer, one a piece; with ``split`` so many bytes a piece."""
    events = [event(each) for each in events_of(said)]
    return events if split is None else pieces_of(b"".join(events), split)


def event(said: Mapping[str, Any]) -> bytes:
    payload = json.dumps(said, ensure_ascii=False)
    return f"event: {said['type']}\ndata: {payload}\n\n".encode()


def events_of(said: Json) -> Iterator[Json]:
    usage = said["usage"]
    begun = {**said, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(said["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _empty(block)}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": said["stop_reason"], "stop_sequence": None}
    told = {"output_tokens": usage["output_tokens"]}
    yield {"type": "message_delta", "delta": ending, "usage": told}
    yield {"type": "message_stop"}


def _empty(block: Json) -> Json:
    """A block as it begins."""
    empty: Json = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
    empty |= {"tool_use": {"input": {}}, "server_tool_use": {"input": {}}}
    begun = {**block, **empty.get(block["type"], {})}
    return {key: value for key, value in begun.items() if key != "citations"}


def _deltas(block: Json) -> Iterator[Json]:
    """In small pieces."""
    kind = block["type"]
    if kind == "text":
        for citation in block.get("citations") or ():
            yield {"type": "citations_delta", "citation": citation}
        yield from (
            {"type": "text_delta", "text": x} for x in re.findall(r"\S+\s*|\s+", block["text"])
        )
    elif kind == "thinking":
        words = re.findall(r"\S+\s*", block["thinking"])
        yield from ({"type": "thinking_delta", "thinking": x} for x in words)
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif kind in ("tool_use", "server_tool_use"):
        given = json.dumps(block["input"])
        for at in range(0, len(given), 5):
            yield {"type": "input_json_delta", "partial_json": given[at : at + 5]}


def refusal(status: int, said: str, kind: str = "invalid_request_error") -> Script:
    """An error in the shape of this API."""
    error = {"type": kind, "message": said}
    return json_answer({"type": "error", "error": error, "request_id": "req_1"}, status)


def as_chat(body: Json) -> Json:
    """A request as chat completions would have it: what was said, and the names of its tools."""
    said = [part for each in body["messages"] for part in _as_chat(each)]
    tools = [{"function": {"name": tool["name"]}} for tool in body.get("tools") or ()]
    return {**body, "messages": said, "tools": tools}


def _as_chat(said: Mapping[str, Any]) -> Iterator[Json]:
    calls, texts = [], []
    for block in blocks(said):
        if block["type"] == "tool_result":
            content = block["content"]
            heard = content if isinstance(content, str) else "".join(x["text"] for x in content)
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": heard}
        elif block["type"] == "tool_use":
            calls.append(tool_call(block["name"], json.dumps(block["input"]), block["id"]))
        else:
            texts.append(block["text"])
    if texts or calls:
        yield {"role": said["role"], "content": " ".join(texts), "tool_calls": calls}


class Binding:
    """An answer for ``ScriptedUpstream.always``: a model that thinks, and takes a thought back only
    where nothing before it has changed, cache marks and other thoughts aside."""

    def __init__(self) -> None:
        self._bound: dict[str, Any] = {}

    def __call__(self, request: Request) -> Script:
        body = request.json
        for at, said in enumerate(body["messages"]):
            for block in blocks(said):
                if block["type"] == "thinking" and self._bound[block["signature"]] != prefix(
                    body, at
                ):
                    return refusal(
                        400,
                        f"messages.{at}.content.0: Invalid `signature` in `thinking` block. The "
                        "block is bound to a different conversation. Remove the block.",
                    )
        thought = thinking(f"Thought {len(self._bound)}.")
        self._bound[thought["signature"]] = prefix(body, len(body["messages"]))
        calls = body.get("tools") and "tool_result" not in {
            b["type"] for b in blocks(body["messages"][-1])
        }
        said = tool_use("look", {}, f"toolu_{len(self._bound)}") if calls else text("I see.")
        return answered(thought, said)


def prefix(body: Json, at: int) -> Any:
    """What stands before a message."""
    before = [
        (said["role"], [_unmarked(b) for b in blocks(said) if "thinking" not in b["type"]])
        for said in body["messages"][:at]
    ]
    return body.get("system"), body.get("tools"), before


def _unmarked(block: Json) -> Json:
    return {key: value for key, value in block.items() if key != "cache_control"}


# What is refused

MAX_MARKS = 4

ROLES = ("user", "assistant", "system")
"""A system message in mid-conversation stands behind one of the user."""

PER_TURN = ("per-turn-control-", "mid-conversation-output-config-")
"""Betas with which a system message says how much to think from then on.

https://platform.claude.com/docs/build-with-claude/effort-per-message
"""

FIELDS: dict[str, set[str]] = {
    "text": {"text", "citations", "cache_control"},
    "image": {"source", "cache_control"},
    "document": {"source", "title", "context", "citations", "cache_control"},
    "search_result": {"source", "title", "content", "citations", "cache_control"},
    "tool_use": {"id", "name", "input", "caller", "cache_control"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "server_tool_use": {"id", "name", "input", "caller", "cache_control"},
    "web_search_tool_result": {"tool_use_id", "content", "caller", "cache_control"},
    "container_upload": {"file_id", "cache_control"},
}
_ASSISTANTS = {"tool_use", "thinking", "redacted_thinking", "server_tool_use"}
_ASSISTANTS |= {"web_search_tool_result"}
_ID = re.compile(r"[a-zA-Z0-9_-]+")


def validate(
    body: Any, headers: Mapping[str, str], *, counting: bool = False, alternating: bool = True
) -> None:
    """Raise Refused for a request that the API would refuse."""
    if "anthropic-version" not in headers:
        raise Refused("anthropic-version: header is required", "anthropic-version")
    if not isinstance(body, dict):
        raise Refused("not an object", "body")
    if not counting and not (type(body.get("max_tokens")) is int and body["max_tokens"] >= 1):
        raise Refused("max_tokens: Field required", "max_tokens")
    if not isinstance(body.get("model"), str):
        raise Refused("model: Field required", "model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("messages: at least one message is required", "messages")
    if len(list(_marks(body))) > MAX_MARKS:
        found = len(list(_marks(body)))
        raise Refused(
            f"A maximum of 4 blocks with cache_control may be provided. Found {found}.", "messages"
        )
    _system(body.get("system"))
    per_turn = any(beta in headers.get("anthropic-beta", "") for beta in PER_TURN)
    for at, said in enumerate(messages):
        _message(said, f"messages.{at}", per_turn)
    if (body.get("thread") or {}).get("type") == "continue":
        return  # of a conversation that is kept these are the end alone
    _order(messages, alternating)
    _calls(messages)
    _own_tools(messages)
    if (body.get("thinking") or {}).get("type") == "enabled":
        _thinks(messages)


def _marks(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if value.get("cache_control") is not None:
            yield value
        for key, item in value.items():
            if key != "input":
                yield from _marks(item)
    elif isinstance(value, list):
        for item in value:
            yield from _marks(item)


def _system(system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise Refused("system: Input should be a valid list", "system")
    for at, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            raise Refused("system: only text", f"system.{at}")
        _block(block, "system", f"system.{at}")


def _message(said: Any, place: str, per_turn: bool) -> None:
    if not isinstance(said, dict) or said.get("role") not in ROLES:
        raise Refused("Unexpected role", place)
    steers = per_turn and said["role"] == "system" and "output_config" in said
    if said.keys() - {"role", "content"} - ({"output_config"} if steers else set()):
        raise Refused("Extra inputs are not permitted", place)
    content = said.get("content")
    if isinstance(content, str):
        content = [text(content)]
    if not isinstance(content, list) or not (content or steers):
        raise Refused("content: must be non-empty", place)
    for at, block in enumerate(content):
        _block(block, said["role"], f"{place}.content.{at}")


def _block(block: Any, role: str, place: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in FIELDS:
        raise Refused(f"Input tag {kind!r} does not match any of the expected tags", place)
    if block.keys() - FIELDS[kind] - {"type"}:
        raise Refused("Extra inputs are not permitted", place)
    if kind == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
        raise Refused("text content blocks must contain non-whitespace text", place)
    if (kind in _ASSISTANTS) != (role == "assistant") and kind != "text":
        raise Refused(f"{kind} is not permitted for {role}", place)
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        raise Refused("input: Input should be a valid dictionary", place)
    if kind == "thinking" and block["signature"] != signature(block["thinking"]):
        raise Refused("Invalid `signature` in `thinking` block", place)
    if kind == "tool_result" and isinstance(block.get("content"), list):
        for at, inner in enumerate(block["content"]):
            _block(inner, role, f"{place}.content.{at}")


def _order(messages: Sequence[Json], alternating: bool) -> None:
    if messages[0]["role"] != "user":
        raise Refused('first message must use the "user" role', "messages.0")
    for at, (before, said) in enumerate(pairwise(messages), 1):
        if alternating and before["role"] == said["role"]:
            raise Refused('roles must alternate between "user" and "assistant"', f"messages.{at}")
        if said["role"] == "system" and before["role"] != "user":
            raise Refused("a system message follows one of the user", f"messages.{at}")
        if before["role"] == "system" and said["role"] != "assistant":
            raise Refused("a system message precedes an answer", f"messages.{at}")
    last = messages[-1]
    if last["role"] == "assistant":
        ending = blocks(last)[-1]
        if ending["type"] == "text" and ending["text"] != ending["text"].rstrip():
            raise Refused("final assistant content cannot end with trailing whitespace", "messages")


def blocks(said: Mapping[str, Any]) -> list[Json]:
    content = said["content"]
    return [text(content)] if isinstance(content, str) else content


def _calls(messages: Sequence[Json]) -> None:
    """Each call is answered at the very beginning of what follows it, and once."""
    known: set[str] = set()
    waiting: list[str] = []
    for at, said in enumerate(messages):
        kinds = [block["type"] for block in blocks(said)]
        results = [b["tool_use_id"] for b in blocks(said) if b["type"] == "tool_result"]
        if sorted(results) != sorted(waiting) or kinds[: len(results)] != ["tool_result"] * len(
            results
        ):
            missing = ", ".join(sorted({*waiting} ^ {*results})) or "order"
            raise Refused(
                "`tool_use` ids were found without `tool_result` blocks immediately after, or "
                f"unexpected `tool_use_id` found in `tool_result` blocks: {missing}",
                f"messages.{at}",
            )
        waiting = [block["id"] for block in blocks(said) if block["type"] == "tool_use"]
        if known & {*waiting} or len({*waiting}) != len(waiting):
            raise Refused("`tool_use` ids must be unique", f"messages.{at}")
        if not all(map(_ID.fullmatch, waiting)):
            raise Refused("tool_use.id: String should match pattern", f"messages.{at}")
        if waiting and kinds[-len(waiting) :] != ["tool_use"] * len(waiting):
            raise Refused("`tool_use` blocks must be last", f"messages.{at}")
        known |= {*waiting}
    if waiting:
        raise Refused("`tool_use` ids were found without `tool_result` blocks", "messages")


def _own_tools(messages: Sequence[Json]) -> None:
    """What the API's own tools were asked has a result once somebody says something else."""
    said = [block for each in messages for block in blocks(each)]
    ended = {block["tool_use_id"] for block in said if block["type"].endswith("_tool_result")}
    waiting: set[str] = set()
    for each in messages:
        kinds = [block["type"] for block in blocks(each)]
        if each["role"] == "user" and "tool_result" not in kinds and waiting:
            raise Refused(
                "`web_search` tool use was found without a corresponding `web_search_tool_result`",
                "messages",
            )
        uses = [block["id"] for block in blocks(each) if block["type"] == "server_tool_use"]
        waiting |= {*uses} - ended


def _thinks(messages: Sequence[Json]) -> None:
    """With thinking on, the answers of the running loop begin with it."""
    for said in reversed(messages):
        kinds = [block["type"] for block in blocks(said)]
        if said["role"] == "user" and "tool_result" not in kinds:
            return
        if said["role"] == "assistant" and "tool_use" in kinds and "thinking" not in kinds[0]:
            raise Refused(
                "Expected `thinking` or `redacted_thinking`, but found `tool_use`", "messages"
            )
