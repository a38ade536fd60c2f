"""Index terms for what users say about themselves and later ask for: "I am Anna", "what am I
called?".  Pure.

In many languages the statement and the question share no word, and they may be in different
languages.  So a statement of a trait is indexed under a term of its own, which a question for that
trait searches too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from proxy.recall.lexicon.cues import AnyCue, PossibleCues
from proxy.recall.lexicon.language import Trait
from proxy.recall.query import wording
from proxy.recall.query.words import TokenizedText
from proxy.recall.ranking.packing import term_of

READ = 1_000
"""Characters of a message that are read, since introductions come first."""

ASKED = 200
"""Characters of a question that are read, the last ones."""

_TERMS: Mapping[Trait, bytes] = MappingProxyType(
    {trait: term_of(f"\0tells {trait}") for trait in wording.TRAITS}
)
_ANYTHING = term_of("\0tells of themselves")


def told_trait_terms(read: TokenizedText) -> tuple[bytes, ...]:
    """The terms of the traits that a user's message states; none of those that it asks for."""
    text = _plain(read.text[:READ])
    found = set(_traits_in(wording.TRAITS, text, read.possible_cues))
    if not (found or wording.TELLS.matches(text, read.possible_cues)):
        return ()
    asks = set(_asked_traits(read))
    if asks and found <= asks:
        return ()
    return (*(_TERMS[trait] for trait in found - asks), _ANYTHING)


def asked_trait_terms(read: TokenizedText) -> tuple[bytes, ...]:
    """The terms of the traits of the user that a message asks for."""
    if wording.ASKS_ALL.matches(_plain(read.text[-ASKED:]), read.possible_cues):
        return (_ANYTHING,)
    return tuple(_TERMS[trait] for trait in _asked_traits(read))


def _asked_traits(read: TokenizedText) -> Iterator[Trait]:
    return _traits_in(wording.ASKS, _plain(read.text[-ASKED:]), read.possible_cues)


def _traits_in(cues: Mapping[Trait, AnyCue], text: str, possible: PossibleCues) -> Iterator[Trait]:
    return (trait for trait, each in cues.items() if each.matches(text, possible))


def _plain(text: str) -> str:
    return text.replace("’", "'")
