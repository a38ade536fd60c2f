"""The spans of days that a question refers to ("last week", "two months ago").  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from itertools import chain, islice

from proxy.recall.lexicon.cues import ALL_CUES, AnyOf, PossibleCues
from proxy.recall.lexicon.language import Dates
from proxy.recall.lexicon.loader import (
    LANGUAGES,
    any_of,
    named_groups,
    phrase_pattern,
    with_parts,
    word_pattern,
)
from proxy.recall.query.dates import (
    MONTH,
    MONTHS,
    NUMBERS,
    OF,
    SEASONS,
    UNITS,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    date_of,
    day_term,
    month_term,
    named_days,
    number_pattern,
)

DaySpan = tuple[date, date]
"""The first and the last day of a span."""

MAX_DAYS = 31
"""Days of a span that are asked for one by one; longer spans are asked for by the month."""
MAX_MONTHS = 24
MAX_SLACK = timedelta(days=366)
"""Days that "three decades ago" may mean, either way: about ``MAX_MONTHS`` in all."""
_MAX_DATES = 8
JUST_BEEN = timedelta(days=92)
"""After its end a season is still "this" one for so long."""

_A_FEW = frozenset(
    word for each in LANGUAGES for three in each.dates.numbers[2:3] for word in three.split()[1:]
)
_BEFORE_MONTH = any_of(lambda each: each.dates.before_month)
_BEFORE_YEAR = any_of(lambda each: each.dates.before_year)


def _written(of: Callable[[Dates], Iterable[str]]) -> list[str]:
    """The patterns of a list, each with the words of its own language: those of all languages in
    each of them take as long to compile as all other cues together."""
    return [with_parts(found, _parts(each.dates)) for each in LANGUAGES for found in of(each.dates)]


def _parts(said: Dates) -> Mapping[str, str]:
    return {
        "UNIT": word_pattern(" ".join(said.units.values()).split()),
        "NUMBER": number_pattern(said),
        "SEASON": word_pattern(" ".join(said.seasons).split()),
        "YEAR": YEAR,
    }


_NEAR = AnyOf(
    [
        f"(?P<two>{phrase_pattern(lambda each: each.dates.day_before_yesterday)})",
        f"(?P<one>{phrase_pattern(lambda each: each.dates.yesterday)})",
        f"(?P<none>{phrase_pattern(lambda each: each.dates.today)})",
    ]
)
_BEFORE_TODAY = {"none": 0, "one": 1, "two": 2}
_DAYS_OF: Mapping[str, int] = dict(
    day=1, week=7, weekend=7, fortnight=14, month=30, season=365, year=365, decade=3650
)
_AGO = AnyOf(_written(lambda said: said.ago))
_LAST = AnyOf(_written(lambda said: said.last))
_BEFORE_LAST = AnyOf(_written(lambda said: said.before_last))
_THIS = AnyOf(_written(lambda said: said.this))
_LAST_SEASON = AnyOf(_written(lambda said: said.last_season))
_THIS_SEASON = AnyOf(_written(lambda said: said.this_season))
_LATELY = AnyOf(_written(lambda said: said.lately))
_LAST_WEEKDAY = AnyOf([rf"\b(?P<weekday>{WEEKDAY})\b", *_written(lambda said: said.weekday)])
_IN_MONTH = AnyOf(
    [
        rf"\b{_BEFORE_MONTH}[\s-]+(?P<month>{MONTH})\b(?:,? (?:{OF} )?(?P<year>{YEAR}))?",
        rf"\b(?P<month>{MONTH}),? (?P<year>{YEAR})\b",
        *_written(lambda said: said.month),
    ]
)
_DIGITS = re.compile(r"\d\d")
_IN_YEAR = AnyOf([rf"\b{_BEFORE_YEAR}\s+(?P<year>{YEAR})\b", *_written(lambda said: said.year)])


def day_spans(text: str, now: float, cues: PossibleCues = ALL_CUES) -> tuple[DaySpan, ...]:
    """The spans of days that folded text points at, each once, seen at ``now`` (Unix seconds)."""
    today = date_of(now)
    named = islice(named_days(text, now, cues), _MAX_DATES)
    exact = tuple((day, day) for day in map(date_of, named))
    if exact:
        return exact
    for pointing, read in _READERS:
        pattern = pointing.possible_pattern(cues)
        found = tuple(dict.fromkeys(read(pattern, text, today))) if pattern else ()
        if found:
            return found
    return ()


def _near(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        (name,) = named_groups(match)
        day = today - timedelta(days=_BEFORE_TODAY[name])
        yield day, day


def _ago(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        found = named_groups(match)
        yield _span_ago(today, *_count(found), UNITS[found["unit"]])


def _count(found: Mapping[str, str]) -> tuple[float, float]:
    """How many units are named, and how vaguely: by which part of a unit, either way."""
    number = found.get("number", "1")
    count = NUMBERS.get(number) or int(number)
    if "half" in found:
        return 0.5, 0.25
    if "more" in found:
        return count + 0.5, 0.25
    return count, 1.0 if number in _A_FEW else 0.5


def _span_ago(today: date, number: float, vague: float, unit: str) -> DaySpan:
    """The span that "so many units ago" means, as vague as people use it: weeks by 3 days."""
    if unit == "weekend":
        return _period(today - timedelta(weeks=max(1, number) - 1), unit)
    if unit == "season":  # of either hemisphere: the last one ended today or nine months ago
        begun, ended = 365 * number + 92, 365 * max(0, number - 1)
        return today - timedelta(days=begun), today - timedelta(days=ended)
    slack = min(timedelta(days=int(_DAYS_OF[unit] * vague)), MAX_SLACK)
    middle = _before(today, number, unit)
    return middle - slack, min(today, middle + slack)


def _before(today: date, number: float, unit: str) -> date:
    """The day so many units before, at most a century."""
    return today - timedelta(days=min(_DAYS_OF[unit] * number, 36_500))


def _last(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        found = named_groups(match)
        number, unit = _count(found)[0], UNITS[found["unit"]]
        if number > 1:  # "the last two weeks" end today
            yield _before(today, number, unit), today
        elif "number" not in found:  # not "did it last a week?"
            yield _period(today, unit)


def _before_last(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        unit = UNITS[named_groups(match)["unit"]]
        yield _period(_period(today, unit)[0], unit)


def _period(today: date, unit: str) -> DaySpan:
    """The week, weekend, month or year before the one that ``today`` is in; the day, fortnight or
    decade up to now."""
    if unit in ("day", "fortnight", "decade"):
        return _before(today, 1, unit), today
    if unit in ("week", "weekend"):
        sunday = today - timedelta(days=today.weekday() + 1)
        return sunday - timedelta(days=6 if unit == "week" else 1), sunday
    if unit == "month":
        end = today.replace(day=1) - timedelta(days=1)
        return end.replace(day=1), end
    return date(today.year - 1, 1, 1), date(today.year - 1, 12, 31)


def _this(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        of_month = UNITS[named_groups(match)["unit"]] == "month"
        yield today - timedelta(days=today.day - 1 if of_month else today.weekday()), today


def _last_season(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        for first, last in _seasons(named_groups(match)["season"], today):
            if last < today:
                yield first, last


def _this_season(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        for first, last in _seasons(named_groups(match)["season"], today):
            if first <= today < last + JUST_BEEN:
                yield first, min(last, today)


def _seasons(name: str, today: date) -> Iterator[DaySpan]:
    """The season of each hemisphere that began last, and that before it if it is not over: where
    the user lives is unknown."""
    for month in (3 + 3 * SEASONS[name], 9 + 3 * SEASONS[name]):
        begun = 12 * today.year + today.month - 1
        begun -= (begun - (month - 1)) % 12
        span = _months(begun)
        yield span
        if span[1] >= today:
            yield _months(begun - 12)


def _months(first: int) -> DaySpan:
    """Three months from one on, which is counted from year 0 on."""
    last = first + 2
    return date(first // 12, first % 12 + 1, 1), _whole_month(last // 12, last % 12 + 1)[1]


def _lately(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for _ in pattern.finditer(text):
        yield _before(today, 1, "fortnight"), today


def _weekday(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        number = WEEKDAYS[named_groups(match)["weekday"]]
        day = today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
        yield day, day


def _month(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        found = named_groups(match)
        month = MONTHS.get(found["month"]) or int(found["month"])
        year = int(found["year"]) if "year" in found else today.year - (month > today.month)
        yield _whole_month(year, month)


def _whole_month(year: int, month: int) -> DaySpan:
    first = date(year, month, 1)
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _year(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    if not _DIGITS.search(text):  # many a text has a word before a year, and no year
        return
    for match in pattern.finditer(text):
        year = int(named_groups(match)["year"])
        yield date(year, 1, 1), date(year, 12, 31)


_READERS = (
    (_AGO, _ago),  # first: "a week ago today"
    (_NEAR, _near),
    (_BEFORE_LAST, _before_last),
    (_LAST, _last),
    (_THIS, _this),
    (_LAST_SEASON, _last_season),
    (_THIS_SEASON, _this_season),
    (_LATELY, _lately),
    (_LAST_WEEKDAY, _weekday),
    (_IN_MONTH, _month),
    (_IN_YEAR, _year),
)

CUES = tuple(chain.from_iterable(pointing.cues for pointing, _ in _READERS))


def terms_of_spans(found: tuple[DaySpan, ...], offset: float = 0.0) -> tuple[bytes, ...]:
    """The terms of passages in these spans: of days for short spans, of months for long ones.

    ``offset`` is the user's from UTC in seconds: unless 0, each span is extended by a day.
    """
    before, after = timedelta(days=offset > 0), timedelta(days=offset < 0)
    terms: dict[bytes, None] = {}
    for first, last in found:
        terms.update(dict.fromkeys(_terms_of_span(first - before, last + after)))
    return tuple(terms)[: MAX_DAYS + MAX_MONTHS]


def _terms_of_span(first: date, last: date) -> Iterator[bytes]:
    if (last - first).days < MAX_DAYS - 3:
        for day in range((last - first).days + 1):
            yield day_term(first + timedelta(days=day))
        return
    month = first.replace(day=1)
    while month <= last:
        yield month_term(month)
        month = (month + timedelta(days=31)).replace(day=1)
