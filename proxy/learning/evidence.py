"""Is what a model says it has read really there, and in the user's own words?  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from proxy.learning.lesson import BLANK, Said
from proxy.recall.words import Word, words

LEAST = 2.0
"""Words of a quote that can be evidence; two characters of scripts without spaces are one."""

LONGEST = 500
"""Characters of a quote; who copies whole messages has not looked for anything."""

_LEFT_OUT = re.compile(r"\.\.\.|…|\[\.*\]")

Voice = Literal["own", "pasted"]


class Evidence(NamedTuple):
    """Where a quote is from, and whether the user said it or only passed it on."""

    said: Said
    voice: Voice


def evidence(quote: str, said: Sequence[Said], first: int = 0) -> Evidence | None:
    """Where a quote is from; the message at ``first`` is looked at before all others.

    Case, spaces, punctuation and width do not count.  None: nowhere, or too short to tell.
    """
    parts = [_flat(part) for part in _LEFT_OUT.split(quote[:LONGEST])]
    parts = [part for part in parts if part.strip()]
    if not parts or not all(map(_tells, parts)):
        return None
    ordered = sorted(range(len(said)), key=lambda place: place != first)
    voices: tuple[Voice, ...] = ("own", "pasted")
    for voice in voices:
        for place in ordered:
            if _holds(said[place], voice, parts):
                return Evidence(said[place], voice)
    return None


def _holds(said: Said, voice: Voice, parts: Sequence[str]) -> bool:
    if voice == "pasted" and not said.pasted:
        return False
    text = said.own if voice == "own" else said.text
    stretches = [_flat(stretch) for stretch in text.split(BLANK) if stretch]
    return all(any(part in stretch for stretch in stretches) for part in parts)


def _flat(text: str) -> str:
    """The words of a text, each between spaces; scripts without spaces in one run."""
    return "".join(map(_spaced, words(text))).replace("  ", " ")


def _spaced(word: Word) -> str:
    return word.text if word.unspaced else f" {word.text} "


def _tells(flat: str) -> bool:
    found = words(flat)
    return sum(len(word.text) / 2 if word.unspaced else 1.0 for word in found) >= LEAST
