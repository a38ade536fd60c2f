"""The dates in a text, and the words for days, months, units and numbers.  Pure.

An index has days in UTC; a local day of a user overlaps two of them.  A local time is what clocks
of a zone show, in seconds as if that were UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

from proxy.recall.lexicon.cues import ALL_CUES, AnyCue, AnyOf, Cue, PossibleCues
from proxy.recall.lexicon.folding import UNSPACED
from proxy.recall.lexicon.language import Dates, Phrases
from proxy.recall.lexicon.loader import (
    LANGUAGES,
    alternation,
    lazy_pattern,
    longest_first,
    named_groups,
    patterns,
    phrase_pattern,
    vocabulary,
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

UNITS = {
    word: unit
    for each in LANGUAGES
    for unit, names in each.dates.units.items()
    for word in names.split()
}
NUMBERS = {word: n + 1 for word, n in word_positions(lambda each: each.dates.numbers).items()}
SEASONS = word_positions(lambda each: each.dates.seasons)
WEEKDAYS = word_positions(lambda each: each.dates.weekdays)
WEEKDAY = word_pattern(name for name in WEEKDAYS if len(name) > 1)

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
_TELLS = AnyCue(
    [
        Cue(rf"\b(?:{YEAR}|{MONTH})\b", re.IGNORECASE),
        *(
            Cue(phrase_pattern(lambda each: each.dates.tells, name), re.IGNORECASE)
            for name in dict.fromkeys(
                each.language.name for each in LANGUAGES if each.dates.tells != Phrases()
            )
        ),
    ]
)
"""Each language by itself: nearly all texts are in one."""

CUES = (*_DATES.cues, *_TELLS.cues)

_MAX_CHARACTERS = 4096
"""What is read of a text to find days."""


def number_pattern(said: Dates) -> str:
    """A number in digits, or in the words of a language."""
    return rf"(?:\d{{1,3}}|{word_pattern(' '.join(said.numbers).split())})"


def tells_time(text: str, cues: PossibleCues = ALL_CUES) -> bool:
    """Whether a text tells when something is or was; ``cues``: the cues it may have."""
    return _TELLS.matches(text, cues)


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


_BEFORE_DAY = re.compile(
    rf"\W{{0,5}}(?:[^\W\d_]{{1,20}}\s?[:：]\W{{0,3}})?(?:{WEEKDAY}\W{{1,3}})?", re.IGNORECASE
)
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


_OF_WEEK = re.compile(rf"{WEEKDAY}s?\b", re.IGNORECASE)


def is_weekday(word: str) -> bool:
    """Whether a word names a day of the week ("Mondays"); months are names of people too."""
    return _OF_WEEK.match(word) is not None


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


_UNITS = lazy_pattern(_any_word(UNITS))
_LONG = ("year", "season", "decade")
_YEARS = lazy_pattern(_any_word(word for word in UNITS if UNITS[word] in _LONG))
_DECADES = lazy_pattern(_any_word(word for word in UNITS if UNITS[word] == "decade"))


def _number_words() -> Iterator[str]:
    """The words for numbers, without those that an earlier language has for something else ("on",
    Turkish for ten)."""
    known: set[str] = set()
    for each in LANGUAGES:
        own = set(each.language.stop_words.split())
        yield from set(" ".join(each.dates.numbers).split()) - (known - own)
        known |= own


COUNT = _any_word(_number_words())
_COUNTS = lazy_pattern(COUNT)


def time_mentions(text: str) -> TimeMentions:
    """Takes linear time."""
    years = _YEARS.search(text) is not None
    days = years or _UNITS.search(text) is not None or tells_time(text)
    numbers = (NUMBERS[word] for word in _COUNTS.findall(text.lower())) if years else ()
    many = 10 if years and _DECADES.search(text) else 1
    return TimeMentions(days, years, frozenset(many * number for number in numbers))
