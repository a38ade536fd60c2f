"""From messages to what an index stores of them: rows and postings.  Pure."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from proxy.recall.language import guess
from proxy.recall.packing import ASKS, POSTING, ROW, coded_length, term_of
from proxy.recall.speakers import speaker
from proxy.recall.stems import beginning, gram_term, is_stop_word, term
from proxy.recall.times import days, tells_time, terms_of_days
from proxy.recall.words import MOST_CHARACTERS, Word, grams, words

MOST_TERMS = 16_384
"""Terms that are read of one message."""

_MOST_DAYS = 8
"""Dates that are read in one message."""

TELLS_TIME = term_of("\0tells time")
"""The term of messages that tell when something is or was."""

_TAIL = 400
# A caption or a remark in brackets may follow.
_ENDS_ASKING = re.compile(r"[?？؟][\s\"'”’»)]*(?:\[[^\]]*\]\s*)?$")


class Analysis(NamedTuple):
    """What a text says: terms with their frequency, length in terms, the language it is in.

    ``asks``: it ends with a question.
    """

    terms: Mapping[bytes, int]
    length: int
    language: str
    asks: bool = False


class Entry(NamedTuple):
    """A passage to be indexed; the fields as in ``packing.ROW``, ``time`` in Unix seconds."""

    session: int
    seq: int
    check: int
    time: float
    tokens: int
    flags: int
    analysis: Analysis


class Packed(NamedTuple):
    """Entries in an index's formats: joined rows, and postings by term."""

    rows: bytes
    postings: dict[bytes, bytes]


class Corpus(NamedTuple):
    """What ranking must know of all passages: how many they are, and their length in terms."""

    passages: int = 0
    length: int = 0


def analyse(text: str, time: float, hint: str = "") -> Analysis:
    """The terms of a message sent at ``time`` (Unix seconds).

    ``hint`` is the language to assume where nothing tells (the one of the message before).  Terms
    beside the words' own, without length: beginnings, days that the text names and the day of
    ``time``, who speaks, whether it tells a time.
    """
    found = words(text)
    language = guess([word.text for word in found]) or hint
    counts = Counter(islice(terms_of(found, language), MOST_TERMS))
    length = counts.total()
    counts.update(_beginnings(found, language))
    beside = terms_of_days([*islice(days(text, time), _MOST_DAYS), time])
    counts.update(beside | set(_traits(text)))
    return Analysis(counts, length, language, _ENDS_ASKING.search(text[-_TAIL:]) is not None)


def terms_of(found: Sequence[Word], language: str) -> Iterator[bytes]:
    """The terms of words in a language, in their order."""
    for word in found:
        known = _of_unspaced(word.text) if word.unspaced else (term(word.text, language),)
        yield from (each for each in known if each is not None)


def _of_unspaced(run: str) -> Iterator[bytes | None]:
    return map(gram_term, grams(run))


def _beginnings(found: Sequence[Word], language: str) -> Iterator[bytes]:
    for word in found:
        known = None if word.unspaced else beginning(word.text)
        if known is not None and not is_stop_word(word.text, language):
            yield known


def _traits(text: str) -> Iterator[bytes]:
    said_by = speaker(text)
    if said_by is not None:
        yield said_by
    if tells_time(text[:MOST_CHARACTERS]):
        yield TELLS_TIME


def pack(entries: Sequence[Entry], first: int) -> Packed:
    """Rows and postings of entries that get the numbers from ``first`` on."""
    rows = np.zeros(len(entries), ROW)
    postings: dict[bytes, bytearray] = {}
    posting = struct.Struct("<IBB").pack
    for place, entry in enumerate(entries):
        session, seq, check, time, tokens, flags, analysis = entry
        length = coded_length(analysis.length)
        seconds = min(max(0, int(time)), 2**32 - 1)
        rows[place] = (
            session,
            seq,
            check,
            seconds,
            min(tokens, 65_535),
            length,
            flags | ASKS * analysis.asks,
        )
        for term_, frequency in analysis.terms.items():
            postings.setdefault(term_, bytearray()).extend(
                posting(first + place, min(frequency, 255), length)
            )
    return Packed(rows.tobytes(), {term_: bytes(data) for term_, data in postings.items()})


assert struct.calcsize("<IBB") == POSTING.itemsize
