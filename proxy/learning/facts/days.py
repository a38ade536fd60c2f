"""Since when and until when something holds: what a model writes, checked against what was said.
Pure.

A day is known only where somebody has told it: models write some day where none is known.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from proxy.recall.query.dates import DAY, MONTHS, TimeMentions, time_mentions

EARLIEST, LATEST = 1850, 2200
"""Years that a fact of somebody's life may name."""

YEAR = 365.25 * DAY

NEAR = 400 * DAY
"""A day that has no year is no further away than that, and so is "last summer"."""

_DATE = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?![\d/])")
_NUMBER = re.compile(r"\d+")
_SHORT_YEAR = re.compile(r"['’](\d\d)\b")
_WORD = re.compile(r"[^\W\d_]+")


class Times(NamedTuple):
    """What a text tells of times: its numbers, of long ones the first four digits, the months that
    it names, years that it writes with two digits, and how it speaks of others."""

    numbers: frozenset[int]
    months: frozenset[int]
    short_years: frozenset[int]
    spoken: TimeMentions


@lru_cache(maxsize=32)
def told_in(text: str) -> Times:
    """Of each message there may be many facts."""
    words = (MONTHS.get(word) for word in _WORD.findall(text.lower()))
    return Times(
        frozenset(int(number[:4]) for number in _NUMBER.findall(text)),
        frozenset(month for month in words if month),
        frozenset(map(int, _SHORT_YEAR.findall(text))),
        time_mentions(text),
    )


def forget() -> None:
    """Clear the cache of texts."""
    told_in.cache_clear()


def day(text: str) -> float | None:
    """The beginning of a day (YYYY-MM-DD), month or year, in Unix seconds; None: it is none."""
    found = _span(text)
    return found[0].timestamp() if found else None


def _span(text: str) -> tuple[datetime, datetime] | None:
    """The beginning of a day, month or year, and that of the next one."""
    found = _DATE.match(text)
    if found is None or not EARLIEST <= int(found[1]) <= LATEST:
        return None
    year, month = int(found[1]), int(found[2] or 1)
    try:
        begins = datetime(year, month, int(found[3] or 1), tzinfo=UTC)
    except ValueError:  # 30 February
        return None
    if found[3]:
        return begins, begins + timedelta(days=1)
    following = (year, month + 1) if found[2] and month < 12 else (year + 1, 1)
    return begins, datetime(*following, 1, tzinfo=UTC)


def holds_from(claimed: str, said_at: float, text: str) -> float | None:
    """Since when something holds that was said then, in a ``text``; None where that is not known.

    The day of the message itself tells nothing: it is what a model writes that knows none.  That
    something will hold later is believed only if the text names that day; the rest is a model's
    arithmetic.
    """
    time = day(claimed)
    if time is None or time <= said_at < time + DAY:
        return None
    later = time > said_at + DAY
    told = told_in(text)
    known = _names(told, time, said_at) or (not later and _may_mean(told, time, said_at))
    return time if known else None


def holds_until(claimed: str, said_at: float, begins: float, text: str) -> float | None:
    """The end of the last day, month or year in which something holds; None: for good, as far as
    is known."""
    found = _span(claimed)
    if found is None:
        return None
    first, end = (each.timestamp() for each in found)
    told = told_in(text)
    known = _names(told, first, said_at) or _may_mean(told, first, said_at)
    return end if known and end > max(begins, said_at - DAY) else None


def _names(told: Times, time: float, said_at: float) -> bool:
    """Is the year named, or, of a day that is near, the day of the month, or of its first day the
    month?"""
    date = datetime.fromtimestamp(time, UTC)
    if date.year in told.numbers or date.year % 100 in told.short_years:
        return True
    if abs(time - said_at) > NEAR:
        return False
    month = date.month in told.months or date.month in told.numbers
    return date.day in told.numbers or (date.day == 1 and month)


def _may_mean(told: Times, time: float, said_at: float) -> bool:
    """May it be counted from words like "yesterday" or "for three years"?"""
    away = abs(time - said_at)
    if away <= NEAR:
        return told.spoken.days
    counts = told.spoken.numbers | told.numbers
    return told.spoken.years and any(abs(away - count * YEAR) <= YEAR for count in counts)
