"""Checks a model's quotes against the user's messages, and its texts for prompt injection.  Pure.

A text that the user pasted may contain instructions, and a model may write them down as facts.
They are found by pattern: facts are written in the third person, instructions are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from proxy.recall.lexicon.loader import alternation, any_of, lazy_pattern
from proxy.recall.own_words import BLANK, Span, blank_out
from proxy.recall.query.words import words
from proxy.recall.standing.standing import find_instructions

MIN_QUOTE_WORDS = 2.0
"""Words that each part of a quote must have; two characters of scripts without spaces count as
one."""

MAX_QUOTE_CHARACTERS = 500
"""Characters of a quote that are compared, so that copying a whole message costs no more."""

_ELLIPSIS = re.compile(r"\.\.\.|…|\[\.*\]")


class UserMessage(msgspec.Struct, frozen=True):
    """A message of the user, or a piece of a long one, sent ``at`` (Unix seconds).

    ``text`` is what they wrote, ``pasted`` are the spans of it that are quoted or pasted.
    ``dated`` is the last day (YYYY-MM-DD) in a heading of the session's text before it, "" without
    one.  ``utc_offset`` is that of the user's time zone, in seconds.
    """

    id: str
    exchange: str
    seq: int
    text: str
    at: float
    pasted: tuple[Span, ...] = ()
    session: str = ""
    dated: str = ""
    utc_offset: float = 0.0

    @property
    def local_time(self) -> float:
        """The local time there, as the Unix seconds of the same clock reading in UTC."""
        return self.at + self.utc_offset

    @property
    def own_text(self) -> str:
        """The text with pasted spans blanked out; its length is the same."""
        return blank_out(self.text, self.pasted)


def with_heading(number: int, message: UserMessage, text: str) -> str:
    """A message as it stands in a prompt: a heading with its number, local time and ``dated``, then
    this text, indented so that no line of it can pass for a heading."""
    when = datetime.fromtimestamp(message.local_time, UTC)
    dated = f", text of {message.dated}" if message.dated else ""
    indented = text.replace("\n", "\n  ")
    return f"Message {number}, {when:%A} {when:%Y-%m-%d %H:%M}{dated}:\n  {indented}"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A message that something was learned from; ``at`` in Unix seconds."""

    session: str
    message: str
    exchange: str
    at: float


IsGone = Callable[[Source], bool]
"""Whether what was learned from a source is to be forgotten."""


def is_from(session: str, exchange: str | None = None) -> IsGone:
    """A test for all sources in a session, or in one of its exchanges."""
    return lambda source: source.session == session and exchange in (None, source.exchange)


class DeletedSources(msgspec.Struct, frozen=True):
    """Sources that were deleted after they had been read: ids of sessions, and of messages, each
    with its session's id before it."""

    sessions: frozenset[str]
    messages: frozenset[tuple[str, str]]

    def has(self, source: Source) -> bool:
        return (source.session, source.message) in self.messages


def source_of(message: UserMessage) -> Source:
    return Source(
        session=message.session, message=message.id, exchange=message.exchange, at=message.at
    )


def source_fields(source: Source) -> dict[str, object]:
    """A source as the memory API returns it."""
    return {
        "session_id": source.session,
        "message_id": source.message,
        "exchange_id": source.exchange,
        "created_at": source.at,
    }


Voice = Literal["own", "pasted"]


class Evidence(NamedTuple):
    """The message that has a quote, and whether it is the user's own text or pasted."""

    message: UserMessage
    voice: Voice


def find_evidence(quote: str, messages: Sequence[UserMessage], first: int = 0) -> Evidence | None:
    """The message that a quote is from; the one at index ``first`` is searched first.

    Case, spaces, punctuation and width are ignored.  None if no message has it, or if it is too
    short to be evidence.
    """
    parts = _quote_parts(quote)
    if not parts:
        return None
    ordered = sorted(range(len(messages)), key=lambda place: place != first)
    voices: tuple[Voice, ...] = ("own", "pasted")
    for voice in voices:
        for place in ordered:
            if _has_quote(messages[place], voice, parts):
                return Evidence(messages[place], voice)
    return None


class OwnWords:
    """The user's own text in some messages, normalized once for all quotes."""

    def __init__(self, messages: Sequence[UserMessage]) -> None:
        self._stretches = [
            (source_of(each), _normalized_stretches(each.own_text)) for each in messages
        ]

    def places(self, quote: str) -> list[int]:
        """The indexes of the messages that have a quote; of the pieces of one message the last."""
        parts = _quote_parts(quote)
        found = {
            source: place
            for place, (source, stretches) in enumerate(self._stretches)
            if parts and _contain_all(parts, stretches)
        }
        return sorted(found.values())


def _quote_parts(quote: str) -> list[str]:
    """The normalized parts of a quote between ellipses; empty if any is too short."""
    parts = [_normalized(part) for part in _ELLIPSIS.split(quote[:MAX_QUOTE_CHARACTERS])]
    parts = [part for part in parts if part.strip()]
    return parts if all(map(_is_long_enough, parts)) else []


def _has_quote(message: UserMessage, voice: Voice, parts: Sequence[str]) -> bool:
    if voice == "pasted" and not message.pasted:
        return False
    return _contain_all(
        parts, _normalized_stretches(message.own_text if voice == "own" else message.text)
    )


def _normalized_stretches(text: str) -> list[str]:
    return [_normalized(stretch) for stretch in text.split(BLANK) if stretch]


def _contain_all(parts: Sequence[str], stretches: Sequence[str]) -> bool:
    return all(any(part in stretch for stretch in stretches) for part in parts)


def _normalized(text: str) -> str:
    """The words of a text with single spaces around each; scripts without spaces as they are."""
    spaced = (word.text if word.unspaced else f" {word.text} " for word in words(text))
    return "".join(spaced).replace("  ", " ")


def _is_long_enough(flat: str) -> bool:
    found = words(flat)
    return sum(len(word.text) / 2 if word.unspaced else 1.0 for word in found) >= MIN_QUOTE_WORDS


_YOU_ARE = any_of(lambda each: each.injection.you_are)
_ARTICLE = any_of(lambda each: each.injection.articles)
_MACHINE = any_of(lambda each: each.injection.machines)
_THAT = any_of(lambda each: each.injection.that)
_ASSISTANT = any_of(lambda each: each.injection.assistant)
_MUST = any_of(lambda each: each.injection.must)
_FROM_NOW_ON = any_of(lambda each: each.injection.from_now_on)
_ANSWERS = any_of(lambda each: each.injection.answers)

_ORDER = lazy_pattern(
    alternation(
        (
            # To set aside what holds: the classic of injected text, wherever it stands.
            any_of(lambda each: each.injection.set_aside),
            any_of(lambda each: each.injection.system),
            rf"\b{_YOU_ARE}\s+(?:now\s+)?(?:{_ARTICLE}\s+)?{_MACHINE}",
            rf"\b{_FROM_NOW_ON}\b.{{0,80}}\b{_ANSWERS}",
            rf"(?:^|[.;:!?\n,]\s*|\b{_THAT}\s+){_ASSISTANT}\s+(?:to\s+)?{_MUST}\b",
            any_of(lambda each: each.injection.orders),
            any_of(lambda each: each.injection.gives_away),
            r"!\[[^\]]*\]\(\s*https?:",
        )
    ),
    re.IGNORECASE | re.MULTILINE,
)


def is_instruction(text: str) -> bool:
    """Whether a text instructs the assistant rather than describing the user."""
    if _ORDER.search(text.replace("’", "'")):
        return True
    return any(each.kind in ("instruction", "withdrawal") for each in find_instructions(text))
