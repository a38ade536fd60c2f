"""A prefilter for patterns: a pattern is tried only on texts that have one of the strings that it
requires.  Pure.

The lists of all languages make patterns with hundreds of alternatives, and searching a text for all
of them would take longer than all else that is done with it; nearly all texts match none.  So the
required strings ("pieces") are derived from each pattern once, and the words of a text are looked
up among the pieces of all patterns together, with a cache by word.

The filter may pass a cue that does not match, but never drops one that does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Protocol, TypeAlias

from proxy.recall.lexicon.folding import (
    INDIAN,
    RUN,
    keeps_letters_when_folded,
    with_i_for_dotless_i,
)
from proxy.recall.lexicon.loader import lazy_pattern, with_numbered_groups
from proxy.recall.lexicon.required_substrings import EDGE, pieces
from proxy.recall.text_cache import text_cache

MAX_WORD = 40
"""Characters; longer words (keys, URLs, texts without spaces) are cut to these."""

WORD_CACHE_SIZE = 8192
"""Words in a cache, a megabyte each: those that people use."""

_MAX_LETTERS = 256
"""Letters; for a longer word all patterns are tried, which takes no longer than a lookup."""

_ASCII_RUN = re.compile(r"[a-z0-9]+")
_INDIAN = re.compile(rf"[{INDIAN}]")
# Combining points, which are no letters to `re`, and a letter that becomes one with such a point.
_POINTED = re.compile("[\u0130\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")


class Cue:
    """A pattern, and its ``pieces``: every text that it matches has one of them; empty if unknown.

    It is compiled when it is first searched: a command that reads a few texts needs few.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern = pattern
        self.pattern = lazy_pattern(pattern, flags)

    def __repr__(self) -> str:
        return f"<Cue [{self._pattern[:40]!r}]>"

    @cached_property
    def pieces(self) -> frozenset[str]:
        return pieces(self._pattern)

    def search(self, text: str, possible: PossibleCues) -> re.Match[str] | None:
        """The first match in a text; ``possible`` are the cues that the text may have."""
        return self.pattern.search(text) if self in possible else None


class AnyCue:
    """Cues of which a text may have any; only those that it may have are looked at."""

    def __init__(self, cues: Iterable[Cue]) -> None:
        self.cues = tuple(cues)
        self._distinct = frozenset(self.cues)

    def __repr__(self) -> str:
        return f"<AnyCue [{len(self.cues)}]>"

    def matches(self, text: str, possible: PossibleCues) -> bool:
        """Whether one matches a text; ``possible`` are the cues that the text may have."""
        return any(cue.pattern.search(text) for cue in possible.intersection(self._distinct))


class AnyOf:
    """Several patterns as one; their groups are numbered: see ``loader.with_numbered_groups``.

    Nearly all texts are in one language: if only one of the patterns may match, only this is
    searched, with the same result.
    """

    def __init__(self, patterns: Iterable[str], flags: int = 0) -> None:
        found = tuple(patterns)
        self._combined = Cue(with_numbered_groups(found), flags)
        self._each = tuple(Cue(with_numbered_groups([each]), flags) for each in found)
        self.pattern, self.cues = self._combined.pattern, (self._combined, *self._each)

    def __repr__(self) -> str:
        return f"<AnyOf [{len(self._each)}]>"

    def possible_pattern(self, possible: PossibleCues) -> re.Pattern[str] | None:
        """The pattern to search a text for, given the cues that it may have; None if it has none of
        these."""
        if self._combined not in possible:
            return None
        possible_patterns = [cue for cue in self._each if cue in possible]
        if len(possible_patterns) > 1:
            return self.pattern
        return possible_patterns[0].pattern if possible_patterns else None


class PossibleCues(Protocol):
    """The cues that a text may have."""

    def __contains__(self, cue: object, /) -> bool: ...

    def intersection(self, cues: Iterable[Cue], /) -> Iterable[Cue]: ...


class _All:
    def __contains__(self, cue: object) -> bool:
        return True

    def intersection(self, cues: Iterable[Cue]) -> Iterable[Cue]:
        return cues


ALL_CUES: PossibleCues = _All()
"""All cues: for texts that the filter does not handle."""

CuesOfWord: TypeAlias = "frozenset[Cue] | None"
"""The cues that a text with this word may have; None: any."""


def words_to_check(text: str, folded: str) -> frozenset[str] | None:
    """The words to look up with ``Cues.possible``; None if folding changes the text in ways that
    the filter does not handle.  ``folded`` is the folded text."""
    if text.isascii():
        return frozenset(_ASCII_RUN.findall(folded))
    if _POINTED.search(text) or not keeps_letters_when_folded(text):
        return None
    return frozenset(RUN.findall(with_i_for_dotless_i(folded)))


class Cues:
    """Cues with a common lookup by piece."""

    def __init__(self, cues: Iterable[Cue]) -> None:
        self._cues = tuple(cues)
        self._cached_cues_of = text_cache(WORD_CACHE_SIZE)(self._cues_of)

    def __repr__(self) -> str:
        return f"<Cues [{len(self._cues)}]>"

    def __iter__(self) -> Iterator[Cue]:
        return iter(self._cues)

    @cached_property
    def _always(self) -> frozenset[Cue]:
        return frozenset(cue for cue in self._cues if not cue.pieces)

    @cached_property
    def _pieces(self) -> dict[str, frozenset[Cue]]:
        """The cues by piece; proper prefixes of pieces are keys too, with no cues of their own."""
        found: dict[str, frozenset[Cue]] = {}
        for cue in self._cues:
            for piece in cue.pieces:
                for end in range(1, len(piece)):
                    found.setdefault(piece[:end], frozenset())
                found[piece] = found.get(piece, frozenset()) | {cue}
        return found

    def warm(self) -> None:
        """Derive all pieces and compile all patterns now, which takes 4 MB: else the first text of
        each language holds all others up for a tenth of a second."""
        self.possible([""])
        for cue in self:
            cue.pattern.search("")

    def possible(self, words: Collection[str] | None) -> PossibleCues:
        """The cues that a text may have, by its words as ``words_to_check`` returns them."""
        if words is None:
            return ALL_CUES
        short = max(map(len, words), default=0) <= MAX_WORD
        found = set(map(self._cached_cues_of if short else self._cues_of_any, words))
        if None in found:
            return ALL_CUES
        return self._always.union(*filter(None, found))

    def _cues_of_any(self, word: str) -> CuesOfWord:
        """The cues of a word of any length; those of a long one are not cached."""
        return self._cached_cues_of(word) if len(word) <= MAX_WORD else self._cues_of(word)

    def _cues_of(self, word: str) -> CuesOfWord:
        if len(word) > _MAX_LETTERS or (_INDIAN.search(word) and _INDIAN.sub("", word)):
            return None
        padded, found = f"{EDGE}{word}{EDGE}", frozenset[Cue]()
        for at in range(len(padded)):
            for end in range(at + 1, len(padded) + 1):
                cues = self._pieces.get(padded[at:end])
                if cues is None:
                    break
                found = found | cues if cues else found
        return found
