"""What a text is asked for by its words: a pattern that is found is never taken for absent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from proxy.recall.lexicon.cues import ALL_CUES, Cue, Cues, words_to_check
from proxy.recall.lexicon.folding import fold
from proxy.recall.lexicon.regex import (
    Alternatives,
    CharacterSet,
    LiteralText,
    NotUnderstoodError,
    Part,
    Parts,
    Repetition,
    parse,
)
from proxy.recall.lexicon.required_substrings import pieces
from proxy.recall.own_words import own_texts
from proxy.recall.query.dates import tells_time
from proxy.recall.query.words import CUES, TokenizedText
from proxy.recall.standing.standing import _instructions_in, find_instructions
from proxy.recall.standing.wording import WORDINGS
from proxy.recall.text_cache import clear_text_caches
from tests.recall.test_standing import INSTRUCTIONS, LEANINGS, PREFERENCES, WITHDRAWALS
from tests.recall.test_standing_nothing import NOTHING

SAID = Path(__file__).parents[2] / "bench" / "data" / "conversations.jsonl"

MANY = 15
BETWEEN: tuple[str, ...] = (" ", ", ", "? ", "\n", "’", "-", "_", "…", "\u00a0", "，", "7", "ß")
BETWEEN += ("İ", "\u0301", "\u05b0")


class Writer:
    """Writes texts that a pattern may be found in."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def text(self, pattern: str) -> str:
        said = self.written(parse(pattern))
        said = self.random.choice((str, str.upper, str.title, str.lower))(said)
        around = self.random.choice(BETWEEN), self.random.choice(BETWEEN)
        return f"So{around[0]}{said}{around[1]}it is"

    def written(self, parts: Parts) -> str:
        return "".join(map(self.part, parts))

    def part(self, part: Part) -> str:
        match part:
            case LiteralText(text):
                return text
            case CharacterSet(None):
                return self.random.choice("x7 w")
            case CharacterSet(characters):
                return self.random.choice(characters) if characters else ""
            case Alternatives(ways):
                return self.written(self.random.choice(ways))
            case Repetition(least, most, parts):
                least = max(least, int(self.random.random() < 0.5)) if most != 0 else 0
                return "".join(self.written(parts) for _ in range(min(least, most or least)))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_in_a_text_was_seen_in_it(seed: int) -> None:
    writer, found = Writer(seed), 0
    for cue in CUES:
        for _ in range(MANY):
            text = writer.text(cue.pattern.pattern)
            said = TokenizedText(text)
            for form in (text, said.folded, text.lower()):
                there = cue.pattern.search(form) is not None
                found += there
                assert cue.search(form, said.possible_cues) or not there, (
                    cue.pattern.pattern[:80],
                    text,
                )
    assert found > 10 * MANY


def said() -> Iterator[str]:
    """Texts in many languages: recorded conversations, and wishes."""
    for line in SAID.read_text(encoding="utf-8").splitlines():
        for session in json.loads(line)["sessions"]:
            yield from (text for _, _, text in session["turns"])
    yield from (*INSTRUCTIONS, *PREFERENCES, *LEANINGS, *WITHDRAWALS, *NOTHING)


def test_texts_say_the_same_with_and_without_a_look_at_their_words() -> None:
    times = wishes = 0
    for text in said():
        plain = [
            s for voice in own_texts(text) for s in _instructions_in(voice, WORDINGS, ALL_CUES)
        ]
        assert list(find_instructions(text)) == plain, text
        told = tells_time(text)
        assert tells_time(text, TokenizedText(text).possible_cues) == told, text
        times, wishes = times + told, wishes + bool(plain)
    assert times > MANY and wishes > MANY


def test_most_patterns_are_not_tried_on_what_has_nothing_of_them() -> None:
    said = TokenizedText("The boiler makes a rattling noise, and Petra will look at the valve.")
    tried = [cue for cue in CUES if cue in said.possible_cues]
    assert len(tried) < len(list(CUES)) / 20


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
    assert pieces(pattern) == expected


@pytest.mark.parametrize("text", ["cafe\u0301 now", "ﬁne now", "İt now", "ab" * 200])
def test_what_words_cannot_tell_may_have_everything(text: str) -> None:
    cue = Cue(r"\bthen\b")
    assert cue in Cues([cue]).possible(words_to_check(text, fold(text)))
    assert cue in ALL_CUES


def test_a_pattern_of_which_nothing_is_known_is_tried_on_every_text() -> None:
    cue = Cue(r"(now|then) \1")
    assert not cue.pieces
    assert cue in Cues([cue]).possible(())


def test_words_that_were_looked_at_can_be_forgotten() -> None:
    asked = Cues([Cue("now")])
    asked.possible(["now"])
    assert asked._cached_cues_of.cache_info().currsize == 1
    clear_text_caches()
    assert asked._cached_cues_of.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("ab*", (LiteralText("a"), Repetition(0, None, (LiteralText("b"),)))),
        (
            r"a{2}b{,3}?",
            (Repetition(2, 2, (LiteralText("a"),)), Repetition(0, 3, (LiteralText("b"),))),
        ),
        (
            r"(?P<n>a|b)(?=c)",
            (Alternatives(((LiteralText("a"),), (LiteralText("b"),))), LiteralText("")),
        ),
        (r"[]a-c\s\-][^x]\d", (CharacterSet("]abc -"), CharacterSet(None), CharacterSet(None))),
        (
            r"^\b\u00e9\.$",
            (
                CharacterSet(""),
                CharacterSet(""),
                LiteralText("é"),
                LiteralText("."),
                CharacterSet(""),
            ),
        ),
        ("(?-i:a{})", (LiteralText("a"), LiteralText("{"), LiteralText("}"))),
    ],
)
def test_the_parts_of_a_pattern(pattern: str, parts: Parts) -> None:
    assert parse(pattern) == parts


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?P<n>a)(?P=n)", "(a)?(?(1)b)", "(?i)a", r"\07"])
def test_what_is_not_understood_is_said_to_be_so(pattern: str) -> None:
    with pytest.raises(NotUnderstoodError):
        parse(pattern)


def test_what_is_warm_is_not_found_out_again() -> None:
    cues = Cues([Cue("marmalade"), Cue("jam")])
    cues.warm()
    index = vars(cues)["_pieces"]
    assert [cue for cue in cues if cue in cues.possible(["marmalade"])] == list(cues)[:1]
    assert vars(cues)["_pieces"] is index


def test_what_is_warm_is_compiled() -> None:
    cue = Cue("marmalade")
    assert "search" not in vars(cue.pattern)
    Cues([cue]).warm()
    assert "search" in vars(cue.pattern)
