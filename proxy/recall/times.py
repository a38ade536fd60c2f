"""Dates and times that a text names, as days.  Pure.

Days are counted in UTC: a message near midnight may be a day off, which is why a question's
wording is matched by the day and never by the hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from proxy.recall.packing import term_of

DAY = 86_400.0

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner enero janvier gennaio janeiro januari ene",
            "february feb februar februari febrero février febbraio fevereiro",
            "march mar märz marzo mars março maart",
            "april apr abril avril aprile avr abr",
            "may mai mayo maggio maio mei",
            "june jun juni junio juin giugno junho",
            "july jul juli julio juillet luglio julho",
            "august aug agosto août augustus",
            "september sep sept septiembre septembre settembre setembro",
            "october oct oktober octubre octobre ottobre outubro okt",
            "november nov noviembre novembre novembro",
            "december dec dezember diciembre décembre dicembre dezembro dez dic",
        ),
        1,
    )
    for name in names.split()
}
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
YEAR = r"(?:19|20)\d\d"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"

_DATES = re.compile(
    rf"""
    \b(?P<iso_y>{YEAR})[-/.](?P<iso_m>0?[1-9]|1[0-2])[-/.](?P<iso_d>{_DAY})\b
    | \b(?P<d1>{_DAY})(?:st|nd|rd|th|\.)?[\s-]+(?:of\s+|de\s+)?(?P<m1>{MONTH})\b
      (?:\.?,?[\s-]+(?:de\s+)?(?P<y1>{YEAR})\b)?
    | \b(?P<m2>{MONTH})\.?[\s-]+(?P<d2>{_DAY})(?:st|nd|rd|th)?\b(?:,?[\s-]+(?P<y2>{YEAR})\b)?
    | (?:(?P<y3>{YEAR})年)?(?P<m3>1[0-2]|0?[1-9])月(?P<d3>{_DAY})[日号號]
    """,
    re.IGNORECASE | re.VERBOSE,
)


# Words that tell when, in the languages that recall is tested with.
_TELLS = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|ago|since|(?:last|next|this|past|few|couple(?: of)?"
    rf"|\d+|two|three|four|five|six) (?:day|night|week|weekend|month|year|morning|summer|winter"
    rf"|spring|fall|autumn)s?|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    rf"|gestern|heute|morgen|vorgestern|seit|(?:letzte|nächste|diese)[nrs]? \w+|\w+tags?"
    rf"|ayer|hoy|mañana|hace|desde|(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)"
    rf"|hier|aujourd'hui|demain|depuis|il y a|{YEAR}|{MONTH})\b"
    rf"|[昨今明前后後][天日晚年]|上个?[周月]|下个?[周月]|去年|先[週月]|來?月\d|\d[月日号]|之?前天"
    rf"|أمس|اليوم|غدا|منذ|вчера|сегодня|завтра|назад|어제|오늘|내일",
    re.IGNORECASE,
)


def tells_time(text: str) -> bool:
    """Whether a text tells when something is or was."""
    return _TELLS.search(text) is not None


def days(text: str, now: float) -> Iterator[float]:
    """The days that a text names, in Unix seconds; without a year the last one before ``now``."""
    if not any(map(str.isdigit, text[:4096])):
        return
    for match in _DATES.finditer(text[:4096]):
        found = {
            name.rstrip("123")[-1]: value for name, value in match.groupdict().items() if value
        }
        day = _day(found, now)
        if day is not None:
            yield day


def _day(found: dict[str, str], now: float) -> float | None:
    month = MONTHS.get(found["m"].lower()) or int(found["m"])
    today = date_of(now)
    year = int(found["y"]) if "y" in found else today.year
    try:
        day = date(year, month, int(found["d"]))
        if "y" not in found and day > today + timedelta(days=1):
            day = day.replace(year=year - 1)
    except ValueError:  # 30 February
        return None
    return _seconds(day)


def date_of(seconds: float) -> date:
    """The day of a Unix time; what no calendar has becomes its nearest end."""
    return datetime.fromtimestamp(min(max(0.0, seconds), 2.0**32), UTC).date()


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
