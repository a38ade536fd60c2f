"""The files of the languages: each is read, and a mistake in one is told with its name."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from msgspec.structs import replace

from proxy.recall.lexicon import loader
from proxy.recall.lexicon.cues import Cue
from proxy.recall.lexicon.language import Language
from proxy.recall.lexicon.loader import (
    COMMON,
    LANGUAGES,
    decode_file,
    invalid_patterns,
    lazy_pattern,
    named_groups,
    phrase_pattern,
    with_numbered_groups,
    with_parts,
    word_pattern,
)

FILES = {each.name for each in files("proxy.recall.lexicon").iterdir() if each.name[-5:] == ".toml"}


def test_every_language_has_its_place_in_the_order() -> None:
    assert {f"{code}.toml" for code in COMMON.order} | {"common.toml"} == FILES
    assert len({each.language.name for each in LANGUAGES}) == len(COMMON.order)


def test_every_script_is_known() -> None:
    known = {"", *COMMON.scripts.shared, *COMMON.scripts.own}
    assert {each.language.script for each in LANGUAGES} <= known


def test_each_pattern_is_one_by_itself() -> None:
    assert list(invalid_patterns(zip(COMMON.order, LANGUAGES, strict=True))) == []


def test_a_word_of_one_letter_is_matched_whether_or_not_a_longer_one_begins_so() -> None:
    assert all(re.fullmatch(word_pattern(["a", "ab", "夏"]), word) for word in ("a", "ab", "夏"))


def test_a_wrong_pattern_is_told_with_its_file_and_list() -> None:
    wrong = decode_file(
        "xx.toml", b'[language]\nname="x"\n[dates]\nago=["(a", "b {UNIT}"]', Language
    )
    (told,) = invalid_patterns([("xx", wrong)])
    assert told.startswith("proxy/recall/lexicon/xx.toml: dates.ago: '(a': missing )")


def test_where_languages_do_not_make_a_pattern_their_mistakes_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = decode_file("xx.toml", b'[language]\nname="x"\n[question]\nwhen.words=["a)"]', Language)
    monkeypatch.setattr(loader, "LANGUAGES", (wrong,))
    monkeypatch.setattr(loader, "COMMON", replace(COMMON, order=("xx",)))
    with pytest.raises(ValueError, match=r"xx\.toml: question\.when\.words: "):
        Cue(phrase_pattern(lambda each: each.question.when)).pattern.search("")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(b'[language]\nname = "x"\nstopwords = "a"', "stopwords", id="unknown-list"),
        pytest.param(b'[language\nname = "x"', "line 1", id="no-toml"),
    ],
)
def test_a_mistake_is_told_with_the_file(text: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=rf"xx\.toml: .*{told}"):
        decode_file("xx.toml", text, Language)


def test_a_line_break_in_a_pattern_stands_for_nothing() -> None:
    assert with_parts("\n    {A}\n    |b c\n    |d ", {"A": "\n    x\n    |y"}) == "x|y|b c|d "


def test_groups_of_one_name_may_be_in_several_patterns() -> None:
    pattern = re.compile(
        with_numbered_groups([r"(?P<n>\d) ago", r"vor (?P<n>\d)", r"il y a (?P<n>\d)"])
    )
    found = [named_groups(match) for match in pattern.finditer("3 ago, vor 4, il y a 5")]
    assert found == [{"n": "3"}, {"n": "4"}, {"n": "5"}]


def test_words_are_found_whole_and_the_rest_anywhere() -> None:
    asks_when = re.compile(phrase_pattern(lambda each: each.question.when))
    assert asks_when.search("wann kommt er")
    assert not asks_when.search("gewann er")
    assert asks_when.search("你什么时候来")


def test_a_pattern_is_compiled_at_its_first_use_and_then_asked_directly() -> None:
    pattern = lazy_pattern(r"(?P<name>\w+)!", re.IGNORECASE)
    assert "search" not in vars(pattern)
    found = pattern.search("Hello Ada!")
    assert found is not None and found["name"] == "Ada"
    assert vars(pattern)["search"] == re.compile(r"(?P<name>\w+)!", re.IGNORECASE).search
