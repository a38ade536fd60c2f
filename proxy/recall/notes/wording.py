"""How users say what has one value at a time: patterns, by language.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Literal, NamedTuple

from proxy.recall.lexicon.cues import Cue
from proxy.recall.lexicon.language import Language, Slot
from proxy.recall.lexicon.loader import (
    LANGUAGES,
    alternation,
    lazy_pattern,
    pattern_of,
    with_numbered_groups,
    with_parts,
)

Change = Literal["holds", "becomes", "ends"]

_MARKS = r"[^\n,;:!?()\[\]{}\"<>，。！？；：、（）「」『』]"
_PARTS = {"VALUE": rf"(?P<value>{_MARKS}{{1,40}}?)", "OLD": rf"(?P<old>{_MARKS}{{1,40}}?)"}


class Wording(NamedTuple):
    """Of one language: what shows that a text may have any, the patterns of sentences, and those of
    sentences and of messages that are left out."""

    any: Cue
    patterns: tuple[tuple[Change, Slot, re.Pattern[str]], ...]
    doubts: re.Pattern[str]
    others: re.Pattern[str]


def _wording_of(language: Language) -> Wording:
    said = language.slots
    parts = {**_PARTS, **said.parts}
    kinds: tuple[tuple[Change, Mapping[Slot, tuple[str, ...]]], ...] = (
        ("ends", said.ends),
        ("becomes", said.becomes),
        ("holds", said.holds),
    )
    found = [
        (how, slot, [with_parts(each, parts) for each in patterns])
        for how, slots in kinds
        for slot, patterns in slots.items()
    ]
    before = rf"(?:{alternation(said.leads)}[\s,，、。.!！:：]*)*"
    after = rf"(?:(?:\s*[,，]|\s+{alternation(said.goes_on)}\b).*)?"
    return Wording(
        Cue(
            with_numbered_groups(chain.from_iterable(patterns for *_, patterns in found)),
            re.IGNORECASE,
        ),
        tuple(
            (
                how,
                slot,
                lazy_pattern(f"{before}{with_numbered_groups(patterns)}{after}", re.IGNORECASE),
            )
            for how, slot, patterns in found
        ),
        lazy_pattern(pattern_of(said.doubts), re.IGNORECASE),
        lazy_pattern(pattern_of(said.others), re.IGNORECASE),
    )


WORDINGS = tuple(_wording_of(each) for each in LANGUAGES if each.slots.holds)

CUES = tuple(each.any for each in WORDINGS)
