"""Words near each other in meaning, for a question in other words than its answer.

Thousands of words of some languages, computed and not chosen by people, as ``related`` has them:
one file each in ``proxy/recall/lexicon/thesaurus``, made by ``tests/support/talk/thesaurus.py``.
A line has a stem and what is near it, folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

CODES: Mapping[str, str] = MappingProxyType(
    {
        "english": "en",
        "spanish": "es",
        "french": "fr",
        "italian": "it",
        "portuguese": "pt",
    }
)
"""The languages that have one, by Snowball's names."""


def synonyms(stem: str, language: str) -> tuple[str, ...]:
    """Words near those of a stem in meaning, the nearest first."""
    if language not in CODES:
        return ()
    text = _text(CODES[language])
    begin = text.find(f"\n{stem} ") + 1
    return tuple(text[begin : text.index("\n", begin)].split()[1:]) if begin else ()


@cache
def _text(code: str) -> str:
    """Up to 150 kB, read when first needed."""
    folder = files("proxy.recall.lexicon") / "thesaurus"
    return (folder / f"{code}.txt").read_text(encoding="utf-8")
