"""The speakers of a group chat or a transcript, whose messages begin with a name ("Anna: ...").
Pure.

Questions about a person are more often answered by what they said than by what others said to them.
"""

from __future__ import annotations

import re

from proxy.recall.lexicon.cues import WORD_CACHE_SIZE
from proxy.recall.lexicon.folding import fold
from proxy.recall.ranking.packing import term_of
from proxy.recall.text_cache import text_cache

_MAX_NAMES = 6

# A date in brackets may come first.
_LABEL = re.compile(
    r"(?:\[[^\]\n]{4,60}\]\s*)?(?P<name>[^\W\d_][\w'’-]{1,30})(?: [^\W\d_][\w'’.-]{0,30})?:\s"
)
# No longer than in a label: longer ones find nobody, and would fill the cache.
_NAME = re.compile(r"(?<![\w-])[^\W\d_][\w-]{1,30}(?![\w-])")


def _label(text: str) -> re.Match[str] | None:
    """The name that a text begins with, with a capital and a colon; None if there is none."""
    match = _LABEL.match(text)
    return match if match and match["name"][0].isupper() else None


def speaker_term(text: str) -> bytes | None:
    """The index term of the speaker's name that a text begins with, None if there is none."""
    label = _label(text)
    return _term(label["name"]) if label else None


def without_speaker(text: str) -> str:
    """A text without the name of its speaker."""
    label = _label(text)
    return text[label.end() :] if label else text


def possible_speaker_terms(text: str) -> tuple[bytes, ...]:
    """The terms of possible speakers that a question names: its words with a capital."""
    names = (name for name in _NAME.findall(text) if name[0].isupper())
    return tuple(dict.fromkeys(map(_term, names)))[:_MAX_NAMES]


@text_cache(WORD_CACHE_SIZE)
def _term(name: str) -> bytes:
    return term_of(f"\0by {fold(name)}")
