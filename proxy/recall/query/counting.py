"""How many words a message has that are looked for.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

from proxy.recall.query.words import is_unspaced

CHARACTERS = 2
"""Of a script without spaces so many make a word, as most words of Chinese have."""


def counted(beginnings: Iterable[str]) -> int:
    """``beginnings`` are those of words, "" for what stands for none.

    In scripts without spaces they are characters and pairs of neighbours: the pairs are no words
    more.
    """
    found = [text for text in beginnings if text]
    unspaced = [text for text in found if is_unspaced(text)]
    characters = sum(len(text) == 1 for text in unspaced)
    return len(found) - len(unspaced) + -(-characters // CHARACTERS)
