"""Patterns that are only tried on texts that have a word without which they are not found.  Pure.

The lists of all languages make patterns of hundreds of ways to say something, and to look for each
of them at each place of a text takes longer than all else that is done with it.  Nearly all texts
have nothing of them.  So it is found out once, from the pattern itself, what pieces of words one of
which every text has that the pattern is found in, and a text is asked by its words: each is looked
at once, for all patterns together, and what was seen in it is remembered.

A cue may be said to be in a text where it is not found, never the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import TypeAlias

from proxy.recall.lexicon.folding import INDIAN, RUN, is_plain, letters
from proxy.recall.lexicon.loader import compiled, numbered
from proxy.recall.lexicon.pieces import EDGE, pieces

LONGEST_WORD = 40
"""Longer ones (keys, URLs, texts without spaces) are known by their beginning."""

REMEMBERED = 8192
"""Words whose terms a process remembers: those that people use, a megabyte for each kind."""

_MOST_LETTERS = 256
"""A longer word is not looked at: to try the patterns takes no longer."""

_ASCII_RUN = re.compile(r"[a-z0-9]+")
_INDIAN = re.compile(rf"[{INDIAN}]")
# What stands alone and is no letter to `re`, and what becomes a letter and such a point.
_POINTED = re.compile("[\u0130\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")


class Cue:
    """A pattern, and pieces of words one of which is in every text that it is found in; none where
    that is not known.

    It is compiled when it is first looked for: most are of languages that nobody here speaks.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern = pattern
        self.pattern = compiled(pattern, flags)

    def __repr__(self) -> str:
        return f"<Cue [{self._pattern[:40]!r}]>"

    @cached_property
    def pieces(self) -> frozenset[str]:
        return pieces(self._pattern)

    def search(self, text: str, seen: Seen) -> re.Match[str] | None:
        """Where it is found in a text of which so much was ``seen``."""
        return self.pattern.search(text) if self in seen else None


class AnyOf:
    """Patterns any of which is looked for; their groups are numbered: see ``loader.numbered``.

    Nearly all texts are in one language: where only one of them may be found, it is looked for
    alone, which finds the same.
    """

    def __init__(self, patterns: Iterable[str], flags: int = 0) -> None:
        found = tuple(patterns)
        self._all = Cue(numbered(found), flags)
        self._each = tuple(Cue(numbered([each]), flags) for each in found)
        self.pattern, self.cues = self._all.pattern, (self._all, *self._each)

    def __repr__(self) -> str:
        return f"<AnyOf [{len(self._each)}]>"

    def within(self, seen: Seen) -> re.Pattern[str] | None:
        """What to look for in a text of which so much was ``seen``; None: it has none of them."""
        if self._all not in seen:
            return None
        there = [cue for cue in self._each if cue in seen]
        if len(there) > 1:
            return self.pattern
        return there[0].pattern if there else None


Seen: TypeAlias = Container[Cue]
"""The cues that a text may have."""


class _All:
    def __contains__(self, cue: object) -> bool:
        return True


EVERYTHING: Seen = _All()
"""What a text may have where its words do not show it."""

Found: TypeAlias = "frozenset[Cue] | None"
"""The cues of a word; None: whatever there is."""


def words_to_check(text: str, folded: str) -> frozenset[str] | None:
    """The words that show which cues a text may have, None where they do not; ``folded`` is the
    text, folded."""
    if text.isascii():
        return frozenset(_ASCII_RUN.findall(folded))
    if _POINTED.search(text) or not is_plain(text):
        return None
    return frozenset(RUN.findall(letters(folded)))


class Cues:
    """Patterns that are asked for together."""

    def __init__(self, cues: Iterable[Cue]) -> None:
        self._all = tuple(cues)
        self._in_word = lru_cache(maxsize=REMEMBERED)(self._find)

    def __repr__(self) -> str:
        return f"<Cues [{len(self._all)}]>"

    def __iter__(self) -> Iterator[Cue]:
        return iter(self._all)

    @cached_property
    def _always(self) -> frozenset[Cue]:
        return frozenset(cue for cue in self._all if not cue.pieces)

    @cached_property
    def _pieces(self) -> dict[str, frozenset[Cue]]:
        """The cues by piece, and none by what only begins one."""
        found: dict[str, frozenset[Cue]] = {}
        for cue in self._all:
            for piece in cue.pieces:
                for end in range(1, len(piece)):
                    found.setdefault(piece[:end], frozenset())
                found[piece] = found.get(piece, frozenset()) | {cue}
        return found

    def warm(self) -> None:
        """Find the pieces of each now: a quarter of a second that the first text waits else."""
        self.seen([""])

    def forget(self) -> None:
        """All words that were looked at."""
        self._in_word.cache_clear()

    def seen(self, words: Collection[str] | None) -> Seen:
        """Which of them a text with these ``words`` may have: see ``words_to_check``."""
        if words is None:
            return EVERYTHING
        short = max(map(len, words), default=0) <= LONGEST_WORD
        found = set(map(self._in_word if short else self._in_any, words))
        if None in found:
            return EVERYTHING
        return self._always.union(*filter(None, found))

    def _in_any(self, word: str) -> Found:
        """Of a long word nothing is remembered."""
        return self._in_word(word) if len(word) <= LONGEST_WORD else self._find(word)

    def _find(self, word: str) -> Found:
        if len(word) > _MOST_LETTERS or (_INDIAN.search(word) and _INDIAN.sub("", word)):
            return None
        padded, found = f"{EDGE}{word}{EDGE}", frozenset[Cue]()
        for at in range(len(padded)):
            for end in range(at + 1, len(padded) + 1):
                cues = self._pieces.get(padded[at:end])
                if cues is None:
                    break
                found = found | cues if cues else found
        return found
