"""Words near each other in meaning, for a question in other words than its answer.

Thousands of words of some languages, computed and not chosen by people, as ``related`` has them:
one file each in ``proxy/recall/lexicon/thesaurus``, made by ``tests/support/talk/thesaurus.py``.
A line has a stem and what is near it, folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from proxy.recall.lexicon.loader import COMMON, LANGUAGES

_FOLDER = files("proxy.recall.lexicon") / "thesaurus"

CODES: Mapping[str, str] = {
    each.language.name: code
    for code, each in zip(COMMON.order, LANGUAGES, strict=True)
    if (_FOLDER / f"{code}.txt").is_file()
}
"""The codes of the languages that have one, by Snowball's names."""


def synonyms(stem: str, language: str) -> tuple[str, ...]:
    """Words near those of a stem in meaning, the nearest first."""
    known = _lines(CODES[language]) if language in CODES else {}
    return tuple(known.get(stem, "").split())


@cache
def _lines(code: str) -> Mapping[str, str]:
    """What is near each stem; read when first needed, and then half a megabyte in memory."""
    text = (_FOLDER / f"{code}.txt").read_text(encoding="utf-8")
    return dict(line.split(" ", 1) for line in text.splitlines())
