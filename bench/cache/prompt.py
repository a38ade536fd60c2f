"""A request's body as the blocks that a cache sees: tools, system text, messages.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench.cache.rules import Block, Prompt, Refused
from proxy.chat.cachemarks import MARKS, without_marks_in_value
from proxy.chat.jsontext import canonical

Json = dict[str, Any]
Count = Callable[[str], int]

EACH = 4
"""Tokens of a message beside its text."""


def prompt_of(body: Json, count: Count) -> Prompt:
    """Raises Refused for marks where none may be."""
    options = body.get("prompt_cache_options") or {}
    blocks = [*_tools(body, count), *_system(body, count)]
    for said in body.get("messages") or body["input"]:
        blocks += _said(said, count)
    implicit = options.get("mode") != "explicit"
    return Prompt(blocks, implicit, body.get("prompt_cache_key") or "")


def _tools(body: Json, count: Count) -> Iterator[Block]:
    for tool in body.get("tools") or ():
        yield _block("tools", tool, count)


def _system(body: Json, count: Count) -> list[Block]:
    system = body.get("system")
    return list(_blocks("system", system, count)) if system else []


def _said(said: Json, count: Count) -> Iterator[Block]:
    """A message of any API's, or an item."""
    if "output" in said:
        yield from _blocks("tool", said["output"], count)
    elif "role" in said:
        yield from _blocks(said["role"], said.get("content"), count)
        yield from (_block("assistant call", call, count) for call in said.get("tool_calls") or ())
    else:
        yield _block("assistant item", said, count)


def _blocks(role: str, content: Any, count: Count) -> Iterator[Block]:
    """A text is a list of one: providers read them alike."""
    parts = [{"text": content}] if isinstance(content, str) else content or []
    for at, part in enumerate(parts):
        made = _block(f"{role} {not at}", part, count)
        yield made._replace(tokens=made.tokens + EACH * (not at), ends=role != "assistant")


def _block(place: str, part: Json, count: Count) -> Block:
    marked = any(part.get(mark) is not None for mark in MARKS)
    if marked and not str(part.get("text", "x")).strip():
        raise Refused("cache_control cannot be set for empty text blocks")
    if marked and part.get("type") in ("thinking", "redacted_thinking"):
        raise Refused("cache_control cannot be set for thinking blocks")
    text = part.get("text")
    bare = canonical({"text": text} if isinstance(text, str) else without_marks_in_value(part))
    tokens = count(text if isinstance(text, str) else bare.decode())
    return Block(place.encode() + bare, tokens, marked)
