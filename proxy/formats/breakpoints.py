"""Cache marks of our own, behind the part of a prompt that the next request will have again.  Pure.

``cache_control`` (Anthropic): the prompt is read and written up to a mark; from each one a lookup
goes back twenty blocks to what an earlier request has written.  ``prompt_cache_breakpoint`` (OpenAI
from GPT-5.6 on): what is read must end at a mark of this request too, so that the place of the turn
before is marked again.  Both take no more than four.

What memory puts before the last user message's own text is another in each turn, and is not
remembered with it.  So marks stand behind what comes before that message; and, where a model calls
tools and the message stays for a while, behind the results.

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

MOST = 4
"""Marks in a request, the client's included: a fifth is refused."""

BACK = 20
"""Messages that are looked at for one that can carry a mark."""

_NAMES = (b"cache_control", b"prompt_cache")

Kind = Literal["system", "asked", "result", "other"]
"""What a message is: ``asked`` is a person's text, ``result`` nothing but what tools have said."""


class Mark(NamedTuple):
    """A mark (JSON); fewer places than ``least`` are of no use."""

    name: str
    value: bytes
    least: int = 1


Marked = Callable[[bytes, Mark], bytes | None]
"""Gives a message (JSON) with its last part marked, None for one that cannot be, itself for one
that has a mark already."""


_EXPLICIT = b'{"mode":"explicit"}'

CACHE_CONTROL = Mark("cache_control", b'{"type":"ephemeral"}')
BREAKPOINT = Mark("prompt_cache_breakpoint", _EXPLICIT, least=2)

_CLAUDE = re.compile("claude", re.IGNORECASE)
_OPENAI = re.compile(r"(?:^|[/.:])(?:(?:chat)?gpt-(?!oss)|o\d\b|codex)", re.IGNORECASE)
_BREAKPOINTS = re.compile(r"(?:^|[/.:])gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|[12]\d)(?!\d)", re.IGNORECASE)

_KEY = "prompt_cache_key"
_OPTIONS = "prompt_cache_options"
_SETTLED = (_OPTIONS, "prompt_cache_retention")
"""A client that says how its prompts are to be cached has thought of where, too."""


def mark_for(model: str | None) -> Mark | None:
    """What a model takes in chat completions and responses; None where that is not known."""
    if _CLAUDE.search(model or ""):
        return CACHE_CONTROL
    return BREAKPOINT if _BREAKPOINTS.search(model or "") else None


def names_marks(raw: bytes) -> bool:
    """May a body have marks, or an upstream's error be about some?"""
    return any(name in raw for name in _NAMES)


def room_for(mark: Mark, body: bytes) -> int:
    """How many marks a request's body may have beside the client's own."""
    own = sum(body.count(b'"%b"' % name.encode()) for name in MARKS)
    if own and mark is CACHE_CONTROL and b'"ttl"' in body:
        return 0  # what is kept for long must stand before what is kept for a short time
    return max(0, MOST - own)


def with_marks(
    messages: Sequence[bytes],
    kind: Callable[[bytes], Kind],
    marked: Marked,
    mark: Mark,
    room: int,
) -> list[bytes]:
    """The messages (JSON), some of them marked: not more than ``room``."""
    found: dict[int, bytes] = {}
    for end in _ends(messages, kind) if room >= mark.least else ():
        place = _place(messages, end, marked, mark)
        if place is not None and len(found) < room:
            found.setdefault(*place)
    return [found.get(at, message) for at, message in enumerate(messages)]


def with_mark(
    message: bytes, name: str, mark: Mark, text: str, kinds: Collection[str] = ()
) -> bytes | None:
    """A message (JSON) with a mark in its field of this name; see ``_marked_parts``."""
    fields = jsontext.fields(message)
    content = _marked_parts(fields.get(name, b"null"), mark, text, kinds)
    return content and jsontext.join_fields({**fields, name: content})


def _marked_parts(content: bytes, mark: Mark, text: str, kinds: Collection[str]) -> bytes | None:
    """A content (JSON, a text or a list) with the last part marked that can be; None for none.

    ``text`` is the type of a part that is text, ``kinds`` are others that take a mark.  Empty texts
    are refused.
    """
    if content.startswith(b'"'):
        part = {"type": jsontext.encode(text), "text": content, mark.name: mark.value}
        return jsontext.join_items([jsontext.join_fields(part)]) if _says(content) else None
    parts = jsontext.items(content) if content.startswith(b"[") else []
    for at in range(len(parts) - 1, -1, -1):
        fields = jsontext.fields(parts[at])
        if any(name in fields for name in MARKS):
            return content
        type = jsontext.decode(fields.get("type", b"null"))
        if type in kinds or (type == text and _says(fields.get("text", b"null"))):
            parts[at] = jsontext.join_fields({**fields, mark.name: mark.value})
            return jsontext.join_items(parts)
    return None


def with_openai_marks(
    body: bytes,
    model: str | None,
    key: str,
    listed: str,
    kind: Callable[[bytes], Kind],
    marked: Marked,
) -> bytes:
    """A request's body in one of OpenAI's formats: ``listed`` is its field of messages.

    ``key`` tells requests of one conversation, so that they come to the same cache.
    """
    fields = jsontext.fields(body)
    sent = dict(fields)
    if _OPENAI.search(model or "") and fields.get(_KEY, b"null") == b"null":
        sent[_KEY] = jsontext.encode(key)
    mark, raw = mark_for(model), fields.get(listed, b"null")
    if mark is not None and raw.startswith(b"[") and not any(name in fields for name in _SETTLED):
        room, messages = room_for(mark, body), jsontext.items(raw)
        placed = with_marks(messages, kind, marked, mark, room)
        if placed != messages:
            sent[listed] = jsontext.join_items(placed)
            if mark is BREAKPOINT and room == MOST:  # nothing is written that is never read
                sent[_OPTIONS] = _EXPLICIT
    return body if sent == fields else jsontext.join_fields(sent)


def _ends(messages: Sequence[bytes], kind: Callable[[bytes], Kind]) -> Iterator[int]:
    """How many messages stand before a place for a mark, the most useful place first."""
    kinds = [kind(message) for message in messages]
    head = sum(1 for _ in takewhile(lambda each: each == "system", kinds))
    asked = [at for at, each in enumerate(kinds) if each == "asked"][-2:]
    if not asked:
        return
    yield _before(kinds, asked[-1], head)
    yield from _after_results(kinds, asked[-1])
    if len(asked) > 1:
        yield _before(kinds, asked[0], head)
    yield head


def _before(kinds: Sequence[Kind], asked: int, head: int) -> int:
    """System messages right before what is asked are of one request, a block of memory among
    them."""
    while asked > head and kinds[asked - 1] == "system":
        asked -= 1
    return asked


def _after_results(kinds: Sequence[Kind], asked: int) -> list[int]:
    """Behind the newest results of a running tool loop, and those of the request before."""
    following = [*kinds[asked + 1 :], "other"]
    runs = [
        asked + at + 2
        for at, (each, then) in enumerate(zip(following, following[1:], strict=False))
        if each == "result" != then
    ]
    return runs[:-3:-1]


def _place(
    messages: Sequence[bytes], end: int, marked: Marked, mark: Mark
) -> tuple[int, bytes] | None:
    for at in range(end - 1, max(-1, end - 1 - BACK), -1):
        try:
            message = marked(messages[at], mark)
        except jsontext.UNREADABLE:  # a content that is the upstream's to refuse
            continue
        if message is not None:
            return at, message
    return None


def _says(text: bytes) -> bool:
    said = jsontext.decode(text)
    return isinstance(said, str) and bool(said.strip())
