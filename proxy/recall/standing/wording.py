"""How people say what shall be done from now on, or prefer: patterns, by language.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from proxy.recall.lexicon.cues import Cue
from proxy.recall.lexicon.language import Standing
from proxy.recall.lexicon.loader import LANGUAGES, filled

Kind = Literal["instruction", "preference", "leaning", "withdrawal"]

START = r"(?:^\W*|[,;:،，；：–—]\s*|\s-\s)"
"""Where an order can begin: with the sentence, or after a comma and the like."""


class Wording(NamedTuple):
    """Of one language: plain text one of which a sentence has, the same as a pattern, and by kind
    the patterns that are looked for."""

    cues: tuple[str, ...]
    any: Cue
    patterns: tuple[tuple[Kind, tuple[Cue, ...]], ...]

    @property
    def all(self) -> tuple[Cue, ...]:
        return (self.any, *(cue for _, cues in self.patterns for cue in cues))


def _compiled(said: Standing) -> Wording:
    kinds: tuple[tuple[Kind, tuple[str, ...]], ...] = (
        ("withdrawal", said.withdrawals),
        ("instruction", said.orders),
        ("preference", said.preferences),
        ("leaning", said.leanings),
    )
    parts = {**said.parts, "START": START}
    return Wording(
        said.cues,
        Cue("|".join(map(re.escape, said.cues))),
        tuple((kind, tuple(_patterns(found, parts))) for kind, found in kinds),
    )


def _patterns(found: Sequence[str], parts: Mapping[str, str]) -> Iterator[Cue]:
    """Each by itself: of so many ways to say it, a text has the words of few."""
    return (Cue(filled(each, parts), re.IGNORECASE) for each in found)


WORDINGS = tuple(_compiled(each.standing) for each in LANGUAGES if each.standing.cues)

CUES = tuple(cue for wording in WORDINGS for cue in wording.all)
