"""Makes excerpts of long texts for a question.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from proxy.recall.lexicon.folding import fold
from proxy.recall.query.question import Question
from proxy.recall.query.words import is_unspaced

PIECE = 100
"""The minimum of tokens of a piece, which is lines, or sentences of a long line."""

GAP = " … "
"""Marks omissions."""

FENCE = "```"
"""Begins and ends code."""

NEIGHBOUR_WEIGHT = 0.5
"""The weight of the neighbours' scores in a piece's score."""

MOST_CHARACTERS = 32_768

MOST_LINES = 200
"""Lines above a piece in which its heading is looked for."""

COLONS = (":", "：", "﹕", "፦", "᠄")
"""The colons of all scripts."""

_BREAK = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_ITEM = re.compile(r"\s*(?:[-*+–—]\s|[•‣▪·]|\d{1,3}(?:[.)]\s|[、）]))|\s+\S")
_TITLE = re.compile(r"#{1,6}\s|(\*\*|__)[^*_]+\1\s*$")


class Piece(NamedTuple):
    start: int
    end: int


class Cutter:
    """Makes excerpts for one question; ``worth``: the weight of each term, as in ``Matches``."""

    def __init__(self, question: Question, worth: Mapping[bytes, float]) -> None:
        self._worth = {
            word.text: worth.get(word.terms[0], 0.0) for word in question.words if word.text
        }

    @cached_property
    def _words(self) -> re.Pattern[str]:
        """Finds the question's words at the beginning of words, and anywhere without spaces."""
        longest = sorted(self._worth, key=len, reverse=True)
        parts = (("" if is_unspaced(word) else r"\b") + re.escape(word) for word in longest)
        return re.compile("|".join(parts) or r"(?!)")

    def excerpt(self, text: str, tokens: int, most: int) -> str:
        """The best pieces of a text of ``tokens`` tokens, in about ``most`` tokens.

        Each comes with its heading, if that fits.  Omissions are marked.  Only the beginning of a
        very long text is searched.
        """
        size = max(1, PIECE * len(text) // max(1, tokens))
        pieces = list(_pieces(text[:MOST_CHARACTERS], size))
        scores = _smooth([self._score(text[start:end]) for start, end in pieces])
        room = most * len(text) / max(1, tokens)
        taken: set[Piece] = set()
        for place in sorted(range(len(pieces)), key=lambda each: (-scores[each], each)):
            piece = pieces[place]
            length = piece.end - piece.start
            if length > room:
                continue
            room -= length
            taken.add(piece)
            heading = _heading(text, piece.start)
            if heading and heading not in taken and heading.end - heading.start <= room:
                room -= heading.end - heading.start
                taken.add(heading)
        return _join(text, sorted(taken)) or text[: int(room)]

    def _score(self, text: str) -> float:
        return sum(self._worth[word] for word in set(self._words.findall(fold(text))))


def _pieces(text: str, size: int) -> Iterator[Piece]:
    """Pieces of whole lines or sentences, ``size`` characters or more; what has no end is cut."""
    start = 0
    for match in _BREAK.finditer(text):
        if match.end() - start >= size:
            yield from _bounded(start, match.end(), 2 * size)
            start = match.end()
    yield from _bounded(start, len(text), 2 * size)


def _bounded(start: int, end: int, most: int) -> Iterator[Piece]:
    for first in range(start, end, most):
        yield Piece(first, min(end, first + most))


def _smooth(scores: Sequence[float]) -> list[float]:
    padded = [0.0, *scores, 0.0]
    return [
        own + NEIGHBOUR_WEIGHT * (before + after)
        for before, own, after in zip(padded, padded[1:], padded[2:], strict=False)
    ]


def _heading(text: str, start: int) -> Piece | None:
    """The heading of the text at ``start``, which may reverse its meaning ("never eat:").

    That is a title anywhere above, or a line with a colon at its end directly above.
    """
    end = text.rfind("\n", 0, start) + 1
    first = text[end:MOST_CHARACTERS].partition("\n")[0]
    if _introduces(first) or text.count(FENCE, 0, start) % 2:
        return None
    right_below, listed, fenced = True, bool(_ITEM.match(first)), False
    for line in islice(reversed(text[:end].splitlines(keepends=True)), MOST_LINES):
        end -= len(line)
        fenced ^= line.startswith(FENCE)
        if not fenced and (_TITLE.match(line) or (right_below and _introduces(line))):
            return Piece(end, end + len(line))
        right_below &= bool(_ITEM.match(line)) == listed if line.strip() else listed
    return None


def _introduces(line: str) -> bool:
    return bool(_TITLE.match(line)) or line.rstrip().rstrip("*_").endswith(COLONS)


def _join(text: str, pieces: Sequence[Piece]) -> str:
    """The pieces, which ascend, joined with marks for omissions."""
    runs: list[Piece] = []
    for piece in pieces:
        if runs and piece.start <= runs[-1].end:
            before = runs.pop()
            piece = Piece(before.start, max(before.end, piece.end))
        runs.append(piece)
    left_out = GAP if runs and runs[-1].end < len(text) else ""
    begins = GAP if runs and runs[0].start else ""
    return f"{begins}{GAP.join(_fenced(text, run) for run in runs)}{left_out}".strip()


def _fenced(text: str, run: Piece) -> str:
    """A part of a text, with the fences of the code that it begins or ends in."""
    said = text[run.start : run.end]
    if text.count(FENCE, 0, run.start) % 2:
        said = f"{FENCE}\n{said}"
    return f"{said.rstrip()}\n{FENCE}\n" if said.count(FENCE) % 2 else said
