"""What a person and an assistant say to each other, made of words as people use them.

Of English words, and not of made ones as ``cost.text``: tokens are counted here, and made words
have twice as many.  The same seed says the same.  Pure.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from bench.cost.text import EXPONENT, FUNCTION, OFFSET

MIN_WORDS, MAX_WORDS = 20, 60
"""Words of what a person says in a turn."""
ANSWER = 40, 120
"""Words of an answer."""
SENTENCE = 6, 14

TELLS, PLEASED, ASKS = (3, 1), (10, 5), (10, 8)
"""Every so many turns, beginning with which: a person tells of themselves, says that an answer has
helped, asks what they said before."""

THANKS = "Thanks, that worked very well."
RECALLS = "Do you remember what I said about my"

_CONTENT = """
    day week house plan garden kitchen morning water paper number letter market train street
    school window table summer winter price color list answer question reason line side part place
    case point group problem hand service friend party result change idea moment level order field
    report cost model report value meeting picture map door wall floor roof room office shop lunch
    dinner bread coffee rain light road bridge river forest mountain island boat wheel engine paint
    wood stone glass metal cloth shirt shoe bag box key clock phone screen story song film page
    chapter lesson test exam grade team match score ticket hotel flight visit guest gift card photo
    start finish open close move carry build fix clean paint cook eat drink drive walk run read
    write draw learn teach show keep hold send bring find lose choose compare measure check repeat
    small large long short early late quick slow warm cold dry wet new old cheap dear quiet loud
    simple hard strong weak clear dark green blue red brown white black better worse next last
"""
WORDS = tuple(dict.fromkeys((*FUNCTION, *_CONTENT.split())))

_PARTS = """
    collect repair study sell paint restore photograph rent
    maps clocks bicycles lamps boats radios chairs coins posters violins tents pianos stamps kites
    sister brother cousin neighbour uncle aunt colleague landlord niece nephew roommate tutor
    Ada Ben Cleo Dov Eda Finn Gita Hugo Iris Jon Kira Lev Mona Nils Olga Paul Rita Sven Tess Udo
"""
_VERBS, _THINGS, _RELATIONS, _NAMES = (line.split() for line in _PARTS.strip().splitlines())

_TELLING = re.compile(r"\bI (\w+) (\w+) with my (\w+) (\w+)\.")


class Telling(NamedTuple):
    """A statement about the one who makes it."""

    verb: str
    thing: str
    relation: str
    name: str

    @property
    def said(self) -> str:
        return f"I {self.verb} {self.thing} with my {self.relation} {self.name}."

    @property
    def noted(self) -> str:
        """The same about somebody else."""
        return f"The user and their {self.relation} {self.name} {self.verb} {self.thing} together."


def tellings_in(text: str) -> list[Telling]:
    return [Telling(*found.groups()) for found in _TELLING.finditer(text)]


class Speaker:
    """Makes texts, one after the other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        frequencies = ((rank + 1 + OFFSET) ** -EXPONENT for rank in range(len(WORDS)))
        self._bounds = list(accumulate(frequencies))

    def turn(self, number: int) -> str:
        """What a person says in their ``number``-th turn, from 0."""
        head = []
        if _is_due(number, PLEASED):
            head.append(THANKS)
        if _is_due(number, TELLS):
            head.append(self.telling().said)
        if _is_due(number, ASKS):
            head.append(f"{RECALLS} {self._random.choice(_RELATIONS)}?")
        return self._text(head, self._random.randint(MIN_WORDS, MAX_WORDS))

    def answer(self) -> str:
        return self._text([], self._random.randint(*ANSWER))

    def telling(self) -> Telling:
        return Telling(*map(self._random.choice, (_VERBS, _THINGS, _RELATIONS, _NAMES)))

    def _text(self, head: Sequence[str], count: int) -> str:
        """So many words: first these sentences, then others."""
        said, left = list(head), count - sum(len(each.split()) for each in head)
        while left > 0:
            length = min(left, self._random.randint(*SENTENCE))
            chosen = self._random.choices(WORDS, cum_weights=self._bounds, k=length)
            said.append(f"{' '.join(chosen).capitalize()}.")
            left -= length
        return " ".join(said)


def _is_due(number: int, rhythm: tuple[int, int]) -> bool:
    every, first = rhythm
    return number % every == first
