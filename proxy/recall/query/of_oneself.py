"""What people tell of themselves and ask for again: "I am Anna", "what am I called?".  Pure.

The two share no word in many languages, and may be in two of them.  So what is told has a term of
its own, and who asks for it looks for that one too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from proxy.recall.lexicon.cues import Cue, PossibleCues
from proxy.recall.lexicon.language import Trait
from proxy.recall.query import wording
from proxy.recall.query.words import Reading
from proxy.recall.ranking.packing import term_of

READ = 1_000
"""Characters of a message that are read: who introduces themselves does it first."""

ASKED = 200
"""The same of a question: its last ones."""

_TERMS: Mapping[Trait, bytes] = MappingProxyType(
    {trait: term_of(f"\0tells {trait}") for trait in wording.TRAITS}
)
_ANYTHING = term_of("\0tells of themselves")


def told(read: Reading) -> tuple[bytes, ...]:
    """The terms of what a user's message tells of themselves; none of what it asks for."""
    text = _plain(read.text[:READ])
    found = set(_found(wording.TRAITS, text, read.seen))
    if not (found or _has(wording.TELLS, text, read.seen)):
        return ()
    asks = set(_asked(read))
    if asks and found <= asks:
        return ()
    return (*(_TERMS[trait] for trait in found - asks), _ANYTHING)


def asked(read: Reading) -> tuple[bytes, ...]:
    """The terms of what a message asks for of the one who writes it."""
    if _has(wording.ASKS_ALL, _plain(read.text[-ASKED:]), read.seen):
        return (_ANYTHING,)
    return tuple(_TERMS[trait] for trait in _asked(read))


def _asked(read: Reading) -> Iterator[Trait]:
    return _found(wording.ASKS, _plain(read.text[-ASKED:]), read.seen)


def _found(cues: Mapping[Trait, Iterable[Cue]], text: str, seen: PossibleCues) -> Iterator[Trait]:
    return (trait for trait, each in cues.items() if _has(each, text, seen))


def _has(cues: Iterable[Cue], text: str, seen: PossibleCues) -> bool:
    return any(cue.search(text, seen) for cue in cues)


def _plain(text: str) -> str:
    return text.replace("’", "'")
