"""Counts the words of a query, in scripts without spaces too.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

from proxy.recall.query.words import is_unspaced

CHARACTERS = 2
"""Characters of a word in a script without spaces: most words of Chinese have two."""


def count_words(beginnings: Iterable[str]) -> int:
    """The number of words, given how each of them begins ("" is skipped).

    In scripts without spaces ``beginnings`` are single characters and pairs of them; only the
    single ones are counted, ``CHARACTERS`` for a word.
    """
    found = [text for text in beginnings if text]
    unspaced = [text for text in found if not text.isascii() and is_unspaced(text)]
    characters = sum(len(text) == 1 for text in unspaced)
    return len(found) - len(unspaced) + -(-characters // CHARACTERS)
