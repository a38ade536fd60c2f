"""Times in questions against the times of messages."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.query.dates import date_of, named_days, tells_time
from proxy.recall.query.spans import MAX_DAYS, MAX_MONTHS, day_spans, terms_of_spans
from proxy.recall.ranking.score import RankingOptions
from tests.support.store.remembering import NOW, Said, person

TODAY = date(2027, 1, 15)


def one(day: date) -> tuple[tuple[date, date], ...]:
    return ((day, day),)


HALF_A_YEAR = ((date(2026, 4, 17), date(2026, 10, 16)),)
A_YEAR_AND_A_HALF = ((date(2025, 4, 17), date(2025, 10, 16)),)


LAST_WEEK = ((date(2027, 1, 4), date(2027, 1, 10)),)
LAST_MONTH = ((date(2026, 12, 1), date(2026, 12, 31)),)
TWO_WEEKS_AGO = ((date(2026, 12, 29), date(2027, 1, 4)),)
SAYS_LAST_WEEK = (
    *("la scorsa settimana", "на прошлой неделе", "w zeszłym tygodniu", "förra veckan"),
    *("sidste uge", "forrige uke", "geçen hafta", "지난주"),
)
SAYS_LAST_MONTH = (
    *("ende letzten monats", "в конце прошлого месяца", "pod koniec zeszłego miesiąca", "上個月底"),
    "le mois dernier",
    "lo scorso mese",
    "в прошлом месяце",
    "sidste måned",
    "지난달",
)
SAYS_TWO_WEEKS_AGO = (
    *("dwa tygodnie temu", "för två veckor sedan", "for to uger siden", "for to uker siden"),
    *("iki hafta önce", "hace un par de semanas", "un paio di settimane fa"),
)
SAYS_LAST_TWO_WEEKS = (
    *("the last two weeks", "in the past two weeks", "the last couple of weeks", "last fortnight"),
    *("in den letzten zwei wochen", "las últimas dos semanas", "les deux dernières semaines"),
    *("le ultime due settimane", "nas últimas duas semanas", "de afgelopen twee weken"),
    *("последние две недели", "过去两周", "ostatnie dwa tygodnie", "son iki hafta"),
)
SAYS_WEEK_BEFORE_LAST = (
    *(
        "the week before last",
        "vorletzte woche",
        "上上周",
        "先々週",
        "지지난주",
        "на позапрошлой неделе",
    ),
)
SAYS_LAST_SUMMER = (
    *("last summer", "letzten sommer", "l'été dernier", "el verano pasado", "l'estate scorsa"),
    *("la scorsa estate", "verão passado", "afgelopen zomer", "zeszłego lata", "прошлым летом"),
    *(
        "förra sommaren",
        "sidste sommer",
        "geçen yaz",
        "上个夏天我去了哪里",
        "前の夏はどこへ",
        "지난 여름에 어디",
    ),
)
SAYS_THE_OTHER_DAY = (
    *("the other day", "neulich", "l'autre jour", "el otro día", "l'altro giorno", "no outro dia"),
    *("onlangs", "niedawno", "на днях", "häromdagen", "forleden", "geçen gün"),
    *(
        "récemment",
        "recientemente",
        "di recente",
        "recentemente",
        "ostatnio",
        "最近我买了什么",
        "前阵子",
    ),
    *("先日何を話した", "最近何を買った", "최근에 뭐 샀지", "얼마 전에"),
)
SAYS_MONDAY = (
    "w zeszły poniedziałek",
    "i måndags",
    "i mandags",
    "sidste mandag",
    "geçen pazartesi",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did we do yesterday?", one(date(2027, 1, 14))),
        ("was habe ich gestern gesagt", one(date(2027, 1, 14))),
        ("¿qué dije ayer?", one(date(2027, 1, 14))),
        ("我昨天说了什么", one(date(2027, 1, 14))),
        ("昨日の話", one(date(2027, 1, 14))),
        ("ماذا قلت أمس", one(date(2027, 1, 14))),
        ("what did i plan today", one(TODAY)),
        ("前天我们聊了什么", one(date(2027, 1, 13))),
        ("three days ago", one(date(2027, 1, 12))),
        ("vor zwei tagen", one(date(2027, 1, 13))),
        ("三天前", one(date(2027, 1, 12))),
        ("八天前", one(date(2027, 1, 7))),
        ("十天前", one(date(2027, 1, 5))),
        ("十三天前", ()),
        ("两三天前", one(date(2027, 1, 12))),
        ("二〇二三年前", ()),
        ("三個星期前", ((date(2026, 12, 22), date(2026, 12, 28)),)),
        ("last week", ((date(2027, 1, 4), date(2027, 1, 10)),)),
        ("letzte woche", ((date(2027, 1, 4), date(2027, 1, 10)),)),
        ("la semana pasada", ((date(2027, 1, 4), date(2027, 1, 10)),)),
        ("上周", ((date(2027, 1, 4), date(2027, 1, 10)),)),
        ("last weekend", ((date(2027, 1, 9), date(2027, 1, 10)),)),
        ("letztes wochenende", ((date(2027, 1, 9), date(2027, 1, 10)),)),
        ("what did i do this week", ((date(2027, 1, 11), TODAY),)),
        ("was habe ich diese woche gemacht", ((date(2027, 1, 11), TODAY),)),
        ("cette semaine", ((date(2027, 1, 11), TODAY),)),
        ("我这周做了什么", ((date(2027, 1, 11), TODAY),)),
        ("this week, i say: this week", ((date(2027, 1, 11), TODAY),)),
        ("cette semaine-là", ()),
        ("日本周边有什么好玩的", ()),
        ("这周围有餐厅吗", ()),
        ("这个月饼好吃吗", ()),
        ("this month", ((date(2027, 1, 1), TODAY),)),
        ("diesen monat", ((date(2027, 1, 1), TODAY),)),
        ("last month", ((date(2026, 12, 1), date(2026, 12, 31)),)),
        ("last year", ((date(2026, 1, 1), date(2026, 12, 31)),)),
        ("去年", ((date(2026, 1, 1), date(2026, 12, 31)),)),
        ("last may", ((date(2026, 5, 1), date(2026, 5, 31)),)),
        ("in may 2024", ((date(2024, 5, 1), date(2024, 5, 31)),)),
        ("in 2022", ((date(2022, 1, 1), date(2022, 12, 31)),)),
        ("what did i say on monday?", one(date(2027, 1, 11))),
        ("last friday", one(date(2027, 1, 8))),
        ("on 8 may, 2023", one(date(2023, 5, 8))),
        ("march 15, 2024", one(date(2024, 3, 15))),
        ("2024-03-15", one(date(2024, 3, 15))),
        ("am 3. oktober", one(date(2026, 10, 3))),
        ("was war am 3.10.?", one(date(2026, 10, 3))),
        ("der termin am 03.10.2025", one(date(2025, 10, 3))),
        ("es kostet 3.10.", ()),
        ("version 3.10.2 oder 1.3.10.", ()),
        ("在5月3号", one(date(2026, 5, 3))),
        ("2025年5月3日", one(date(2025, 5, 3))),
        ("february 30", ()),
        ("two summers ago", ((date(2024, 10, 15), date(2026, 1, 15)),)),
        ("999 years ago", ((date(1926, 8, 11), date(1927, 8, 10)),)),
        ("a few weeks ago", ((date(2026, 12, 18), date(2027, 1, 1)),)),
        ("vor ein paar wochen", ((date(2026, 12, 18), date(2027, 1, 1)),)),
        ("hace unas semanas", ((date(2026, 12, 18), date(2027, 1, 1)),)),
        ("a few days ago", ((date(2027, 1, 11), date(2027, 1, 13)),)),
        ("twelve days ago", one(date(2027, 1, 3))),
        ("hace quince días", one(date(2026, 12, 31))),
        ("half a year ago", HALF_A_YEAR),
        ("a half year ago", HALF_A_YEAR),
        ("vor einem halben jahr", HALF_A_YEAR),
        ("hace medio año", HALF_A_YEAR),
        ("mezzo anno fa", HALF_A_YEAR),
        ("há meio ano", HALF_A_YEAR),
        ("een half jaar geleden", HALF_A_YEAR),
        ("полгода назад", HALF_A_YEAR),
        ("半年前", HALF_A_YEAR),
        ("반년 전에", HALF_A_YEAR),
        ("a year and a half ago", A_YEAR_AND_A_HALF),
        ("one and a half years ago", A_YEAR_AND_A_HALF),
        ("vor anderthalb jahren", A_YEAR_AND_A_HALF),
        ("vor eineinhalb jahren", A_YEAR_AND_A_HALF),
        ("hace un año y medio", A_YEAR_AND_A_HALF),
        ("hace año y medio", A_YEAR_AND_A_HALF),
        ("il y a un an et demi", A_YEAR_AND_A_HALF),
        ("un anno e mezzo fa", A_YEAR_AND_A_HALF),
        ("um ano e meio atrás", A_YEAR_AND_A_HALF),
        ("anderhalf jaar geleden", A_YEAR_AND_A_HALF),
        ("полтора года назад", A_YEAR_AND_A_HALF),
        ("一年半前", A_YEAR_AND_A_HALF),
        ("1년 반 전에", A_YEAR_AND_A_HALF),
        ("you may say so", ()),
        ("nothing about time", ()),
        ("did the milk last a week?", ()),
        *((text, LAST_WEEK) for text in SAYS_LAST_WEEK),
        *((text, LAST_MONTH) for text in SAYS_LAST_MONTH),
        *((text, TWO_WEEKS_AGO) for text in SAYS_TWO_WEEKS_AGO),
        *((text, ((date(2027, 1, 1), TODAY),)) for text in SAYS_LAST_TWO_WEEKS),
        *((text, ((date(2026, 12, 28), date(2027, 1, 3)),)) for text in SAYS_WEEK_BEFORE_LAST),
        *((text, one(date(2027, 1, 11))) for text in SAYS_MONDAY),
        ("a week ago today", ((date(2027, 1, 5), date(2027, 1, 11)),)),
        ("a fortnight ago", ((date(2026, 12, 25), date(2027, 1, 8)),)),
        ("a week or so ago", ((date(2027, 1, 5), date(2027, 1, 11)),)),
        ("a decade ago", ((date(2016, 1, 17), date(2018, 1, 18)),)),
        ("几天前", ((date(2027, 1, 11), date(2027, 1, 13)),)),
        ("前几天", ((date(2027, 1, 11), date(2027, 1, 13)),)),
    ],
)
def test_wording_points_at_days(text: str, expected: tuple[tuple[date, date], ...]) -> None:
    assert day_spans(text, NOW) == expected


@pytest.mark.parametrize("first", [6, 12])
@pytest.mark.parametrize("month", range(1, 13))
def test_a_season_is_counted_whole_in_each_month_and_hemisphere(month: int, first: int) -> None:
    """``first`` is the month in which summer begins."""
    today = datetime(2027, month, 10, 12, tzinfo=UTC)
    months = [today.date() - timedelta(days=30 * count) for count in range(1, 40)]
    begun = [date(day.year, first, 10) for day in months if day.month == first]
    last = begun[0] if begun[0] + timedelta(days=80) <= today.date() else begun[1]
    ((earliest, latest),) = day_spans("two summers ago", today.timestamp())
    before = date(last.year - 1, first, 1)
    assert earliest <= before
    assert before + timedelta(days=89) <= latest


@pytest.mark.parametrize("days", range(7))
def test_a_weekend_is_as_long_ago_on_each_day_of_the_week(days: int) -> None:
    monday = datetime(2027, 1, 18, 12, tzinfo=UTC) + timedelta(days=days)
    last, before = (date(2027, 1, 16), date(2027, 1, 17)), (date(2027, 1, 9), date(2027, 1, 10))
    asked = ("last weekend", "a weekend ago", "two weekends ago", "0 weekends ago")
    assert [day_spans(text, monday.timestamp()) for text in asked] == [
        (last,),
        (last,),
        (before,),
        (last,),
    ]


def test_yesterday_finds_what_was_said_then() -> None:
    then = Said("The plumber wants a deposit.", session=2, age=1)
    others = [Said(f"Note {n}: rehearsal at noon.", session=3 + n, age=2 + n) for n in range(20)]
    assert person(*others, then).recall("What did I tell you yesterday?")[0] == then.text


def test_a_date_at_the_head_of_a_session_speaks_for_the_session() -> None:
    stamped = [
        Said("[2023-05-08] Hello there.", session=1),
        Said("The hedgehog slept in the shed.", session=1),
        Said("[2023-06-09] Hello there.", session=2),
        Said("The hedgehog slept in the leaves.", session=2),
    ]
    top = person(*stamped).recall("Where was the hedgehog on 9 June 2023?")
    assert top.index(stamped[3].text) < top.index(stamped[1].text)


def test_a_day_is_found_though_a_message_of_another_has_a_word_of_the_question() -> None:
    rain = Said("What would happen if it rained?", session=1, age=20)
    answer = Said("Nothing at all.", "assistant", session=1, age=20)
    then = Said("The plumber brought a new pump.", session=2, age=3)
    asked = "What happened on 12 January?"
    assert then.text in person(rain, answer, then, answer).recall(asked)


def test_when_prefers_messages_that_tell_a_time() -> None:
    plain = Said("The choir sang in the old chapel.", session=1)
    timed = Said("The choir sang in the old chapel last Sunday evening.", session=2)
    filler = Said("A choir and a chapel are nice.", session=3)
    assert person(plain, filler, timed).recall("When did the choir sing?")[0] == timed.text


@pytest.mark.parametrize(
    ("question", "there"),
    [("When did I lose my keys?", False), ("When did my keys vanish from the old drawer?", True)],
    ids=["answered", "in-other-words"],
)
def test_what_only_tells_a_time_is_left_out_where_a_message_has_the_words(
    question: str, there: bool
) -> None:
    keys = Said("I lost my keys yesterday.", session=1)
    dentist = Said("The dentist has a place on Tuesday.", session=2)
    found = person(keys, dentist).recall(question)
    assert keys.text in found
    assert (dentist.text in found) == there


def test_what_only_tells_a_time_is_found_where_no_message_asked_for_has_the_words() -> None:
    keys = Said("I lost my keys yesterday.", session=1)
    dentist = Said("The dentist has a place on Tuesday.", session=2)
    found = person(keys, dentist).recall(
        "When did I lose my keys?", options=RankingOptions(session=2)
    )
    assert found == [dentist.text]


SUMMER, FAR_SUMMER = (date(2026, 6, 1), date(2026, 8, 31)), (date(2025, 12, 1), date(2026, 2, 28))


@pytest.mark.parametrize("text", SAYS_LAST_SUMMER)
def test_last_summer_is_that_of_either_hemisphere(text: str) -> None:
    assert day_spans(text, NOW) == (SUMMER, FAR_SUMMER)


@pytest.mark.parametrize("text", SAYS_THE_OTHER_DAY)
def test_the_other_day_is_one_of_two_weeks(text: str) -> None:
    assert day_spans(text, NOW) == ((date(2027, 1, 1), TODAY),)


@pytest.mark.parametrize(
    ("today", "expected"),
    [
        (datetime(2026, 4, 10), (date(2026, 3, 1), date(2026, 4, 10))),
        (datetime(2026, 7, 20), (date(2026, 3, 1), date(2026, 5, 31))),
        (datetime(2026, 9, 20), (date(2026, 9, 1), date(2026, 9, 20))),
    ],
)
def test_this_spring_is_or_has_just_been(today: datetime, expected: tuple[date, date]) -> None:
    for text in (
        "this spring",
        "dieses frühjahr",
        "ce printemps",
        "esta primavera",
        "этой весной",
        "今年春天",
        "この春",
        "올봄",
    ):
        assert day_spans(text, today.replace(tzinfo=UTC).timestamp()) == (expected,)


@pytest.mark.parametrize(
    "text", ["最近的超市在哪", "最近の店", "この春巻きの作り方", "a week back in Rome"]
)
def test_what_only_looks_like_such_a_time_is_none(text: str) -> None:
    assert day_spans(text, NOW) == ()


def test_weeks_back_are_weeks_ago() -> None:
    assert day_spans("three weeks back", NOW) == day_spans("three weeks ago", NOW) != ()


def test_only_texts_with_times_tell_a_time() -> None:
    assert all(map(tells_time, ("since March", "two days ago", "去年搬家", "gestern", "in 1999")))
    assert not any(map(tells_time, ("a red door", "我喜欢茶", "", "12 apples")))


@given(st.text(), st.floats(0, 4e9))
def test_any_text_and_time_gives_few_terms(text: str, now: float) -> None:
    assert len(terms_of_spans(day_spans(text, now))) <= MAX_DAYS + MAX_MONTHS


@given(st.dates(date(1971, 1, 1), date(2026, 12, 31)))
def test_a_written_date_is_read_back(day: date) -> None:
    for text in (
        f"{day:%Y-%m-%d}",
        f"on {day.day} {day:%B}, {day.year}",
        f"{day:%B} {day.day}, {day.year}",
    ):
        assert [date_of(seconds) for seconds in named_days(text, NOW)] == [day]
