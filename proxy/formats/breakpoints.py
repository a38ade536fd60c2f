"""Adds the proxy's own cache marks after the part of a prompt that the next request repeats.  Pure.

``cache_control`` (Anthropic): the upstream caches the prompt up to each mark, and searches up to
twenty blocks before a mark for a cached prefix.  ``prompt_cache_breakpoint`` (OpenAI from GPT-5.6
on): a cached prefix is only found if it ends at a mark of this request, so the previous turn's
position is marked again.  Both allow at most four marks.

The memory block before the last user message's text differs in each turn and is not recorded.  So
marks are placed before that message and, during a tool loop, which repeats that message, after the
tool results.

https://platform.claude.com/docs/en/build-with-claude/prompt-caching
https://developers.openai.com/api/docs/guides/prompt-caching
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from proxy.chat import jsontext
from proxy.chat.cachemarks import MARKS

MAX_MARKS = 4
"""Marks in a request, the client's included; upstreams refuse more."""

MAX_LOOKBACK = 20
"""How many messages are searched backwards for one that can carry a mark."""

_NAMES = (b"cache_control", b"prompt_cache")

MessageKind = Literal["system", "question", "result", "other"]
"""``question`` is a user's text, ``result`` has only tool results."""


class CacheMark(NamedTuple):
    """A field name and its JSON value; fewer than ``min_marks`` of them have no effect."""

    name: str
    value: bytes
    min_marks: int = 1


AddMark = Callable[[bytes, CacheMark], bytes | None]
"""Returns a message (JSON) with its last part marked: unchanged if it has a mark already, None if
it cannot carry one."""


_EXPLICIT = b'{"mode":"explicit"}'

CACHE_CONTROL = CacheMark("cache_control", b'{"type":"ephemeral"}')
BREAKPOINT = CacheMark("prompt_cache_breakpoint", _EXPLICIT, min_marks=2)

_CLAUDE = re.compile("claude", re.IGNORECASE)
_OPENAI = re.compile(r"(?:^|[/.:])(?:(?:chat)?gpt-(?!oss)|o\d\b|codex)", re.IGNORECASE)
_BREAKPOINTS = re.compile(r"(?:^|[/.:])gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|[12]\d)(?!\d)", re.IGNORECASE)

_KEY = "prompt_cache_key"
_OPTIONS = "prompt_cache_options"
_CLIENT_CACHE_OPTIONS = (_OPTIONS, "prompt_cache_retention")
"""If a client sets one of these, it decides where to cache, and no marks are added."""


def mark_for(model: str | None) -> CacheMark | None:
    """The mark that a model accepts in OpenAI's formats; None if it is not known to accept any."""
    if _CLAUDE.search(model or ""):
        return CACHE_CONTROL
    return BREAKPOINT if _BREAKPOINTS.search(model or "") else None


def names_marks(raw: bytes) -> bool:
    """Whether a body may have cache marks, or an upstream's error may be about them."""
    return any(name in raw for name in _NAMES)


def marks_left(mark: CacheMark, body: bytes) -> int:
    """How many marks can be added to a request's body, given the client's own."""
    own = sum(body.count(b'"%b"' % name.encode()) for name in MARKS)
    if own and mark is CACHE_CONTROL and b'"ttl"' in body:
        return 0  # the API requires longer cache lifetimes to precede shorter ones
    return max(0, MAX_MARKS - own)


def with_marks(
    messages: Sequence[bytes],
    kind: Callable[[bytes], MessageKind],
    add_mark: AddMark,
    mark: CacheMark,
    max_marks: int,
) -> list[bytes]:
    """The messages (JSON), at most ``max_marks`` of them with a mark."""
    marked: dict[int, bytes] = {}
    for end in _mark_positions(messages, kind) if max_marks >= mark.min_marks else ():
        placed = _mark_before(messages, end, add_mark, mark)
        if placed is not None and len(marked) < max_marks:
            marked.setdefault(*placed)
    return [marked.get(at, message) for at, message in enumerate(messages)]


def with_mark(
    message: bytes, name: str, mark: CacheMark, text: str, kinds: Collection[str] = ()
) -> bytes | None:
    """A message (JSON) with a mark in its field of this name; see ``_mark_last_part``."""
    fields = jsontext.fields(message)
    content = _mark_last_part(fields.get(name, b"null"), mark, text, kinds)
    return content and jsontext.join_fields({**fields, name: content})


def _mark_last_part(
    content: bytes, mark: CacheMark, text: str, kinds: Collection[str]
) -> bytes | None:
    """The content (JSON, a text or a list) with a mark on its last markable part; None if no part
    is.

    ``text`` is the type of a text part, ``kinds`` are other types that accept a mark.  Upstreams
    refuse marks on empty texts.
    """
    if content.startswith(b'"'):
        part = {"type": jsontext.encode(text), "text": content, mark.name: mark.value}
        return jsontext.join_items([jsontext.join_fields(part)]) if _has_text(content) else None
    parts = jsontext.items(content) if content.startswith(b"[") else []
    for at in range(len(parts) - 1, -1, -1):
        fields = jsontext.fields(parts[at])
        if any(name in fields for name in MARKS):
            return content
        type = jsontext.decode(fields.get("type", b"null"))
        if type in kinds or (type == text and _has_text(fields.get("text", b"null"))):
            parts[at] = jsontext.join_fields({**fields, mark.name: mark.value})
            return jsontext.join_items(parts)
    return None


def with_openai_marks(
    body: bytes,
    model: str | None,
    key: str,
    messages_field: str,
    kind: Callable[[bytes], MessageKind],
    add_mark: AddMark,
) -> bytes:
    """A body in one of OpenAI's formats with marks and a cache key; unchanged if none apply.

    ``messages_field`` is the field with the messages.  ``key`` identifies the conversation, so that
    the upstream routes its requests to the same cache.
    """
    fields = jsontext.fields(body)
    changed = dict(fields)
    if _OPENAI.search(model or "") and fields.get(_KEY, b"null") == b"null":
        changed[_KEY] = jsontext.encode(key)
    mark, raw = mark_for(model), fields.get(messages_field, b"null")
    if (
        mark is not None
        and raw.startswith(b"[")
        and not any(name in fields for name in _CLIENT_CACHE_OPTIONS)
    ):
        max_marks, messages = marks_left(mark, body), jsontext.items(raw)
        marked = with_marks(messages, kind, add_mark, mark, max_marks)
        if marked != messages:
            changed[messages_field] = jsontext.join_items(marked)
            if mark is BREAKPOINT and max_marks == MAX_MARKS:
                changed[_OPTIONS] = _EXPLICIT  # no implicit cache writes, which are never read
    return body if changed == fields else jsontext.join_fields(changed)


def _mark_positions(
    messages: Sequence[bytes], kind: Callable[[bytes], MessageKind]
) -> Iterator[int]:
    """The number of messages before each position of a mark, the most useful position first."""
    kinds = [kind(message) for message in messages]
    head = sum(1 for _ in takewhile(lambda each: each == "system", kinds))
    questions = [at for at, each in enumerate(kinds) if each == "question"][-2:]
    if not questions:
        return
    yield _before_system_messages(kinds, questions[-1], head)
    yield from _after_results(kinds, questions[-1])
    if len(questions) > 1:
        yield _before_system_messages(kinds, questions[0], head)
    yield head


def _before_system_messages(kinds: Sequence[MessageKind], question: int, head: int) -> int:
    """The index of ``question``, or of the first of the system messages directly before it: those
    belong to one request only, such as a memory block."""
    while question > head and kinds[question - 1] == "system":
        question -= 1
    return question


def _after_results(kinds: Sequence[MessageKind], question: int) -> list[int]:
    """Positions after the last two groups of tool results: this and the previous request's."""
    ends = [
        at + 1
        for at in range(question + 1, len(kinds))
        if kinds[at] == "result" and kinds[at + 1 : at + 2] != ["result"]
    ]
    return ends[:-3:-1]


def _mark_before(
    messages: Sequence[bytes], end: int, add_mark: AddMark, mark: CacheMark
) -> tuple[int, bytes] | None:
    for at in range(end - 1, max(-1, end - 1 - MAX_LOOKBACK), -1):
        try:
            message = add_mark(messages[at], mark)
        except jsontext.UNREADABLE:  # invalid content, which the upstream will refuse
            continue
        if message is not None:
            return at, message
    return None


def _has_text(text: bytes) -> bool:
    decoded = jsontext.decode(text)
    return isinstance(decoded, str) and bool(decoded.strip())
