"""The dates in a text, and the spans of days that a question refers to ("yesterday").  Pure.

An index has days in UTC; a local day of a user overlaps two of them.  A local time is what clocks
of a zone show, in seconds as if that were UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from proxy.recall.lexicon.cues import ALL_CUES, AnyOf, Cue, PossibleCues
from proxy.recall.lexicon.folding import UNSPACED
from proxy.recall.lexicon.language import Dates, Phrases
from proxy.recall.lexicon.loader import (
    LANGUAGES,
    alternation,
    any_of,
    lazy_pattern,
    longest_first,
    named_groups,
    pattern_of,
    patterns,
    phrase_pattern,
    vocabulary,
    with_numbered_groups,
    with_parts,
    word_pattern,
    word_positions,
)
from proxy.recall.ranking.packing import term_of

DAY = 86_400.0
"""Seconds."""

MONTHS = {name: n + 1 for name, n in word_positions(lambda each: each.dates.months).items()}
MONTH = word_pattern(MONTHS)
YEAR = r"(?:19|20)\d\d"
DAY_OF_MONTH = r"(?:0?[1-9]|[12]\d|3[01])"
OF = alternation(vocabulary(lambda each: each.dates.of))
_ORDINAL = alternation((*vocabulary(lambda each: each.dates.ordinals), r"\."))

_WRITTEN = (
    rf"\b(?P<year>{YEAR})[-/.](?P<month>0?[1-9]|1[0-2])[-/.](?P<day>{DAY_OF_MONTH})\b",
    rf"\b(?P<day>{DAY_OF_MONTH}){_ORDINAL}?[\s-]+(?:{OF}\s+)?(?P<month>{MONTH})\b"
    rf"(?:\.?,?[\s-]+(?:{OF}\s+)?(?P<year>{YEAR})\b)?",
    rf"\b(?P<month>{MONTH})\.?[\s-]+(?P<day>{DAY_OF_MONTH}){_ORDINAL}?\b"
    rf"(?:,?[\s-]+(?P<year>{YEAR})\b)?",
)
_DATE_PARTS = {"YEAR": YEAR, "DAY": DAY_OF_MONTH}
_OTHERWISE = tuple(with_parts(each, _DATE_PARTS) for each in patterns(lambda each: each.dates.date))
_DATES = AnyOf((*_WRITTEN, *_OTHERWISE), re.IGNORECASE)
_TELLS = (
    Cue(rf"\b(?:{YEAR}|{MONTH})\b", re.IGNORECASE),
    *(
        Cue(phrase_pattern(lambda each: each.dates.tells, name), re.IGNORECASE)
        for name in dict.fromkeys(
            each.language.name for each in LANGUAGES if each.dates.tells != Phrases()
        )
    ),
)
"""Each language by itself: nearly all texts are in one."""

_MAX_CHARACTERS = 4096
"""What is read of a text to find days."""


def tells_time(text: str, cues: PossibleCues = ALL_CUES) -> bool:
    """Whether a text tells when something is or was; ``cues``: the cues it may have."""
    return any(each.search(text, cues) for each in _TELLS)


def named_days(text: str, now: float, cues: PossibleCues = ALL_CUES) -> Iterator[float]:
    """The days that a text names, in Unix seconds; without a year the last one before ``now``."""
    cues = cues if len(text) <= _MAX_CHARACTERS else ALL_CUES
    text = text[:_MAX_CHARACTERS]
    dates = _DATES.possible_pattern(cues)
    if dates is None or not any(map(str.isdigit, text)):
        return
    for match in dates.finditer(text):
        day = _day(named_groups(match), now)
        if day is not None:
            yield day


_MAX_HEADING = 60
"""Characters at the beginning of a line in which the day must stand that it is of."""


def days_of_lines(text: str) -> Iterator[float]:
    """The dates that lines begin with ("[8 May 2023] Kai: hello", "Date: 2023-05-08"), in their
    order, in Unix seconds: the time of the text that follows.  Takes linear time.

    Only a label or a day of the week may stand before a date, and it must have a year.
    """
    for line in text.split("\n"):
        start = line[:_MAX_HEADING]
        found = _DATES.pattern.search(start) if any(map(str.isdigit, start)) else None
        if found is None or "year" not in named_groups(found):
            continue
        day = _day(named_groups(found), 0.0)
        if day is not None and _BEFORE_DAY.fullmatch(start, 0, found.start()):
            yield day


def _day(found: dict[str, str], now: float) -> float | None:
    month = MONTHS.get(found["month"].lower()) or int(found["month"])
    today = date_of(now)
    year = int(found["year"]) if "year" in found else today.year
    try:
        day = date(year, month, int(found["day"]))
        if "year" not in found and day > today + timedelta(days=1):
            day = day.replace(year=year - 1)
    except ValueError:  # 30 February
        return None
    return _seconds(day)


def date_of(seconds: float) -> date:
    """The day of a Unix time in UTC, which is clamped to the years 1970 to 2106."""
    return _calendar(seconds, UTC).date()


def utc_offset(seconds: float, zone: tzinfo | None) -> float:
    """A zone's offset from UTC at a Unix time, in seconds, positive in the east; None is UTC."""
    offset = _calendar(seconds, zone).utcoffset() if zone else None
    return offset.total_seconds() if offset else 0.0


def _calendar(seconds: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(min(max(0.0, seconds), 2.0**32), zone)


def _seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def terms_of_days(seconds: Iterable[float]) -> set[bytes]:
    """The terms under which passages of these days are found: one a day, one a month."""
    return {each for second in seconds for each in _terms_of_day(int(second // DAY))}


@lru_cache(maxsize=4096)
def _terms_of_day(number: int) -> tuple[bytes, bytes]:
    day = date_of(number * DAY)
    return day_term(day), month_term(day)


def day_term(day: date) -> bytes:
    return term_of(f"\0day {day:%Y-%m-%d}")


def month_term(day: date) -> bytes:
    return term_of(f"\0month {day:%Y-%m}")


DaySpan = tuple[date, date]
"""The first and the last day of a span."""

MAX_DAYS = 31
"""Days of a span that are asked for one by one; longer spans are asked for by the month."""
MAX_MONTHS = 24
_MAX_DATES = 8

_UNIT = {
    word: unit
    for each in LANGUAGES
    for unit, names in each.dates.units.items()
    for word in names.split()
}
_NUMBERS = {word: n + 1 for word, n in word_positions(lambda each: each.dates.numbers).items()}
_WEEKDAYS = word_positions(lambda each: each.dates.weekdays)
_WEEKDAY = word_pattern(name for name in _WEEKDAYS if len(name) > 1)
_PARTS = {
    "NUMBER": rf"(?:\d{{1,3}}|{word_pattern(_NUMBERS)})",
    "UNIT": word_pattern(_UNIT),
    "YEAR": YEAR,
}
_BEFORE_MONTH = any_of(lambda each: each.dates.before_month)
_BEFORE_YEAR = any_of(lambda each: each.dates.before_year)


def _compiled(*found: str) -> AnyOf:
    return AnyOf(with_parts(each, _PARTS) for each in found)


_BEFORE_DAY = re.compile(
    rf"\W{{0,5}}(?:[^\W\d_]{{1,20}}\s?[:：]\W{{0,3}})?(?:{_WEEKDAY}\W{{1,3}})?", re.IGNORECASE
)

_NEAR = _compiled(
    f"(?P<two>{phrase_pattern(lambda each: each.dates.day_before_yesterday)})",
    f"(?P<one>{phrase_pattern(lambda each: each.dates.yesterday)})",
    f"(?P<none>{phrase_pattern(lambda each: each.dates.today)})",
)
_BEFORE_TODAY = {"none": 0, "one": 1, "two": 2}
_AGO = _compiled(*patterns(lambda each: each.dates.ago))
_LAST = _compiled(*patterns(lambda each: each.dates.last))
_THIS = _compiled(*patterns(lambda each: each.dates.this))
_LAST_WEEKDAY = _compiled(
    rf"\b(?P<weekday>{_WEEKDAY})\b", *patterns(lambda each: each.dates.weekday)
)
_IN_MONTH = _compiled(
    rf"\b{_BEFORE_MONTH}[\s-]+(?P<month>{MONTH})\b(?:,? (?:{OF} )?(?P<year>{YEAR}))?",
    rf"\b(?P<month>{MONTH}),? (?P<year>{YEAR})\b",
    *patterns(lambda each: each.dates.month),
)
_DIGITS = re.compile(r"\d\d")
_IN_YEAR = _compiled(
    rf"\b{_BEFORE_YEAR}\s+(?P<year>{YEAR})\b", *patterns(lambda each: each.dates.year)
)


_OF_WEEK = re.compile(rf"{_WEEKDAY}s?\b", re.IGNORECASE)


def is_weekday(word: str) -> bool:
    """Whether a word names a day of the week ("Mondays"); months are names of people too."""
    return _OF_WEEK.match(word) is not None


def _relative(said: Dates) -> Cue:
    words = {
        "two": said.day_before_yesterday,
        "one": said.yesterday,
        "then": said.day_after_tomorrow,
        "next": said.tomorrow,
    }
    parts = {
        "UNIT": word_pattern(said.units.get("day", "").split()),
        "NUMBER": rf"(?:\d{{1,3}}|{word_pattern(' '.join(said.numbers).split())})",
        "WEEKDAY": word_pattern(" ".join(said.weekdays).split()),
    }
    day = (
        rf"(?P<{name}>{pattern_of(of)})(?!['’])" for name, of in words.items() if of != Phrases()
    )
    further = (with_parts(each, parts) for each in (*said.ago, *said.last_weekday))
    return Cue(with_numbered_groups((*day, *further)), re.IGNORECASE)


_RELATIVE = tuple(_relative(each.dates) for each in LANGUAGES if each.dates.yesterday != Phrases())
"""Each language by itself: nearly all texts are in one."""
_AFTER_TODAY = {"two": -2, "one": -1, "next": 1, "then": 2}
_EXACT = {
    names.split()[0]: number
    for each in LANGUAGES
    for number, names in enumerate(each.dates.numbers, 1)
}
"""The first word for a number is that number; further ones may be about as much ("a few")."""


class TimeMentions(NamedTuple):
    """Whether a text mentions times without dates, and years, and its number words as numbers."""

    days: bool
    years: bool
    numbers: frozenset[int]


def _any_word(found: Iterable[str]) -> str:
    """Any of these words, in scripts without spaces anywhere, as a pattern."""
    words = set(found)
    together = {word for word in words if re.match(f"[{UNSPACED}]", word)}
    return rf"(?i:\b{longest_first(words - together)}\b|{longest_first(together)})"


_UNITS = lazy_pattern(_any_word(_UNIT))
_YEARS = lazy_pattern(_any_word(word for word in _UNIT if _UNIT[word] in ("year", "season")))
COUNT = _any_word(_NUMBERS)
_COUNTS = lazy_pattern(COUNT)


def time_mentions(text: str) -> TimeMentions:
    """Takes linear time."""
    years = _YEARS.search(text) is not None
    days = years or _UNITS.search(text) is not None or tells_time(text)
    numbers = (_NUMBERS.get(word) for word in _COUNTS.findall(text.lower())) if years else ()
    return TimeMentions(days, years, frozenset(filter(None, numbers)))


class RelativeDay(NamedTuple):
    """Words that name a day relative to another ("yesterday"), and the day meant."""

    words: str
    day: date


def relative_days(text: str, now: float, cues: PossibleCues = ALL_CUES) -> Iterator[RelativeDay]:
    """Words that unambiguously name one day relative to ``now`` (Unix seconds).  Linear time."""
    today = date_of(now)
    for match in chain.from_iterable(
        each.pattern.finditer(text) for each in _RELATIVE if each in cues
    ):
        found = {name: words.lower() for name, words in named_groups(match).items()}
        after = _days_after(found, today)
        if after is not None:
            yield RelativeDay(match[0].strip(), today + timedelta(days=after))


def _days_after(found: Mapping[str, str], today: date) -> int | None:
    """The number of days after today, None if that is ambiguous."""
    if "weekday" in found:
        after = (_WEEKDAYS[found["weekday"]] - today.weekday()) % 7 - 7
        return after if after < -1 else None  # of yesterday few would say so
    if "unit" not in found:
        (name,) = found
        return _AFTER_TODAY[name]
    number = found["number"]
    exact = int(number) if number.isdecimal() else _EXACT.get(number)
    return -exact if exact and _UNIT.get(found["unit"]) == "day" else None


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
        number = _NUMBERS.get(found["number"]) or int(found["number"])
        yield _span_ago(today, number, _UNIT[found["unit"]])


def _span_ago(today: date, number: int, unit: str) -> DaySpan:
    """The span that "so many units ago" means, as vague as people use it: weeks by 3 days."""
    if unit == "weekend":
        return _period(today - timedelta(weeks=max(1, number) - 1), unit)
    if unit == "season":  # of either hemisphere: the last one ended today or nine months ago
        begun, ended = 365 * number + 92, 365 * max(0, number - 1)
        return today - timedelta(days=begun), today - timedelta(days=ended)
    size = {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
    slack = timedelta(days=size // 2 if size > 1 else 0)
    middle = today - timedelta(days=min(size * number, 36_500))
    return middle - slack, min(today, middle + slack)


def _last(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        yield _period(today, _UNIT[named_groups(match)["unit"]])


def _period(today: date, unit: str) -> DaySpan:
    """The day, week, weekend, month or year before the one that ``today`` is in."""
    if unit == "day":
        return today - timedelta(days=1), today
    if unit in ("week", "weekend"):
        sunday = today - timedelta(days=today.weekday() + 1)
        return sunday - timedelta(days=6 if unit == "week" else 1), sunday
    if unit == "month":
        end = today.replace(day=1) - timedelta(days=1)
        return end.replace(day=1), end
    return date(today.year - 1, 1, 1), date(today.year - 1, 12, 31)


def _this(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        of_month = _UNIT[named_groups(match)["unit"]] == "month"
        yield today - timedelta(days=today.day - 1 if of_month else today.weekday()), today


def _weekday(pattern: re.Pattern[str], text: str, today: date) -> Iterator[DaySpan]:
    for match in pattern.finditer(text):
        number = _WEEKDAYS[named_groups(match)["weekday"]]
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
    (_NEAR, _near),
    (_AGO, _ago),
    (_LAST, _last),
    (_THIS, _this),
    (_LAST_WEEKDAY, _weekday),
    (_IN_MONTH, _month),
    (_IN_YEAR, _year),
)

CUES = (
    *_DATES.cues,
    *_RELATIVE,
    *_TELLS,
    *chain.from_iterable(pointing.cues for pointing, _ in _READERS),
)
"""All cues of this module."""


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
