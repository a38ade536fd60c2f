"""The days that a text names, and those that a question points at ("yesterday", "5月3号").  Pure.

An index counts days in UTC, whatever the zone of who asks: a day of theirs is two of its own.  A
time "on the wall" is what clocks of a zone show, in seconds as if that were UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from proxy.recall.lexicon.cues import EVERYTHING, AnyOf, Cue, Seen
from proxy.recall.lexicon.folding import UNSPACED
from proxy.recall.lexicon.language import Dates, Told
from proxy.recall.lexicon.loader import (
    LANGUAGES,
    any_of,
    compiled,
    either,
    filled,
    groups,
    longest_first,
    named,
    numbered,
    one_of,
    pattern_of,
    patterns,
    told,
    vocabulary,
)
from proxy.recall.ranking.packing import term_of

DAY = 86_400.0
"""Seconds."""

MONTHS = {name: place + 1 for name, place in named(lambda each: each.dates.months).items()}
MONTH = one_of(MONTHS)
YEAR = r"(?:19|20)\d\d"
DAY_OF_MONTH = r"(?:0?[1-9]|[12]\d|3[01])"
OF = either(vocabulary(lambda each: each.dates.of))
_ORDINAL = either((*vocabulary(lambda each: each.dates.ordinals), r"\."))

_WRITTEN = (
    rf"\b(?P<year>{YEAR})[-/.](?P<month>0?[1-9]|1[0-2])[-/.](?P<day>{DAY_OF_MONTH})\b",
    rf"\b(?P<day>{DAY_OF_MONTH}){_ORDINAL}?[\s-]+(?:{OF}\s+)?(?P<month>{MONTH})\b"
    rf"(?:\.?,?[\s-]+(?:{OF}\s+)?(?P<year>{YEAR})\b)?",
    rf"\b(?P<month>{MONTH})\.?[\s-]+(?P<day>{DAY_OF_MONTH}){_ORDINAL}?\b"
    rf"(?:,?[\s-]+(?P<year>{YEAR})\b)?",
)
_DATE_PARTS = {"YEAR": YEAR, "DAY": DAY_OF_MONTH}
_OTHERWISE = tuple(filled(each, _DATE_PARTS) for each in patterns(lambda each: each.dates.date))
_DATES = AnyOf((*_WRITTEN, *_OTHERWISE), re.IGNORECASE)
_TELLS = (
    Cue(rf"\b(?:{YEAR}|{MONTH})\b", re.IGNORECASE),
    *(
        Cue(told(lambda each: each.dates.tells, name), re.IGNORECASE)
        for name in dict.fromkeys(
            each.language.name for each in LANGUAGES if each.dates.tells != Told()
        )
    ),
)
"""Each language by itself: nearly all texts are in one."""


_MOST_CHARACTERS = 4096
"""What is read of a text to find days."""


def tells_time(text: str, seen: Seen = EVERYTHING) -> bool:
    """Whether a text tells when something is or was; ``seen``: the cues it may have."""
    return any(each.search(text, seen) for each in _TELLS)


def days(text: str, now: float, seen: Seen = EVERYTHING) -> Iterator[float]:
    """The days that a text names, in Unix seconds; without a year the last one before ``now``."""
    seen = seen if len(text) <= _MOST_CHARACTERS else EVERYTHING
    text = text[:_MOST_CHARACTERS]
    dates = _DATES.within(seen)
    if dates is None or not any(map(str.isdigit, text)):
        return
    for match in dates.finditer(text):
        day = _day(groups(match), now)
        if day is not None:
            yield day


_LONGEST_ABOVE = 60
"""Characters at the beginning of a line in which the day must stand that it is of."""


def days_above(text: str) -> Iterator[float]:
    """The days that lines begin with ("[8 May 2023] Kai: hello", "Date: 2023-05-08"), in their
    order, in Unix seconds: what follows was said or written then.  Linear.

    Only a label or a day of the week may stand before them, and the year must be there.
    """
    for line in text.split("\n"):
        start = line[:_LONGEST_ABOVE]
        found = _DATES.pattern.search(start) if any(map(str.isdigit, start)) else None
        if found is None or "year" not in groups(found):
            continue
        day = _day(groups(found), 0.0)
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
    """The day of a Unix time; what no calendar has becomes its nearest end."""
    return _calendar(seconds, UTC).date()


def ahead(seconds: float, zone: tzinfo | None) -> float:
    """By how many seconds the clocks of a zone are ahead of UTC at a Unix time; None is UTC."""
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


Days = tuple[date, date]
"""The first and the last day of a span."""

MOST_DAYS = 31
"""Days of a span that are asked for one by one; longer spans are asked for by the month."""
MOST_MONTHS = 24
_MOST_DATES = 8

_UNIT = {
    word: unit
    for each in LANGUAGES
    for unit, names in each.dates.units.items()
    for word in names.split()
}
_NUMBERS = {word: place + 1 for word, place in named(lambda each: each.dates.numbers).items()}
_WEEKDAYS = named(lambda each: each.dates.weekdays)
_WEEKDAY = one_of(name for name in _WEEKDAYS if len(name) > 1)
_PARTS = {
    "NUMBER": rf"(?:\d{{1,3}}|{one_of(_NUMBERS)})",
    "UNIT": one_of(_UNIT),
    "YEAR": YEAR,
}
_BEFORE_MONTH = any_of(lambda each: each.dates.before_month)
_BEFORE_YEAR = any_of(lambda each: each.dates.before_year)


def _compiled(*found: str) -> AnyOf:
    return AnyOf(filled(each, _PARTS) for each in found)


_BEFORE_DAY = re.compile(
    rf"\W{{0,5}}(?:[^\W\d_]{{1,20}}\s?[:：]\W{{0,3}})?(?:{_WEEKDAY}\W{{1,3}})?", re.IGNORECASE
)

_NEAR = _compiled(
    f"(?P<two>{told(lambda each: each.dates.day_before_yesterday)})",
    f"(?P<one>{told(lambda each: each.dates.yesterday)})",
    f"(?P<none>{told(lambda each: each.dates.today)})",
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
        "UNIT": one_of(said.units.get("day", "").split()),
        "NUMBER": rf"(?:\d{{1,3}}|{one_of(' '.join(said.numbers).split())})",
        "WEEKDAY": one_of(" ".join(said.weekdays).split()),
    }
    day = (
        rf"(?P<{name}>{pattern_of(each)})(?!['’])" for name, each in words.items() if each != Told()
    )
    further = (filled(each, parts) for each in (*said.ago, *said.last_weekday))
    return Cue(numbered((*day, *further)), re.IGNORECASE)


_RELATIVE = tuple(_relative(each.dates) for each in LANGUAGES if each.dates.yesterday != Told())
"""Each language by itself: nearly all texts are in one."""
_AFTER_TODAY = {"two": -2, "one": -1, "next": 1, "then": 2}
_EXACT = {
    names.split()[0]: number
    for each in LANGUAGES
    for number, names in enumerate(each.dates.numbers, 1)
}
"""The first word for a number is that number; further ones may be about as much ("a few")."""


class Spoken(NamedTuple):
    """Does a text speak of times without dates, of years, and by which words for numbers?"""

    days: bool
    years: bool
    numbers: frozenset[int]


def _any_word(found: Iterable[str]) -> str:
    """Any of these words, in scripts without spaces anywhere, as a pattern."""
    words = set(found)
    together = {word for word in words if re.match(f"[{UNSPACED}]", word)}
    return rf"(?i:\b{longest_first(words - together)}\b|{longest_first(together)})"


_UNITS = compiled(_any_word(_UNIT))
_YEARS = compiled(_any_word(word for word in _UNIT if _UNIT[word] in ("year", "season")))
COUNT = _any_word(_NUMBERS)
_COUNTS = compiled(COUNT)


def spoken_of(text: str) -> Spoken:
    """Linear."""
    years = _YEARS.search(text) is not None
    days = years or _UNITS.search(text) is not None or tells_time(text)
    numbers = (_NUMBERS.get(word) for word in _COUNTS.findall(text.lower())) if years else ()
    return Spoken(days, years, frozenset(filter(None, numbers)))


class Relative(NamedTuple):
    """Words that name a day by another, and which they mean."""

    words: str
    day: date


def relative_days(text: str, now: float, seen: Seen = EVERYTHING) -> Iterator[Relative]:
    """Words that name one day as seen from ``now`` (Unix seconds); none where it may be another.
    Linear."""
    today = date_of(now)
    for match in chain.from_iterable(
        each.pattern.finditer(text) for each in _RELATIVE if each in seen
    ):
        after = _days_after({name: words.lower() for name, words in groups(match).items()}, today)
        if after is not None:
            yield Relative(match[0].strip(), today + timedelta(days=after))


def _days_after(found: Mapping[str, str], today: date) -> int | None:
    """So many days after today, None where that is not sure."""
    if "weekday" in found:
        after = (_WEEKDAYS[found["weekday"]] - today.weekday()) % 7 - 7
        return after if after < -1 else None  # of yesterday few would say so
    if "unit" not in found:
        (name,) = found
        return _AFTER_TODAY[name]
    number = found["number"]
    exact = int(number) if number.isdecimal() else _EXACT.get(number)
    return -exact if exact and _UNIT.get(found["unit"]) == "day" else None


def spans(text: str, now: float, seen: Seen = EVERYTHING) -> tuple[Days, ...]:
    """The spans of days that folded text points at, each once, seen at ``now`` (Unix seconds)."""
    today = date_of(now)
    exact = tuple((day, day) for day in map(date_of, islice(days(text, now, seen), _MOST_DATES)))
    if exact:
        return exact
    for pointing, read in _READERS:
        pattern = pointing.within(seen)
        found = tuple(dict.fromkeys(read(pattern, text, today))) if pattern else ()
        if found:
            return found
    return ()


def _near(pattern: re.Pattern[str], text: str, today: date) -> Iterator[Days]:
    for match in pattern.finditer(text):
        (name,) = groups(match)
        day = today - timedelta(days=_BEFORE_TODAY[name])
        yield day, day


def _ago(pattern: re.Pattern[str], text: str, today: date) -> Iterator[Days]:
    for match in pattern.finditer(text):
        found = groups(match)
        number = _NUMBERS.get(found["number"]) or int(found["number"])
        yield _back(today, number, _UNIT[found["unit"]])


def _back(today: date, number: int, unit: str) -> Days:
    """So many units ago, and about as exact as people mean it."""
    if unit == "weekend":
        return _period(today - timedelta(weeks=max(1, number) - 1), unit)
    if unit == "season":  # of either hemisphere: the last one ended today or nine months ago
        begun, ended = 365 * number + 92, 365 * max(0, number - 1)
        return today - timedelta(days=begun), today - timedelta(days=ended)
    size = {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
    slack = timedelta(days=size // 2 if size > 1 else 0)
    middle = today - timedelta(days=min(size * number, 36_500))
    return middle - slack, min(today, middle + slack)


def _last(pattern: re.Pattern[str], text: str, today: date) -> Iterator[Days]:
    for match in pattern.finditer(text):
        yield _period(today, _UNIT[groups(match)["unit"]])


def _period(today: date, unit: str) -> Days:
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


def _this(pattern: re.Pattern[str], text: str, today: date) -> Iterator[Days]:
    for match in pattern.finditer(text):
        of_month = _UNIT[groups(match)["unit"]] == "month"
        yield today - timedelta(days=today.day - 1 if of_month else today.weekday()), today


def _weekday(pattern: re.Pattern[str], text: str, today: date) -> Iterator[Days]:
    for match in pattern.finditer(text):
        number = _WEEKDAYS[groups(match)["weekday"]]
        day = today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
        yield day, day


def _month(pattern: re.Pattern[str], text: str, today: date) -> Iterator[Days]:
    for match in pattern.finditer(text):
        found = groups(match)
        month = MONTHS.get(found["month"]) or int(found["month"])
        year = int(found["year"]) if "year" in found else today.year - (month > today.month)
        yield _whole_month(year, month)


def _whole_month(year: int, month: int) -> Days:
    first = date(year, month, 1)
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _year(pattern: re.Pattern[str], text: str, today: date) -> Iterator[Days]:
    if not _DIGITS.search(text):  # many a text has a word before a year, and no year
        return
    for match in pattern.finditer(text):
        year = int(groups(match)["year"])
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
"""Those of days, and of telling a time."""


def terms_of_spans(found: tuple[Days, ...], offset: float = 0.0) -> tuple[bytes, ...]:
    """The terms that passages of these spans have: days for short spans, months for long ones.

    Of who is ``offset`` seconds ahead of UTC a day begins or ends on another of the index.
    """
    before, after = timedelta(days=offset > 0), timedelta(days=offset < 0)
    seen: dict[bytes, None] = {}
    for first, last in found:
        seen.update(dict.fromkeys(_terms_of_span(first - before, last + after)))
    return tuple(seen)[: MOST_DAYS + MOST_MONTHS]


def _terms_of_span(first: date, last: date) -> Iterator[bytes]:
    if (last - first).days < MOST_DAYS - 3:
        for day in range((last - first).days + 1):
            yield day_term(first + timedelta(days=day))
        return
    month = first.replace(day=1)
    while month <= last:
        yield month_term(month)
        month = (month + timedelta(days=31)).replace(day=1)
