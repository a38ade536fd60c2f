"""Who says a message, where its text begins with a name ("Anna: ..."), and who is asked about.

Pure.  Group chats and transcripts name their speakers so.  What a person said of themself answers
questions about them more often than what others said to them.
"""

from __future__ import annotations

import re

from proxy.recall.packing import term_of
from proxy.recall.words import fold

_MOST_NAMES = 6

# A date in brackets may come first.
_LABEL = re.compile(
    r"(?:\[[^\]\n]{4,60}\]\s*)?(?P<name>[^\W\d_][\w'’-]{1,30})(?: [^\W\d_][\w'’.-]{0,30})?:\s"
)
_NAME = re.compile(r"[^\W\d_][\w-]+")


def speaker(text: str) -> bytes | None:
    """The term of the speaker whose name a text begins with."""
    match = _LABEL.match(text)
    if match is None or not match["name"][0].isupper():
        return None
    return _term(match["name"])


def unlabelled(text: str) -> str:
    """A text without the name of its speaker."""
    match = _LABEL.match(text)
    return text[match.end() :] if match and match["name"][0].isupper() else text


def asked_about(text: str) -> tuple[bytes, ...]:
    """The terms of possible speakers that a question names: its words with a capital."""
    names = (name for name in _NAME.findall(text) if name[0].isupper())
    return tuple(dict.fromkeys(map(_term, names)))[:_MOST_NAMES]


def _term(name: str) -> bytes:
    return term_of(f"\0by {fold(name)}")
