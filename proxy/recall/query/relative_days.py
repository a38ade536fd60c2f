"""Words that name a day relative to the one they were said on ("yesterday").  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import chain
from typing import NamedTuple

from proxy.recall.lexicon.cues import ALL_CUES, Cue, PossibleCues
from proxy.recall.lexicon.language import Dates, Phrases
from proxy.recall.lexicon.loader import (
    LANGUAGES,
    named_groups,
    pattern_of,
    with_numbered_groups,
    with_parts,
    word_pattern,
)
from proxy.recall.query.dates import UNITS, WEEKDAYS, date_of, number_pattern


def _relative(said: Dates) -> Cue:
    words = {
        "two": said.day_before_yesterday,
        "one": said.yesterday,
        "then": said.day_after_tomorrow,
        "next": said.tomorrow,
    }
    parts = {
        "UNIT": word_pattern(said.units.get("day", "").split()),
        "NUMBER": number_pattern(said),
        "WEEKDAY": word_pattern(" ".join(said.weekdays).split()),
    }
    day = (
        rf"(?P<{name}>{pattern_of(of)})(?!['’])" for name, of in words.items() if of != Phrases()
    )
    ahead = (f"(?P<ahead>{with_parts(each, parts)})" for each in said.ahead)
    further = (*ahead, *(with_parts(each, parts) for each in (*said.ago, *said.last_weekday)))
    return Cue(with_numbered_groups((*day, *further)), re.IGNORECASE)


CUES = tuple(_relative(each.dates) for each in LANGUAGES if each.dates.yesterday != Phrases())
"""Each language by itself: nearly all texts are in one."""
_AFTER_TODAY = {"two": -2, "one": -1, "next": 1, "then": 2}
_EXACT = {
    names.split()[0]: number
    for each in LANGUAGES
    for number, names in enumerate(each.dates.numbers, 1)
}
"""The first word for a number is that number; further ones may be about as much ("a few")."""


class RelativeDay(NamedTuple):
    """Words that name a day relative to another ("yesterday"), and the day meant."""

    words: str
    day: date


def relative_days(text: str, now: float, cues: PossibleCues = ALL_CUES) -> Iterator[RelativeDay]:
    """Words that unambiguously name one day relative to ``now`` (Unix seconds).  Linear time."""
    today = date_of(now)
    for match in chain.from_iterable(each.pattern.finditer(text) for each in CUES if each in cues):
        found = {name: words.lower() for name, words in named_groups(match).items()}
        after = _days_after(found, today)
        if after is not None:
            yield RelativeDay(match[0].strip(), today + timedelta(days=after))


def _days_after(found: Mapping[str, str], today: date) -> int | None:
    """The number of days after today, None if that is ambiguous."""
    if "weekday" in found:
        after = (WEEKDAYS[found["weekday"]] - today.weekday()) % 7 - 7
        return after if after < -1 else None  # of yesterday few would say so
    if "unit" not in found:
        (name,) = found
        return _AFTER_TODAY[name]
    number = "" if "more" in found else found.get("number", "")
    exact = int(number) if number.isdecimal() else _EXACT.get(number)
    if not exact or UNITS.get(found["unit"]) != "day":
        return None
    return exact if "ahead" in found else -exact
