"""What a model proposes about facts, checked against what was said; not believed.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from proxy.learning.evidence import Evidence, evidence
from proxy.learning.fact import MOST_CHARACTERS, USER, State, one_line
from proxy.learning.fact_about import about, names, others
from proxy.learning.fact_alike import in_other_words, speaks_of
from proxy.learning.fact_dates import holds_from, holds_until
from proxy.learning.fact_operations import Op, Operation
from proxy.learning.lesson import BLANK, Lesson, Said
from proxy.learning.quarantine import is_instruction
from proxy.learning.source import Source


class Claim(NamedTuple):
    """A proposal that stands up to the evidence; see Fact.  ``fact``: the id it goes with."""

    op: Op
    text: str
    about: str
    state: State
    valid_from: float
    until: float | None
    source: Source
    fact: str | None


def claims(
    operations: Sequence[Operation], lesson: Lesson, shown: Sequence[str]
) -> tuple[Claim, ...]:
    """Those of the operations that hold; ``shown`` are the ids of the facts by their number."""
    found = (_claim(operation, lesson, shown) for operation in operations)
    return tuple(claim for claim in found if claim is not None)


def _claim(operation: Operation, lesson: Lesson, shown: Sequence[str]) -> Claim | None:
    found = evidence(operation.quote, lesson.said, operation.message - 1)
    text = one_line(operation.text)
    if found is None or len(text) > MOST_CHARACTERS or not (text or operation.op == "none"):
        return None
    whom = about(operation.about)
    if found.voice == "pasted" and whom != USER:
        return None
    text, whom = _in_their_words(text, whom, one_line(operation.quote), found)
    said = found.said
    begins = holds_from(operation.valid_from, said.at, f"{text} {operation.quote}")
    return Claim(
        op=operation.op,
        text=text,
        about=whom,
        state=_state(text, whom, found),
        valid_from=begins,
        until=holds_until(operation.expires, said.at, begins),
        source=_source(lesson, said),
        fact=shown[operation.fact - 1] if 0 < operation.fact <= len(shown) else None,
    )


def _in_their_words(text: str, whom: str, quote: str, found: Evidence) -> tuple[str, str]:
    """The text and whom it is about; the quote itself where the text is not made from it."""
    message = found.said.own.replace(BLANK, " ") if found.voice == "own" else found.said.text
    else_one = others(quote) if whom == USER else None
    if else_one is not None:
        return (text if names(text, else_one) else quote), else_one
    if in_other_words(text, quote, message) or not speaks_of(text, message):
        return quote, whom
    return text, whom


def _state(text: str, whom: str, found: Evidence) -> State:
    told = found.voice == "pasted" or is_instruction(text) or is_instruction(whom)
    return "quarantined" if told else "current"


def _source(lesson: Lesson, said: Said) -> Source:
    return Source(
        session=lesson.key.session, message=said.message, exchange=said.exchange, at=said.at
    )
