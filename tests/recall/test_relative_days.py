"""Words that name a day by the day they were said on."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from msgspec.structs import replace

from proxy.recall.notes.notes import MAX_DAYS, MAX_LENGTH, names_relative_day, with_notes
from proxy.recall.query.relative_days import relative_days
from proxy.recall.query.words import TokenizedText
from proxy.recall.ranking.packing import NAMES_DAY
from proxy.recall.results import Cost, RecallHit, passage_lines

TUESDAY = datetime.fromisoformat("2023-11-14T12:00:00+00:00").timestamp()
LATER = TUESDAY + 90 * 86_400

FOUND = RecallHit("passage", "", "x1.0", "s", 1, "user", 10, TUESDAY, flags=NAMES_DAY)


def said(text: str, now: float = LATER) -> RecallHit:
    (found,) = with_notes([replace(FOUND, text=text)], now)
    return found


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I was there yesterday.", 13), ("the day before yesterday", 12), ("Last Friday", 10),
        ("last Tuesday", 7), ("two days ago", 12), ("3 days ago", 11), ("see you tomorrow", 15),
        ("Gestern war es kalt", 13), ("vor drei Tagen", 11), ("letzten Freitag", 10),
        ("vendredi dernier", 10), ("Hier soir il pleuvait", 13), ("il y a deux jours", 12),
        ("ayer comimos", 13), ("antes de ayer", 12), ("ieri ho visto", 13), ("tre giorni fa", 11),
        ("ontem fui", 13), ("há dois dias", 12), ("gisteren", 13), ("twee dagen geleden", 12),
        ("вчера", 13), ("позавчера", 12), ("три дня назад", 11), ("我昨天去了", 13), ("三天前", 11),
        ("明日行きます", 15), ("一昨日", 12), ("어제 갔어요", 13), ("3일 전에", 11),
        ("أمس ذهبت", 13), ("We fly the day after tomorrow.", 16), ("Übermorgen fliege ich", 16),
        ("après-demain je pars", 16), ("dopodomani parto", 16), ("depois de amanhã viajo", 16),
        ("pasado mañana viajo", 16), ("overmorgen", 16), ("послезавтра", 16),
        ("明後日行きます", 16), ("내일모레 가요", 16), ("بعد غد أسافر", 16),
        ("أول أمس", 12), ("wczoraj", 13), ("igår", 13), ("dün gittim", 13), ("χθες", 13),
        ("the night before last", 12), ("trzy dni temu", 11), ("för tre dagar sedan", 11),
        ("for tre dage siden", 11), ("üç gün önce", 11), ("w zeszły piątek", 10),
        ("i fredags", 10), ("sidste fredag", 10), ("geçen cuma", 10), ("pojutrze", 16),
        ("i övermorgon", 16), ("i overmorgen", 16), ("The exam is in three days", 17),
        ("three days from now", 17), ("dans trois jours", 17), ("dentro de tres días", 17),
        ("tra tre giorni", 17), ("daqui a três dias", 17), ("za trzy dni", 17),
        ("om tre dagar", 17), ("om tre dage", 17),
    ],
)  # fmt: skip
def test_which_day_a_word_means(text: str, day: int) -> None:
    read = TokenizedText(text)
    found = [each.day for each in relative_days(text, TUESDAY, read.possible_cues)]
    assert set(found) == {date(2023, 11, day)}
    assert names_relative_day(read, TUESDAY)


@pytest.mark.parametrize(
    "text",
    [
        "a few days ago", "two weeks ago", "last week", "on Friday", "next Friday", "today",
        "yesterday's news", "some days", "the last Fridays", "il y a longtemps", "a last day",
        "I read it in three days", "几天前", "kilka dni temu", "for et par dage siden",
        "last Monday", "half a day ago", "two and a half days ago", "vor einem halben Tag",
        "大前天", "엊그제", "завтрак", "غداء", "أمسية جميلة", "Hier ist es schön",
        "guten Morgen", "mañana",
    ],
)  # fmt: skip
def test_what_may_be_another_day_is_left_alone(text: str) -> None:
    assert not said(text).note


def test_the_day_stands_behind_what_was_said() -> None:
    found = said("I went yesterday, alone.\nFun!")
    assert found.text == "I went yesterday, alone.\nFun!"
    assert passage_lines([found], own="").splitlines() == [
        "[2023-11-14 Tue]",
        "user: I went yesterday, alone.",
        "  Fun! [yesterday = 2023-11-13]",
    ]


def test_what_was_said_today_needs_none() -> None:
    assert not said("I went yesterday.", TUESDAY + 3600).note


@pytest.mark.parametrize(
    "text",
    [
        "yesterday " + "x" * MAX_LENGTH,
        "I went yesterday, on 13 November.",
        "Date: 2023-05-08\nI went yesterday.",
        "> I went yesterday.\nWhat does he mean?",
    ],
    ids=["long", "dated", "of-another-day", "quoted"],
)
def test_what_tells_its_day_or_is_not_surely_of_its_own_is_not_flagged(text: str) -> None:
    assert not names_relative_day(TokenizedText(text), TUESDAY)


def test_a_session_whose_days_its_messages_tell_gets_none() -> None:
    texts = ("[8 May 2023] Kai: Hello.", "I went yesterday.")
    found = [replace(FOUND, text=text) for text in texts]
    assert with_notes(found, LATER) == found


def test_so_many_days_are_told_of_a_message() -> None:
    text = "The day before yesterday I rested, yesterday I packed, tomorrow I fly."
    assert said(text).note.count("=") == MAX_DAYS


def test_what_is_said_twice_is_told_once() -> None:
    assert said("Tomorrow I fly, tomorrow!").note == "tomorrow = 2023-11-15"
    text = "Tomorrow is my birthday, the party is the day after tomorrow."
    assert said(text).note == "Tomorrow = 2023-11-15; day after tomorrow = 2023-11-16"


def written(one: RecallHit) -> str:
    return passage_lines([one], own="").splitlines()[1]


def test_what_is_told_is_paid_for() -> None:
    plain, told = replace(FOUND, text="I went yesterday."), said("I went yesterday.")
    for cost in (Cost(0), Cost(0, len)):
        assert cost.line(told, written) > cost.line(plain, written)
