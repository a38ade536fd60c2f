"""What a text is asked for by its words: a pattern that is found is never taken for absent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from random import Random
from typing import Any

import pytest

from proxy.recall.lexicon.cues import EVERYTHING, Cue, Cues, fold, pieces
from proxy.recall.query import dates, question
from proxy.recall.query.words import Reading
from proxy.recall.standing import standing

_parser: Any = import_module("re._parser")
MANY = 40
BETWEEN: tuple[str, ...] = (" ", ", ", "? ", "\n", "’", "-", "_", "…", "\u00a0", "，", "7", "ß")
BETWEEN += ("İ", "\u0301", "\u05b0")


def cues() -> Iterator[Cue]:
    for module in (dates, question):
        yield from (each for each in vars(module).values() if isinstance(each, Cue))
    for language in standing._LANGUAGES:
        yield language.any
        yield from (cue for _, patterns in language.patterns for cue in patterns)


class Writer:
    """Writes texts that a pattern may be found in."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def text(self, pattern: re.Pattern[str]) -> str:
        said = self.written(_parser.parse(pattern.pattern, pattern.flags))
        said = self.random.choice((str, str.upper, str.title, str.lower))(said)
        around = self.random.choice(BETWEEN), self.random.choice(BETWEEN)
        return f"So{around[0]}{said}{around[1]}it is"

    def written(self, items: Iterable[Any]) -> str:
        return "".join(self.part(str(kind), value) for kind, value in items)

    def part(self, kind: str, value: Any) -> str:
        if kind == "LITERAL":
            return chr(value)
        if kind == "IN":
            return self.one_of(value)
        if kind == "BRANCH":
            return self.written(self.random.choice(value[1]))
        if kind in ("SUBPATTERN", "ATOMIC_GROUP"):
            return self.written(value[-1] if kind == "SUBPATTERN" else value)
        if kind.endswith("_REPEAT"):
            least, most, items = value
            times = self.random.randint(least, min(int(most), least + 2))
            return "".join(self.written(items) for _ in range(times))
        return "x" if kind in ("ANY", "NOT_LITERAL") else ""

    def one_of(self, members: Any) -> str:
        kind, value = self.random.choice(members)
        if str(kind) == "LITERAL":
            return chr(value)
        if str(kind) == "RANGE":
            return chr(self.random.randint(*value))
        return {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "7"}.get(str(value), "w")


@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_in_a_text_was_seen_in_it(seed: int) -> None:
    writer, found = Writer(seed), 0
    for cue in cues():
        for _ in range(MANY):
            text = writer.text(cue.pattern)
            said = Reading(text)
            for form in (text, said.folded, text.lower()):
                there = cue.pattern.search(form) is not None
                found += there
                assert cue.search(form, said.seen) or not there, (cue.pattern.pattern[:80], text)
    assert found > 10 * MANY


def test_most_patterns_are_not_tried_on_what_has_nothing_of_them() -> None:
    said = Reading("The boiler makes a rattling noise, and Petra will look at the valve.")
    tried = [cue for cue in cues() if cue.within(said.seen)]
    assert len(tried) < len(list(cues())) / 20


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\b(?:now|then)\b", {"\0now\0", "\0then\0"}),
        (r"last\s+week", {"last\0"}),
        (r"(?:19|20)\d\d年", {"年"}),
        (r"\bnever\b.{0,20}\bagain", {"\0never\0"}),
        (r"\d+", set()),
        (r"(?:now)?", set()),
        (r"[?？]|now", set()),
    ],
)
def test_a_pattern_tells_what_each_text_has_that_it_is_found_in(
    pattern: str, expected: set[str]
) -> None:
    assert pieces(re.compile(pattern)) == expected


@pytest.mark.parametrize("text", ["cafe\u0301 now", "ﬁne now", "İt now", "ab" * 200])
def test_what_words_cannot_tell_may_have_everything(text: str) -> None:
    asked = Cues()
    cue = asked.cue(re.compile(r"\bthen\b"))
    assert cue.within(asked.seen(text, fold(text)))
    assert cue.within(EVERYTHING)


def test_a_cue_that_comes_later_is_seen_in_words_known_before() -> None:
    asked = Cues()
    assert asked.seen("now", "now") == 0
    assert asked.cue(re.compile("now")).within(asked.seen("now", "now"))
