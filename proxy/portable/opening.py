"""Telling a file's format by its beginning, and the right reader for it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

import ijson

from proxy.chat import jsontext
from proxy.portable.chatgpt import ChatGPT
from proxy.portable.format import NAME
from proxy.portable.gathering import Together, one_by_one
from proxy.portable.langchain import LangChain
from proxy.portable.lines import Export
from proxy.portable.messages import ChatLines, Messages
from proxy.portable.source import Broken, ImportSource, Warnings

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Limits:
    """In bytes: a line, and what has to be held at once (see the formats).

    ``together`` says which items of a person hang together.
    """

    line: int
    held: int
    together: Together = one_by_one


def opened(
    beginning: bytes, wanted: Format | None, limits: Limits, warnings: Warnings
) -> tuple[Format, ImportSource]:
    """The format of a file that begins so, and its reader, which has read nothing yet.

    ``wanted`` is the format that somebody says it has.  Raises Broken for one that is not known.
    """
    found = Found(wanted, beginning.lstrip()[:1] == b"[") if wanted else detect(beginning)
    if found is None:
        raise Broken(_unknown(beginning))
    return found.format, _source(found, limits, warnings)


def _source(found: Found, limits: Limits, warnings: Warnings) -> ImportSource:
    match found.format:
        case "memory-proxy":
            return Export(limits.line, limits.held, warnings, limits.together)
        case "chat_jsonl":
            return ChatLines(limits.line, warnings)
        case "chatgpt":
            return ChatGPT(limits.held, warnings)
        case "langchain":
            return LangChain(limits.held, warnings)
        case "openai":
            return Messages(limits.held, warnings)


def _unknown(beginning: bytes) -> str:
    if not beginning.strip():
        return "is empty"
    if beginning[:2] == b"PK":
        return "is a ZIP archive; unpack it, and send the conversations.json in it"
    return "has no format that is known here; say which it is: ?format="


Format = Literal["memory-proxy", "openai", "chat_jsonl", "chatgpt", "langchain"]

ENOUGH = 64 * 1024
"""Bytes of a file's beginning that tell its format."""


class Found(NamedTuple):
    """A format; ``listed``: the file is a list, and not one object."""

    format: Format
    listed: bool


def detect(beginning: bytes) -> Found | None:
    """What a file is that begins so; None if nothing that is known."""
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    keys = _keys(text)
    if text[:1] == b"{":
        return _of_object(text, keys)
    if text[:1] != b"[":
        return None
    if "role" in keys or "messages" in keys:
        return Found("openai", True)
    if "mapping" in keys or "current_node" in keys or "conversation_id" in keys:
        return Found("chatgpt", True)
    return Found("langchain", True) if {"type", "data"} & keys else None


def _of_object(text: bytes, keys: set[str]) -> Found | None:
    """A file of lines, or one object."""
    line, end, _ = text.partition(b"\n")
    first = _fields(line)
    if first.get("kind") == b'"header"' and first.get("format") == f'"{NAME}"'.encode():
        return Found("memory-proxy", False)
    if "mapping" in keys:
        return Found("chatgpt", False)
    if "messages" not in keys:
        return None
    return Found("chat_jsonl" if first or not end else "openai", False)


def _fields(line: bytes) -> dict[str, bytes]:
    try:
        return {name: raw.strip() for name, raw in jsontext.fields(line).items()}
    except jsontext.UNREADABLE:
        return {}


def _keys(text: bytes) -> set[str]:
    """The names of the fields of the first object, as far as they can be seen."""
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events, use_float=True)  # see ChatGPT
    with suppress(ijson.JSONError, ValueError, StopIteration):  # what was read until then is enough
        parser.send(text)
    return set(_outer(events))


def _outer(events: list[tuple[str, object]]) -> list[str]:
    depth, keys = 0, []
    for event, value in events:
        if event == "map_key" and depth == 1:
            keys.append(str(value))
        elif event == "start_map":
            depth += 1
        elif event == "end_map":
            depth -= 1
            if depth == 0:
                break
    return keys
