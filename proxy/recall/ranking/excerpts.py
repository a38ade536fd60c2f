"""Makes excerpts of long texts for a question.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from proxy.recall.lexicon.cues import MAX_WORD
from proxy.recall.lexicon.folding import fold
from proxy.recall.query.question import Question, terms_of_form
from proxy.recall.query.words import is_unspaced, tokenize

MIN_PIECE_TOKENS = 100
"""The minimum of tokens of a piece: whole lines, or sentences of a long line."""

GAP = " … "
"""Marks omissions."""

FENCE = "```"
"""Begins and ends code."""

SHORT_STEM = 4
"""Letters: what begins with so short a stem is often another word, as "team" is not "tea"."""

NEIGHBOUR_WEIGHT = 0.5
"""The weight of the neighbours' scores in a piece's score."""

MAX_CHARACTERS = 32_768

MAX_LINES = 200
"""Lines above a piece in which its heading is looked for."""

COLONS = (":", "：", "﹕", "፦", "᠄")
"""The colons of all scripts."""

_THOUSANDS = re.compile(r"(?<=\d),(?=\d\d\d(?!\d))")
_BREAK = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_ITEM = re.compile(r"\s*(?:[-*+–—]\s|[•‣▪·]|\d{1,3}(?:[.)]\s|[、）]))|\s+\S")
_TITLE = re.compile(r"#{1,6}\s|(\*\*|__)[^*_]+\1\s*$")


class Piece(NamedTuple):
    """Characters of a text from ``start`` up to, not including, ``end``."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


class Excerpter:
    """Makes excerpts for one question; ``term_weights`` are as in ``Matches``."""

    def __init__(self, question: Question, term_weights: Mapping[bytes, float]) -> None:
        self._sought = [word for word in question.words if word.text]
        self._weights = {word.text: term_weights.get(word.terms[0], 0.0) for word in self._sought}
        self._by_term = {term: word.text for word in self._sought for term in word.terms}
        self._terms = frozenset(question.terms)
        self._languages = tokenize(question.text).likely_languages
        self._forms: dict[str, str] = {}

    @cached_property
    def _words(self) -> re.Pattern[str]:
        """Finds what may be the question's words: whole words by their beginning, and anywhere in
        scripts without spaces."""
        found = {each for word in self._sought for each in (word.text, *word.irregular)}
        if self._languages:  # citi for city: the last letter may be another
            found |= {each[:-1] for each in found if len(each) == SHORT_STEM}
        return re.compile("|".join(map(_pattern, sorted(found, key=len, reverse=True))) or r"(?!)")

    def excerpt(self, text: str, tokens: int, budget: int) -> str:
        """The best pieces of a text of ``tokens`` tokens, in about ``budget`` tokens.

        Each comes with its heading, if that fits.  Omissions are marked.  Only the beginning of a
        very long text is searched.
        """
        characters_left = budget * len(text) / max(1, tokens)
        chosen: set[Piece] = set()
        for piece in self._best_first(text, MIN_PIECE_TOKENS * len(text) // max(1, tokens)):
            if piece.length > characters_left:
                continue
            characters_left -= piece.length
            chosen.add(piece)
            heading = _heading(text, piece.start)
            if heading and heading not in chosen and heading.length <= characters_left:
                characters_left -= heading.length
                chosen.add(heading)
        return _join(text, sorted(chosen)) or text[: int(characters_left)]

    def _best_first(self, text: str, size: int) -> list[Piece]:
        """The pieces of a text, of some ``size`` characters, by score; the earlier of two with the
        same."""
        pieces = list(_pieces(text[:MAX_CHARACTERS], max(1, size)))
        scores = _smooth([self._score(text[start:end]) for start, end in pieces])
        return [pieces[n] for n in sorted(range(len(pieces)), key=lambda n: -scores[n])]

    def _score(self, text: str) -> float:
        """The weights of the question's words in a piece, each counted once."""
        found = set(self._words.findall(_THOUSANDS.sub("", fold(text))))
        for form in found.difference(self._forms):
            self._forms[form] = self._word_of(form)
        return sum([self._weights[word] for word in {self._forms[form] for form in found} if word])

    def _word_of(self, form: str) -> str:
        """The question's word that this is a form of; "" for another word that begins alike.

        In a language that is not known what begins alike is a form.
        """
        begins = max(filter(form.startswith, self._weights), key=len, default="")
        if begins and (len(begins) > SHORT_STEM or is_unspaced(begins) or not self._languages):
            return begins
        known = terms_of_form(form, self._languages)
        same_stem = next((self._by_term[term] for term in known if term in self._by_term), "")
        return same_stem or ("" if self._terms.isdisjoint(known) else begins)


def _pattern(beginning: str) -> str:
    escaped = re.escape(beginning)
    return escaped if is_unspaced(beginning) else rf"\b{escaped}[^\W_]{{0,{MAX_WORD}}}"


def _pieces(text: str, size: int) -> Iterator[Piece]:
    """Pieces of whole lines or sentences, of ``size`` characters or more; longer ones without an
    end are cut."""
    start = 0
    for match in _BREAK.finditer(text):
        if match.end() - start >= size:
            yield from _bounded(start, match.end(), 2 * size)
            start = match.end()
    yield from _bounded(start, len(text), 2 * size)


def _bounded(start: int, end: int, max_length: int) -> Iterator[Piece]:
    """A piece in parts of at most ``max_length`` characters."""
    for first in range(start, end, max_length):
        yield Piece(first, min(end, first + max_length))


def _smooth(scores: Sequence[float]) -> list[float]:
    """Each score with a share of those before and after it."""
    padded = [0.0, *scores, 0.0]
    return [
        own + NEIGHBOUR_WEIGHT * (before + after)
        for before, own, after in zip(padded, padded[1:], padded[2:], strict=False)
    ]


def _heading(text: str, start: int) -> Piece | None:
    """The heading of the text at ``start``, which may reverse its meaning ("never eat:").

    That is a title anywhere above, or a line with a colon at its end directly above.
    """
    at = text.rfind("\n", 0, start) + 1
    own_line = text[at:MAX_CHARACTERS].partition("\n")[0]
    if _introduces(own_line) or text.count(FENCE, 0, start) % 2:
        return None
    # Items of the same list, or lines of the same paragraph, may be in between.
    directly_above, in_list, in_code = True, bool(_ITEM.match(own_line)), False
    for line in islice(reversed(text[:at].splitlines(keepends=True)), MAX_LINES):
        at -= len(line)
        in_code ^= line.startswith(FENCE)
        if not in_code and (_TITLE.match(line) or (directly_above and _introduces(line))):
            return Piece(at, at + len(line))
        directly_above &= bool(_ITEM.match(line)) == in_list if line.strip() else in_list
    return None


def _introduces(line: str) -> bool:
    """Whether a line is a heading: a title, or a line that ends with a colon."""
    return bool(_TITLE.match(line)) or line.rstrip().rstrip("*_").endswith(COLONS)


def _join(text: str, pieces: Sequence[Piece]) -> str:
    """The pieces, which ascend, joined with marks for omissions."""
    runs: list[Piece] = []
    for piece in pieces:
        if runs and piece.start <= runs[-1].end:
            last = runs.pop()
            piece = Piece(last.start, max(last.end, piece.end))
        runs.append(piece)
    before = GAP if runs and runs[0].start else ""
    after = GAP if runs and runs[-1].end < len(text) else ""
    return f"{before}{GAP.join(_fenced(text, run) for run in runs)}{after}".strip()


def _fenced(text: str, run: Piece) -> str:
    """A part of a text, with the fences of the code that it begins or ends in."""
    part = text[run.start : run.end]
    if text.count(FENCE, 0, run.start) % 2:
        part = f"{FENCE}\n{part}"
    return f"{part.rstrip()}\n{FENCE}\n" if part.count(FENCE) % 2 else part
