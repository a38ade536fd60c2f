"""How many words a message has that are looked for.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

from proxy.recall.query.words import is_unspaced

CHARACTERS = 2
"""Characters of a word in a script without spaces: most words of Chinese have two."""


def counted(beginnings: Iterable[str]) -> int:
    """How many words these are the ``beginnings`` of; "" is that of no word.

    In scripts without spaces they are single characters and pairs of them: only the characters are
    counted.
    """
    found = [text for text in beginnings if text]
    unspaced = [text for text in found if is_unspaced(text)]
    characters = sum(len(text) == 1 for text in unspaced)
    return len(found) - len(unspaced) + -(-characters // CHARACTERS)
