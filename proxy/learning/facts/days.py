"""Dates from and until which a fact is valid: a model's, checked against the message.  Pure.

A date counts only if the message supports it: models make up dates where none is known.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from proxy.recall.query.dates import DAY, MONTHS, TimeMentions, time_mentions
from proxy.recall.text_cache import text_cache

EARLIEST, LATEST = 1850, 2200
"""The years that a fact may name."""

YEAR = 365.25 * DAY

NEAR = 400 * DAY
"""The furthest that a day without a year, or "last summer", can be from the message."""

_DATE = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?![\d/])")
_NUMBER = re.compile(r"\d+")
_SHORT_YEAR = re.compile(r"['’](\d\d)\b")
_WORD = re.compile(r"[^\W\d_]+")


class Times(NamedTuple):
    """The times in a text: its numbers (first four digits), months, two-digit years, and relative
    expressions."""

    numbers: frozenset[int]
    months: frozenset[int]
    short_years: frozenset[int]
    spoken: TimeMentions


@text_cache(32)
def times_in(text: str) -> Times:
    """Cached, since many facts may come from one message."""
    words = (MONTHS.get(word) for word in _WORD.findall(text.lower()))
    return Times(
        frozenset(int(number[:4]) for number in _NUMBER.findall(text)),
        frozenset(month for month in words if month),
        frozenset(map(int, _SHORT_YEAR.findall(text))),
        time_mentions(text),
    )


def parse_day(text: str) -> float | None:
    """The beginning of a day (YYYY-MM-DD), month or year in Unix seconds; None for other text."""
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


def valid_from(claimed: str, said_at: float, text: str) -> float | None:
    """The ``claimed`` date in Unix seconds if the message ``text`` supports it, else None.

    The day of the message itself does not count: models write it when they know none.  A future
    date counts only if the text names it, not if it can be computed from relative words.
    """
    time = parse_day(claimed)
    if time is None or time <= said_at < time + DAY:
        return None
    later = time > said_at + DAY
    times = times_in(text)
    known = _is_named(times, time, said_at) or (not later and _is_relative(times, time, said_at))
    return time if known else None


def valid_until(claimed: str, said_at: float, begins: float, text: str) -> float | None:
    """The end of the ``claimed`` last day, month or year if the text supports it, else None."""
    found = _span(claimed)
    if found is None:
        return None
    first, end = (each.timestamp() for each in found)
    times = times_in(text)
    known = _is_named(times, first, said_at) or _is_relative(times, first, said_at)
    return end if known and end > max(begins, said_at - DAY) else None


def _is_named(times: Times, time: float, said_at: float) -> bool:
    """Whether the text names its year; or, if it is near, its day of the month or, for the first
    of a month, its month."""
    date = datetime.fromtimestamp(time, UTC)
    if date.year in times.numbers or date.year % 100 in times.short_years:
        return True
    if abs(time - said_at) > NEAR:
        return False
    month = date.month in times.months or date.month in times.numbers
    return date.day in times.numbers or (date.day == 1 and month)


def _is_relative(times: Times, time: float, said_at: float) -> bool:
    """Whether it can follow from words like "yesterday" or "for three years"."""
    away = abs(time - said_at)
    if away <= NEAR:
        return times.spoken.days
    counts = times.spoken.numbers | times.numbers
    return times.spoken.years and any(abs(away - count * YEAR) <= YEAR for count in counts)
