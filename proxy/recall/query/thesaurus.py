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
    known = _lines(CODES[language]) if language in CODES else {}
    return tuple(known.get(stem, "").split())


@cache
def _lines(code: str) -> Mapping[str, str]:
    """What is near each stem; read when first needed, and then half a megabyte in memory."""
    folder = files("proxy.recall.lexicon") / "thesaurus"
    text = (folder / f"{code}.txt").read_text(encoding="utf-8")
    return dict(line.split(" ", 1) for line in text.splitlines())
