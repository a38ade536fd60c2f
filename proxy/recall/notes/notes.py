"""Notes on recalled passages: the dates of the days that they name, and values that later messages
have replaced.  Pure."""

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
"""By index in the list of hits."""

MAX_DAYS = 2
"""Days in the note of one message."""

MAX_LENGTH = 600
"""Characters; in a longer message much was not said on its day."""


def names_relative_day(read: TokenizedText, at: float) -> bool:
    """Whether a user's message sent at ``at`` (Unix seconds) names a day relative to its own
    ("yesterday") and no date; for the flag of an indexed message."""
    text = read.text
    if len(text) > MAX_LENGTH or not any(relative_days(text, at, read.possible_cues)):
        return False
    return bool(_relative_days_said(text, at)) and not any(named_days(text, at, read.possible_cues))


def with_notes(found: Sequence[RecallHit], now: float) -> list[RecallHit]:
    """The hits, with notes on those that need one; ``now`` in seconds as if local time were UTC."""
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
    """Note the dates of relative days.  Passages of today need none."""
    today = date_of(now)
    places = [
        at
        for at, one in enumerate(found)
        if one.flags & NAMES_DAY and date_of(one.local_time) != today
    ]
    # If a message gives the date of its own day, it is unknown for which others that holds.
    sessions = {found[at].session for at in places}
    near = (one for one in found if one.session in sessions)
    dated = {one.session for one in near if any(days_of_lines(one.text))}
    for at in places:
        one = found[at]
        if one.session not in dated:
            days = _relative_days_said(one.text, one.local_time)
            notes[at] += [f"{each.words} = {each.day}" for each in days]


def _note_replaced_values(found: Sequence[RecallHit], notes: Notes) -> None:
    places = [at for at, one in enumerate(found) if one.flags & FILLS_SLOT]
    # By session too, since sessions with the same time have no order.
    places.sort(key=lambda at: (found[at].created_at, found[at].session, found[at].seq))
    filled = [(at, each) for at in places for each in slot_values(tokenize(found[at].text))]
    instead = replacing_values([each for _, each in filled])
    for (at, _), value in zip(filled, instead, strict=True):
        if value:
            notes[at].append(f"later: {value}")


def _relative_days_said(text: str, at: float) -> list[RelativeDay]:
    """The relative days in the author's own words, said at ``at`` (Unix seconds), each once."""
    own = blank_out(text, pasted_spans(text))
    found = {
        each.words.casefold(): each for each in relative_days(own, at, tokenize(text).possible_cues)
    }
    return list(islice(found.values(), MAX_DAYS))
