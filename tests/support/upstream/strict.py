"""What a strict upstream accepts as ``messages``: the rules that OpenAI enforces, as one function.

Pure.  The scripted upstream asks it before it answers, so that no test of ours can pass with a
prompt that the real service would refuse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
PARTS = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
}


class Refused(Exception):
    """The upstream would answer 400.  ``param`` is the place, as OpenAI names it."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


def validate(
    body: object, *, one_system: bool = False, alternating: bool = False, any_ids: bool = False
) -> None:
    """Raise Refused unless a strict upstream takes this chat request.

    ``one_system``: at most one system message, and first, as many local chat templates want it.
    ``alternating``: never two messages of the user in a row, nor two answers, as they also want.
    ``any_ids``: calls and results belong together by their order alone, as where ids are empty.
    """
    if not isinstance(body, dict):
        raise Refused("We could not parse the JSON body of your request.", "body")
    if not isinstance(body.get("model"), str):
        raise Refused("you must provide a model parameter", "model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("Invalid 'messages': expected a non-empty array.", "messages")
    for index, message in enumerate(messages):
        _message(message, f"messages.[{index}]")
        marked(message, f"messages.[{index}]")
    few_marks(body)
    _calls(_numbered(messages) if any_ids else messages)
    if one_system:
        _one_system(messages)
    if alternating:
        _alternating(messages)


MAX_MARKS = 4


def few_marks(body: object) -> None:
    """Raise Refused for more cache marks than providers take."""
    said = json.dumps(body)
    for name in ("cache_control", "prompt_cache_breakpoint"):
        if (found := said.count(f'"{name}": {{')) > MAX_MARKS:
            raise Refused(f"At most 4 blocks with {name} may be provided. Found {found}.", "body")


def marked(said: Mapping[str, Any], place: str, listed: str = "content") -> None:
    """Raise Refused for a breakpoint where OpenAI takes none: on what the model has said, and
    where there is nothing."""
    parts = said.get(listed)
    for part in parts if isinstance(parts, list) else ():
        mark = part.get("prompt_cache_breakpoint") if isinstance(part, dict) else None
        if mark is None:
            continue
        if said.get("role") == "assistant":
            raise Refused("Unknown parameter: 'prompt_cache_breakpoint'.", place)
        if part.get("text", "x") == "" or not isinstance(mark, dict):
            raise Refused("Invalid 'prompt_cache_breakpoint'.", place)


def _message(message: object, place: str) -> None:
    if not isinstance(message, dict):
        raise Refused("Invalid message: expected an object.", place)
    role = message.get("role")
    if role not in ROLES:
        raise Refused(f"Invalid value: {role!r}.", f"{place}.role")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise Refused("Missing parameter 'tool_call_id'.", f"{place}.tool_call_id")
    if role == "function" and not isinstance(message.get("name"), str):
        raise Refused("Missing parameter 'name'.", f"{place}.name")
    if role == "assistant":
        _assistant(message, place)
    elif message.get("content") is None:
        raise Refused("Invalid value for 'content': expected a string, got null.", place)
    _content(role, message.get("content"), place)


def _assistant(message: Mapping[str, Any], place: str) -> None:
    calls = message.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, list) or not calls:
            raise Refused("[] is too short - 'tool_calls'", f"{place}.tool_calls")
        for call in calls:
            _call(call, place)
    others = ("tool_calls", "function_call", "refusal", "audio")
    if message.get("content") is None and not any(message.get(key) for key in others):
        raise Refused("Expected one of 'content' or 'tool_calls'.", f"{place}.content")


def _call(call: object, place: str) -> None:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str):
        raise Refused("Missing parameter 'id'.", f"{place}.tool_calls")
    function = call.get("function")
    if call.get("type") == "custom":
        return
    if call.get("type") != "function" or not isinstance(function, dict):
        raise Refused("Invalid tool call type.", f"{place}.tool_calls")
    if not isinstance(function.get("name"), str):
        raise Refused("Missing parameter 'name'.", f"{place}.tool_calls")
    if not isinstance(function.get("arguments"), str):
        raise Refused("Missing parameter 'arguments'.", f"{place}.tool_calls")


def _content(role: str, content: object, place: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list) or not content or role not in PARTS:
        raise Refused("Invalid type for 'content'.", f"{place}.content")
    for part in content:
        if not isinstance(part, dict) or part.get("type") not in PARTS[role]:
            raise Refused("Invalid content part.", f"{place}.content")
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            raise Refused("Missing parameter 'text'.", f"{place}.content")


def _calls(messages: list[dict[str, Any]]) -> None:
    """Each call answered once, directly after it, before anything else is said."""
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages.[{index}].role"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                raise Refused(
                    "messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    place,
                )
            waiting.remove(message["tool_call_id"])
            continue
        _none(waiting, place)
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        if message["role"] == "assistant":
            waiting = set(calls)
        if len(set(calls)) != len(calls):
            raise Refused("Duplicate value for 'tool_call_id'.", place)
    _none(waiting, "messages")


def _numbered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with ids by place: the calls of each answer, and the results after it."""
    found: list[dict[str, Any]] = []
    calls = results = 0
    for message in messages:
        if message["role"] == "tool":
            found.append({**message, "tool_call_id": str(results)})
            results += 1
            continue
        made = message.get("tool_calls") or []
        ids = [{**call, "id": str(calls + at)} for at, call in enumerate(made)]
        found.append({**message, "tool_calls": ids})
        calls += len(made)
    return found


def _none(waiting: set[str], place: str) -> None:
    if waiting:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            f"to each 'tool_call_id'. These had no response: {', '.join(sorted(waiting))}",
            place,
        )


def _one_system(messages: list[dict[str, Any]]) -> None:
    for index, message in enumerate(messages):
        if index and message["role"] in ("system", "developer"):
            raise Refused("System message must be at the beginning.", f"messages.[{index}].role")


def _alternating(messages: list[dict[str, Any]]) -> None:
    for index, (before, message) in enumerate(pairwise(messages), 1):
        if before["role"] == message["role"] and message["role"] in ("user", "assistant"):
            raise Refused(
                "Conversation roles must alternate user/assistant/user/assistant/...",
                f"messages.[{index}].role",
            )
