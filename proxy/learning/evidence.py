"""Whether what a model says it has read is really there, in the user's own words, and is no order
to the assistant.  Pure.

A text that the user pasted may have orders in it, and a model may write these down as facts.  They
are found by pattern: facts are told in the third person, so that an order stands out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from proxy.recall.lexicon.loader import alternation, any_of, lazy_pattern
from proxy.recall.own_words import BLANK, Span, blank_out
from proxy.recall.query.words import Word, words
from proxy.recall.standing.standing import find_instructions

LEAST = 2.0
"""Words of a quote that can be evidence; two characters of scripts without spaces are one."""

LONGEST = 500
"""Characters of a quote; who copies whole messages has not looked for anything."""

_LEFT_OUT = re.compile(r"\.\.\.|…|\[\.*\]")


class Said(msgspec.Struct, frozen=True):
    """A message of the user's, or a piece of a long one, ``at`` (Unix seconds).

    ``text`` is what they wrote; ``pasted`` is what of it they quote or have pasted.  ``dated`` is
    the day (YYYY-MM-DD) that the session's text before it has named last, "" if it has named none.
    Their clocks were ``ahead`` of UTC by so many seconds.
    """

    message: str
    exchange: str
    seq: int
    text: str
    at: float
    pasted: tuple[Span, ...] = ()
    session: str = ""
    dated: str = ""
    ahead: float = 0.0

    @property
    def on_the_wall(self) -> float:
        """What their clocks showed, in seconds as if that were UTC."""
        return self.at + self.ahead

    @property
    def own(self) -> str:
        """The text with all that is pasted blanked; every character keeps its place."""
        return blank_out(self.text, self.pasted)


def headed(number: int, said: Said, text: str) -> str:
    """A message as a model is shown it: a heading with its time there and the day that its text
    goes on from, then this text of it.

    Indented, so that no line of it can pass for a heading.
    """
    when = datetime.fromtimestamp(said.on_the_wall, UTC)
    dated = f", text of {said.dated}" if said.dated else ""
    indented = text.replace("\n", "\n  ")
    return f"Message {number}, {when:%A} {when:%Y-%m-%d %H:%M}{dated}:\n  {indented}"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A message that something was learned from; ``at`` in Unix seconds."""

    session: str
    message: str
    exchange: str
    at: float

    def within(self, session: str, exchange: str | None) -> bool:
        """Is it of this session, and with ``exchange`` of this one of its exchanges?"""
        return self.session == session and exchange in (None, self.exchange)


IsGone = Callable[[Source], bool]
"""Is what was learned from there not to be known any more?"""


def all_within(session: str, exchange: str | None = None) -> IsGone:
    """All of a session, or of one of its exchanges."""
    return lambda source: source.within(session, exchange)


class Gone(msgspec.Struct, frozen=True):
    """What was read and is not there any more: whole sessions, and messages, each with its
    session's id."""

    sessions: frozenset[str]
    messages: frozenset[tuple[str, str]]

    def has(self, source: Source) -> bool:
        return (source.session, source.message) in self.messages


def source_of(said: Said) -> Source:
    """The message, as what was learned from it names it."""
    return Source(session=said.session, message=said.message, exchange=said.exchange, at=said.at)


def source_fields(source: Source) -> dict[str, object]:
    """Where something learned is from, as people see it."""
    return {
        "session_id": source.session,
        "message_id": source.message,
        "exchange_id": source.exchange,
        "created_at": source.at,
    }


Voice = Literal["own", "pasted"]


class Evidence(NamedTuple):
    """Where a quote is from, and whether the user said it or only passed it on."""

    said: Said
    voice: Voice


def evidence(quote: str, said: Sequence[Said], first: int = 0) -> Evidence | None:
    """Where a quote is from; the message at ``first`` is looked at before all others.

    Case, spaces, punctuation and width do not count.  None: nowhere, or too short to tell.
    """
    parts = _parts(quote)
    if not parts:
        return None
    ordered = sorted(range(len(said)), key=lambda place: place != first)
    voices: tuple[Voice, ...] = ("own", "pasted")
    for voice in voices:
        for place in ordered:
            if _holds(said[place], voice, parts):
                return Evidence(said[place], voice)
    return None


class OwnWords:
    """The user's own words in some messages, looked at once for all quotes."""

    def __init__(self, said: Sequence[Said]) -> None:
        self._said = [(source_of(each), _stretches(each.own)) for each in said]

    def places(self, quote: str) -> list[int]:
        """Which of the messages have a quote; each but once, in its last piece."""
        parts = _parts(quote)
        found = {
            source: place
            for place, (source, stretches) in enumerate(self._said)
            if parts and _all_in(parts, stretches)
        }
        return sorted(found.values())


def _parts(quote: str) -> list[str]:
    """The stretches of a quote, none of one that is too short to tell."""
    parts = [_flat(part) for part in _LEFT_OUT.split(quote[:LONGEST])]
    parts = [part for part in parts if part.strip()]
    return parts if all(map(_tells, parts)) else []


def _holds(said: Said, voice: Voice, parts: Sequence[str]) -> bool:
    if voice == "pasted" and not said.pasted:
        return False
    return _all_in(parts, _stretches(said.own if voice == "own" else said.text))


def _stretches(text: str) -> list[str]:
    return [_flat(stretch) for stretch in text.split(BLANK) if stretch]


def _all_in(parts: Sequence[str], stretches: Sequence[str]) -> bool:
    return all(any(part in stretch for stretch in stretches) for part in parts)


def _flat(text: str) -> str:
    """The words of a text, each between spaces; scripts without spaces in one run."""
    return "".join(map(_spaced, words(text))).replace("  ", " ")


def _spaced(word: Word) -> str:
    return word.text if word.unspaced else f" {word.text} "


def _tells(flat: str) -> bool:
    found = words(flat)
    return sum(len(word.text) / 2 if word.unspaced else 1.0 for word in found) >= LEAST


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
    """Whether a text tells the assistant what to do, rather than what is true of the user."""
    if _ORDER.search(text.replace("’", "'")):
        return True
    return any(each.kind in ("instruction", "withdrawal") for each in find_instructions(text))
