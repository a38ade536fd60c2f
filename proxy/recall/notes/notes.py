"""What is noted of recalled passages beside their words: which day they mean, and what was said
against them later.  Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

import msgspec

from proxy.recall.notes.slots import replacing_values, slot_values
from proxy.recall.own_words import blank_out, pasted_spans
from proxy.recall.query.dates import date_of, days_of_lines, named_days
from proxy.recall.query.relative_days import RelativeDay, relative_days
from proxy.recall.query.words import TokenizedText, tokenize
from proxy.recall.ranking.packing import FILLS_SLOT, NAMES_DAY
from proxy.recall.results import RecallHit

Notes = defaultdict[int, list[str]]
"""By place among what was found."""

MOST_DAYS = 2
"""Days that are noted of one message."""

MAX_LENGTH = 600
"""Characters; in a longer message is much that was not said on its day."""


def names_relative_day(read: TokenizedText, at: float) -> bool:
    """Whether a user's message of a known time (Unix seconds) names a day by its own, and does not
    say which that is; for the flag of an indexed message."""
    text = read.text
    if len(text) > MAX_LENGTH or not any(relative_days(text, at, read.possible_cues)):
        return False
    return bool(_relative_days_said(text, at)) and not any(named_days(text, at, read.possible_cues))


def with_notes(found: Sequence[RecallHit], now: float) -> list[RecallHit]:
    """The same, with notes on those that need one, as read at ``now`` (seconds on the wall)."""
    flags = {one.flags for one in found}
    notes: Notes = defaultdict(list)
    if any(each & NAMES_DAY for each in flags):
        _note_days(found, now, notes)
    if any(each & FILLS_SLOT for each in flags):
        _note_replaced_values(found, notes)
    return [
        msgspec.structs.replace(one, note="; ".join(notes[at])) if at in notes else one
        for at, one in enumerate(found)
    ]


def _note_days(found: Sequence[RecallHit], now: float, notes: Notes) -> None:
    """Which days are meant.  A passage of today gets no note: its "yesterday" is the reader's."""
    today = date_of(now)
    places = [
        at
        for at, one in enumerate(found)
        if one.flags & NAMES_DAY and date_of(one.local_time) != today
    ]
    # Where a message says what day it is of, nobody knows for which others that holds.
    sessions = {found[at].session for at in places}
    near = (one for one in found if one.session in sessions)
    dated = {one.session for one in near if any(days_of_lines(one.text))}
    for at in places:
        one = found[at]
        if one.session not in dated:
            meant = _relative_days_said(one.text, one.local_time)
            notes[at] += [f"{each.words} = {each.day}" for each in meant]


def _note_replaced_values(found: Sequence[RecallHit], notes: Notes) -> None:
    places = [at for at, one in enumerate(found) if one.flags & FILLS_SLOT]
    # Sessions of one time have no order.
    places.sort(key=lambda at: (found[at].created_at, found[at].session, found[at].seq))
    filled = [(at, each) for at in places for each in slot_values(tokenize(found[at].text))]
    instead = replacing_values([each for _, each in filled])
    for (at, _), value in zip(filled, instead, strict=True):
        if value:
            notes[at].append(f"later: {value}")


def _relative_days_said(text: str, at: float) -> list[RelativeDay]:
    """The days that somebody's own words mean, said at ``at`` (Unix seconds); each word once."""
    own = blank_out(text, pasted_spans(text))
    found = {
        each.words.casefold(): each for each in relative_days(own, at, tokenize(text).possible_cues)
    }
    return list(islice(found.values(), MOST_DAYS))
