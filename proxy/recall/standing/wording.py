"""Patterns of standing instructions, by language.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from proxy.recall.lexicon.cues import Cue
from proxy.recall.lexicon.language import Standing
from proxy.recall.lexicon.loader import (
    LANGUAGES,
    alternation,
    lazy_pattern,
    phrase_pattern,
    with_parts,
)
from proxy.recall.lexicon.spelling import spellings, without_required_accents

Kind = Literal["instruction", "preference", "leaning", "withdrawal"]

START = r"(?:^\W*|[,;:،，；：–—]\s*|\s-\s)"
"""Where an order can begin: at the beginning of a sentence, or after punctuation."""


class Wording(NamedTuple):
    """The patterns of one language.

    ``cues``: a sentence can match only if it contains one of these texts; ``any``: the same as one
    pattern.  ``patterns``: by kind, in the order in which they are tried; ``ended`` is among them.
    The others are as in ``Standing``.
    """

    cues: tuple[str, ...]
    any: Cue
    patterns: tuple[tuple[Kind, tuple[Cue, ...]], ...]
    ended: tuple[Cue, ...]
    unsure: re.Pattern[str]
    sure: re.Pattern[str]
    mistaken: re.Pattern[str]
    corrected: re.Pattern[str]
    taken_back: re.Pattern[str]
    here: re.Pattern[str]
    works: re.Pattern[str]
    lasting: re.Pattern[str]

    @property
    def all(self) -> tuple[Cue, ...]:
        return (self.any, *(cue for _, cues in self.patterns for cue in cues))


def _compiled(said: Standing) -> Wording:
    parts = {**said.parts, "START": START}
    ended = tuple(_patterns(said.ended, parts))
    kinds: tuple[tuple[Kind, tuple[str, ...]], ...] = (
        ("instruction", said.orders),
        ("preference", said.preferences),
        ("leaning", said.leanings),
    )
    withdrawals = tuple(_patterns((*said.taken_back, *said.withdrawals), parts))
    return Wording(
        tuple(sorted(frozenset().union(*map(spellings, said.cues)))),
        Cue("|".join(without_required_accents(re.escape(cue)) for cue in said.cues)),
        (
            ("withdrawal", withdrawals),
            ("withdrawal", ended),
            *((kind, tuple(_patterns(found, parts))) for kind, found in kinds),
        ),
        ended=ended,
        unsure=_any(said.unsure, parts),
        sure=_any(said.sure, parts),
        mistaken=_any(said.mistaken, parts),
        corrected=_any(said.corrected, parts),
        taken_back=_any(said.taken_back, parts),
        here=_any(said.here, parts),
        works=_any(said.works, parts),
        lasting=_any(said.lasting, parts),
    )


def _patterns(found: Sequence[str], parts: Mapping[str, str]) -> Iterator[Cue]:
    """Separate patterns, since a text has the cues of only a few."""
    return (Cue(without_required_accents(with_parts(each, parts)), re.IGNORECASE) for each in found)


def _any(found: Sequence[str], parts: Mapping[str, str]) -> re.Pattern[str]:
    return lazy_pattern(
        alternation(without_required_accents(with_parts(each, parts)) for each in found),
        re.IGNORECASE,
    )


REPORTED = lazy_pattern(phrase_pattern(lambda each: each.standing.reported), re.IGNORECASE)
"""Before something that somebody else said or prefers, in the same sentence."""

WORDINGS = tuple(_compiled(each.standing) for each in LANGUAGES if each.standing.cues)

CUES = tuple(cue for wording in WORDINGS for cue in wording.all)
