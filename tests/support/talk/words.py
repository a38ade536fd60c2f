"""Conversations in shorthand, as the JSON that travels: ``u1 a1(c1) t1:c1 a2`` and back.

``u`` and ``p`` are user messages, ``a`` and ``q`` assistant ones, ``t`` tool results, ``s`` system
and ``d`` developer messages.  ``a1(c1,c2)`` makes calls, ``t1:c1`` answers one, ``a1*`` is ``a1``
as a client renders it anew, ``u2'`` is another message than ``u2``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.upstream.answers import (
    Script,
    chat_completion,
    chat_stream,
    json_answer,
    sse,
    tool_call,
)

Json = dict[str, Any]

_WORD = re.compile(
    r"(?P<name>(?P<kind>[a-z])\w*'?)(?P<star>\*?)(?:\((?P<calls>[^)]*)\))?(?::(?P<answers>\w+))?"
)
_ROLES = {"u": "user", "p": "user", "a": "assistant", "q": "assistant", "t": "tool"}
_ROLES |= {"s": "system", "d": "developer"}
_ANSWER = re.compile(r"(?P<star>\**)(?P<name>\w+)-one")


def text(name: str, *, rerendered: bool = False) -> str:
    """What an answer says.  Answers of two names share no word."""
    word = name.replace("'", "x")
    if rerendered:
        return f"**{word}-one** {word}-two\n\n{word}-three!"
    return f"{word}-one {word}-two, {word}-three"


def message(word: str) -> Json:
    """One message of a request."""
    found = _WORD.fullmatch(word)
    assert found, word
    role, name = _ROLES[found["kind"]], found["name"]
    if role == "tool":
        return {"role": role, "tool_call_id": found["answers"], "content": name}
    if role != "assistant":
        return {"role": role, "content": name}
    calls = [_call(name, id) for id in (found["calls"] or "").split(",") if id]
    if calls:
        return {"role": role, "content": None, "tool_calls": calls}
    return {"role": role, "content": text(name, rerendered=bool(found["star"]))}


def messages(shorthand: str) -> list[Json]:
    return [message(word) for word in shorthand.split()]


def _call(name: str, id: str) -> Json:
    return tool_call(name, json.dumps({"asked": id}), id)


def answer(word: str, *, stream: bool = False, n: int = 1) -> Script:
    """What the upstream is to say: a message in shorthand, plain or streamed."""
    said = message(word)
    content, calls = said["content"], said.get("tool_calls", ())
    if not stream:
        return json_answer(chat_completion(content, tool_calls=calls, n=n))
    pieces = re.findall(r"\S+\s*", content or "")
    return sse(chat_stream(pieces, calls, n=n, include_usage=True))


def name(said: Mapping[str, Any]) -> str:
    """The shorthand's name of a message; its text where it is none."""
    content = said.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    if said["role"] != "assistant":
        return str(content)
    calls = said.get("tool_calls")
    if calls:
        return str(calls[0]["function"]["name"])
    found = _ANSWER.match(content or "")
    if found is None:
        return str(content)
    return found["name"].replace("x", "'") + ("*" if found["star"] else "")


def names(listed: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(name(said) for said in listed)


def exchanges(shorthand: str) -> list[tuple[str, str]]:
    """A history as exchanges: what was asked, and the answer that came from the upstream."""
    asked: list[str] = []
    made: list[tuple[str, str]] = []
    for word in shorthand.split():
        if word[0] == "a":
            made.append((" ".join(asked), word))
            asked = []
        else:
            asked.append(word)
    assert not asked, f"{shorthand} does not end in an answer"
    return made
