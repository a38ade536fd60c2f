"""Patterns of wordings that tell what kind of thing a message asks for.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import get_args

from proxy.recall.lexicon.cues import AnyCue, Cue
from proxy.recall.lexicon.language import Language, Phrases, Trait
from proxy.recall.lexicon.loader import LANGUAGES, any_of, phrase_pattern

HOW_ARE_YOU = Cue(any_of(lambda each: each.small_talk.how_are_you))
ASKING = Cue(phrase_pattern(lambda each: each.small_talk.asking))
USER = Cue(phrase_pattern(lambda each: each.question.about_user))
ASSISTANT = Cue(phrase_pattern(lambda each: each.question.about_assistant))
WHEN = Cue(phrase_pattern(lambda each: each.question.when))
ORDERS = Cue(phrase_pattern(lambda each: each.question.orders))
LISTS = Cue(phrase_pattern(lambda each: each.question.lists))
GENERAL = Cue(
    rf"^\W*(?:{any_of(lambda each: each.own_words.please)}\W*)*"
    f"(?P<asks>{phrase_pattern(lambda each: each.question.general)})"
)
WORKS_ON = Cue(phrase_pattern(lambda each: each.question.works_on))
LIKENED = Cue(phrase_pattern(lambda each: each.question.likened))
OWN = Cue(phrase_pattern(lambda each: each.facts.own))


def _each(of: Callable[[Language], Phrases]) -> AnyCue:
    """A cue for each language, since nearly all texts are in one."""
    names = [each.language.name for each in LANGUAGES if of(each) != Phrases()]
    return AnyCue(Cue(phrase_pattern(of, name), re.IGNORECASE) for name in names)


def _by_language(of: Callable[[Language], Phrases], before: str = "") -> Mapping[str, Cue]:
    """A cue for each language by its name, and one for all by "": a word that points back in one
    language may be an article in another."""
    names = [each.language.name for each in LANGUAGES if of(each) != Phrases()]
    return {name: Cue(f"{before}{phrase_pattern(of, name)}") for name in ("", *names)}


def _by_trait(of: Callable[[Language], Mapping[Trait, Phrases]]) -> Mapping[Trait, AnyCue]:
    def of_trait(trait: Trait) -> AnyCue:
        return _each(lambda each: of(each).get(trait, Phrases()))

    return {trait: of_trait(trait) for trait in get_args(Trait)}


GOES_ON = _by_language(lambda each: each.question.goes_on, r"^\W*")
POINTS_BACK = _by_language(lambda each: each.question.points_back)
WAS = _by_language(lambda each: each.question.was)
AGAIN = Cue(phrase_pattern(lambda each: each.question.again))
TELLS = _each(lambda each: each.person.tells)
TRAITS = _by_trait(lambda each: each.person.traits)
ASKS = _by_trait(lambda each: each.person.asks)
ASKS_ALL = _each(lambda each: each.person.asks_all)

CUES = (
    *(HOW_ARE_YOU, ASKING, USER, ASSISTANT, WHEN, ORDERS, LISTS, GENERAL, WORKS_ON, LIKENED, OWN),
    *(AGAIN, *GOES_ON.values(), *POINTS_BACK.values(), *WAS.values()),
    *chain(*(each.cues for each in (TELLS, *TRAITS.values(), *ASKS.values(), ASKS_ALL))),
)
