"""The files of the languages: each is read, and a mistake in one is told with its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

import msgspec
import pytest

from proxy.recall.lexicon.language import Language
from proxy.recall.lexicon.loader import COMMON, LANGUAGES, filled, groups, numbered, read, told
from proxy.recall.standing.standing import START

FILES = {each.name for each in files("proxy.recall.lexicon").iterdir() if each.name[-5:] == ".toml"}
# What patterns of dates and facts are filled with.
FILLED = {"NAME": "Ann", "NUMBER": "1", "UNIT": "day", "YEAR": "1999", "DAY": "3"}


def test_every_language_has_its_place_in_the_order() -> None:
    assert {f"{code}.toml" for code in COMMON.order} | {"common.toml"} == FILES
    assert len({each.language.name for each in LANGUAGES}) == len(COMMON.order)


def test_every_script_is_known() -> None:
    known = {"", *COMMON.scripts.shared, *COMMON.scripts.own}
    assert {each.language.script for each in LANGUAGES} <= known


@pytest.mark.parametrize("language", LANGUAGES, ids=COMMON.order)
def test_each_pattern_is_one_by_itself(language: Language) -> None:
    parts = {**language.standing.parts, **FILLED, "START": START}
    for pattern in patterns_in(msgspec.to_builtins(language)):
        re.compile(filled(pattern, parts))


def patterns_in(value: object) -> Iterator[str]:
    """What stands in brackets, and parts of patterns."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from patterns_in(list(each.values()) if name == "parts" else each)
    elif isinstance(value, list):
        for each in value:
            yield from [each] if isinstance(each, str) else patterns_in(each)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(b'[language]\nname = "x"\nstopwords = "a"', "stopwords", id="unknown-list"),
        pytest.param(b'[language\nname = "x"', "line 1", id="no-toml"),
    ],
)
def test_a_mistake_is_told_with_the_file(text: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=rf"xx\.toml: .*{told}"):
        read("xx.toml", text, Language)


def test_a_line_break_in_a_pattern_stands_for_nothing() -> None:
    assert filled("\n    {A}\n    |b c\n    |d ", {"A": "\n    x\n    |y"}) == "x|y|b c|d "


def test_groups_of_one_name_may_be_in_several_patterns() -> None:
    pattern = re.compile(numbered([r"(?P<n>\d) ago", r"vor (?P<n>\d)", r"il y a (?P<n>\d)"]))
    found = [groups(match) for match in pattern.finditer("3 ago, vor 4, il y a 5")]
    assert found == [{"n": "3"}, {"n": "4"}, {"n": "5"}]


def test_words_are_found_whole_and_the_rest_anywhere() -> None:
    asks_when = re.compile(told(lambda each: each.question.when))
    assert asks_when.search("wann kommt er")
    assert not asks_when.search("gewann er")
    assert asks_when.search("你什么时候来")
