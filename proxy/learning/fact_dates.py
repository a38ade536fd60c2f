"""The dates that a model gives for a fact, checked against when it was said.  Pure; UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from proxy.learning.fact import DAY

EARLIEST, LATEST = 1850, 2200
"""Years that a fact of somebody's life may name."""

FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LAST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The first and the last day that there is a date for."""

_DATE = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?![\d/])")
_NUMBER = re.compile(r"\d+")


def day(text: str) -> float | None:
    """The beginning of a day (YYYY-MM-DD), month or year, in Unix seconds; None: it is none."""
    found = _DATE.match(text)
    if found is None or not EARLIEST <= int(found[1]) <= LATEST:
        return None
    try:
        return datetime(
            int(found[1]), int(found[2] or 1), int(found[3] or 1), tzinfo=UTC
        ).timestamp()
    except ValueError:  # 30 February
        return None


def holds_from(claimed: str, said_at: float, texts: str) -> float:
    """Since when something holds that was said then.

    That it will hold later is believed only if ``texts`` name that day; the rest is a model's
    arithmetic.
    """
    time = day(claimed)
    if time is None or time <= said_at < time + DAY:
        return said_at
    if time > said_at + DAY and not _names(texts, time):
        return said_at
    return time


def holds_until(claimed: str, said_at: float, begins: float) -> float | None:
    """The end of the last day on which something holds; None: for good, as far as is known."""
    time = day(claimed)
    if time is None or time + DAY <= max(begins, said_at - DAY):
        return None
    return time + DAY


def date_text(time: float) -> str:
    """YYYY-MM-DD, of a time that no calendar has the nearest day."""
    return datetime.fromtimestamp(min(max(FIRST, time), LAST), UTC).date().isoformat()


def _names(texts: str, time: float) -> bool:
    """Do they name the year, or the day of the month?"""
    named = set(map(int, (number[:4] for number in _NUMBER.findall(texts))))
    date = datetime.fromtimestamp(time, UTC)
    return date.year in named or date.day in named
