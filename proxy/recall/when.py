"""The days that a question points at: "yesterday", "last May", "in 2022", "5月3号".  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import islice

from proxy.recall.times import MONTH, MONTHS, YEAR, date_of, day_term, days, month_term

Days = tuple[date, date]
"""The first and the last day of a span."""

MOST_DAYS = 31
"""Days of a span that are asked for one by one; longer spans are asked for by the month."""
MOST_MONTHS = 24
_MOST_DATES = 8

_UNITS = {
    "day": "day days tag tage tagen día días jour jours 天 日",
    "week": "week weeks woche wochen semana semanas semaine semaines 周 星期 週間 週",
    "month": "month months monat monate monaten mes meses mois 月 ヶ月 か月",
    "year": "year years jahr jahre jahren año años an ans année 年",
}
_UNIT = {word: unit for unit, words in _UNITS.items() for word in words.split()}
_NAMES = "|".join(sorted(_UNIT, key=len, reverse=True))
_NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "a an one ein eine einem einer un una une 一",
            "two couple zwei dos deux 两 二 兩",
            "three few drei tres trois 三",
            "four vier cuatro quatre 四",
            "five fünf cinco cinq 五",
            "six sechs seis 六",
        ),
        1,
    )
    for word in words.split()
}
_NUMBER = r"\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday montag lunes lundi 一",
            "tuesday dienstag martes mardi 二",
            "wednesday mittwoch miércoles mercredi 三",
            "thursday donnerstag jueves jeudi 四",
            "friday freitag viernes vendredi 五",
            "saturday samstag sábado samedi 六",
            "sunday sonntag domingo dimanche 日 天",
        )
    )
    for name in names.split()
}
_WEEKDAY = "|".join(name for name in _WEEKDAYS if len(name) > 1)

_NEAR = re.compile(
    r"(?P<d2>\bday before yesterday\b|\bvorgestern\b|\bante ?ayer\b|\bavant-hier\b|前天|一昨日"
    r"|おととい)"
    r"|(?P<d1>\byesterday\b|\blast night\b|\bgestern\b|\bayer\b|\bhier\b(?= (?:soir|matin)|\?)"
    r"|昨天|昨晚|昨日|어제|أمس|\bвчера\b)"
    r"|(?P<d0>\btoday\b|\bthis (?:morning|afternoon|evening)\b|\bheute\b|\bhoy\b|\baujourd'hui\b"
    r"|今天|今日|오늘|اليوم|\bсегодня\b)"
)
_AGO = re.compile(
    rf"\b(?P<n1>{_NUMBER})(?: of)? (?P<u1>{_NAMES}) ago\b"
    rf"|\bvor (?P<n2>{_NUMBER}) (?P<u2>{_NAMES})\b"
    rf"|\bhace (?P<n3>{_NUMBER}) (?P<u3>{_NAMES})\b|\bil y a (?P<n4>{_NUMBER}) (?P<u4>{_NAMES})\b"
    rf"|(?P<n5>\d{{1,3}}|[一二两三四五六])个?(?P<u5>天|日|周|星期|週間|月|ヶ月|か月|年)(?:之?前|以前)"
)
_LAST = re.compile(
    rf"\b(?:last|past|previous|letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?) (?P<u1>{_NAMES})\b"
    rf"|\b(?P<u2>semana|mes|año|semaine|mois|année) (?:pasad[oa]|dernier|dernière|passée?)\b"
    r"|(?P<u3>上个?(?:周|星期|月)|去年|先週|先月|昨年)"
)
_LAST_UNSPACED = {
    "去": "year",
    "昨": "year",
    "周": "week",
    "期": "week",
    "週": "week",
    "月": "month",
}
_LAST_WEEKDAY = re.compile(
    rf"\b(?:last|on|letzte[nm]?|am|el|lundi)?\s*(?P<w>{_WEEKDAY})\b|上周(?P<x>[一二三四五六日天])"
)
_IN_MONTH = re.compile(
    rf"\b(?:in|last|during|since|of|early|late|mid|im|letzten|en|el|de|im)[\s-]+(?P<m1>{MONTH})\b"
    rf"(?:,? (?:of |de )?(?P<y1>{YEAR}))?|\b(?P<m2>{MONTH}),? (?P<y2>{YEAR})\b"
    rf"|(?:(?P<y3>{YEAR})年)?(?P<m3>1[0-2]|[1-9])月(?!\d)"
)
_IN_YEAR = re.compile(
    rf"\b(?:in|during|since|im jahr|en|of)\s+(?P<y>{YEAR})\b|(?P<z>{YEAR})年(?!\d)"
)


def spans(text: str, now: float) -> tuple[Days, ...]:
    """The spans of days that folded text points at, as seen at ``now`` (Unix seconds)."""
    today = date_of(now)
    exact = tuple((day, day) for day in map(date_of, islice(days(text, now), _MOST_DATES)))
    if exact:
        return exact
    for read in (_near, _ago, _last, _weekday, _month, _year):
        found = tuple(read(text, today))
        if found:
            return found
    return ()


def _near(text: str, today: date) -> Iterator[Days]:
    for match in _NEAR.finditer(text):
        day = today - timedelta(days=int((match.lastgroup or "d0")[1:]))
        yield day, day


def _ago(text: str, today: date) -> Iterator[Days]:
    for match in _AGO.finditer(text):
        found = {name[0]: value for name, value in match.groupdict().items() if value}
        number = _NUMBERS.get(found["n"]) or int(found["n"])
        yield _back(today, number, _UNIT[found["u"]])


def _back(today: date, number: int, unit: str) -> Days:
    """So many units ago, and about as exact as people mean it."""
    size = {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
    slack = timedelta(days=size // 2 if size > 1 else 0)
    middle = today - timedelta(days=min(size * number, 36_500))
    return middle - slack, min(today, middle + slack)


def _last(text: str, today: date) -> Iterator[Days]:
    for match in _LAST.finditer(text):
        found = match["u1"] or match["u2"] or match["u3"]
        unit = _UNIT.get(found) or _LAST_UNSPACED.get(found[-1]) or _LAST_UNSPACED[found[0]]
        yield _period(today, unit)


def _period(today: date, unit: str) -> Days:
    """The day, week, month or year before the one that ``today`` is in."""
    if unit == "day":
        return today - timedelta(days=1), today
    if unit == "week":
        monday = today - timedelta(days=today.weekday())
        return monday - timedelta(days=7), monday - timedelta(days=1)
    if unit == "month":
        end = today.replace(day=1) - timedelta(days=1)
        return end.replace(day=1), end
    return date(today.year - 1, 1, 1), date(today.year - 1, 12, 31)


def _weekday(text: str, today: date) -> Iterator[Days]:
    for match in _LAST_WEEKDAY.finditer(text):
        number = _WEEKDAYS[match["w"] or match["x"]]
        day = today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
        yield day, day


def _month(text: str, today: date) -> Iterator[Days]:
    for match in _IN_MONTH.finditer(text):
        found = {name[0]: value for name, value in match.groupdict().items() if value}
        month = MONTHS.get(found["m"]) or int(found["m"])
        year = int(found["y"]) if "y" in found else today.year - (month > today.month)
        yield _whole_month(year, month)


def _whole_month(year: int, month: int) -> Days:
    first = date(year, month, 1)
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _year(text: str, today: date) -> Iterator[Days]:
    for match in _IN_YEAR.finditer(text):
        year = int(match["y"] or match["z"])
        yield date(year, 1, 1), date(year, 12, 31)


def terms(found: tuple[Days, ...]) -> tuple[bytes, ...]:
    """The terms that passages of these spans have: days for short spans, months for long ones."""
    seen: dict[bytes, None] = {}
    for first, last in found:
        seen.update(dict.fromkeys(_terms(first, last)))
    return tuple(seen)[: MOST_DAYS + MOST_MONTHS]


def _terms(first: date, last: date) -> Iterator[bytes]:
    if (last - first).days < MOST_DAYS - 3:
        for day in range((last - first).days + 1):
            yield day_term(first + timedelta(days=day))
        return
    month = first.replace(day=1)
    while month <= last:
        yield month_term(month)
        month = (month + timedelta(days=31)).replace(day=1)
