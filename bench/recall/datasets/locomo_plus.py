"""LoCoMo-Plus (Li et al. 2026): github.com/xjtuleeyf/Locomo-Plus, data/locomo_plus.json.

A cue is said in a session of its own, in the midst of one of LoCoMo's conversations.  Weeks or
months later a trigger bears on it, and shares hardly a word with it.  The authors draw a
conversation for each cue at random; here the n-th gets the n-th, over and over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bench.recall.datasets.dialogue import sessions_of
from bench.recall.datasets.document import Document, fields
from bench.recall.datasets.labelled import Labelled
from bench.recall.people import Person, Question, Session, Turn

CONVERSATIONS = "locomo10.json"
AFTER = timedelta(days=7)
"""From the last session to the trigger, as the authors have it."""

COMPARED_CHARACTERS = "cue"
_DATE = "%I:%M %p on %d %B, %Y"
_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_GAP = re.compile(rf"\b(\d+|an?|{_NUMBERS})\s+(week|month|year)s?\b")
_DAYS = {"week": 7, "month": 30, "year": 365}


def knows(document: Document) -> bool:
    return all(
        fields(item, "cue_dialogue", "trigger_query", "time_gap") for item in document.records
    )


def people(document: Document) -> Labelled:
    """A person a cue; speaker A is the user, who says the cue and the trigger."""
    conversations = [sample["conversation"] for sample in document.beside(CONVERSATIONS)]
    return Labelled(
        tuple(
            _person(f"cue-{number}", item, conversations[number % len(conversations)])
            for number, item in enumerate(document.records)
        )
    )


def _person(id: str, item: Mapping[str, Any], conversation: Mapping[str, Any]) -> Person:
    names = {"A": conversation["speaker_a"], "B": conversation["speaker_b"]}
    sessions = tuple(sessions_of(conversation, names["A"], "text"))
    cue = _turns(item["cue_dialogue"], names)
    evidence = tuple(turn.id for turn in cue if turn.by == "u")
    (trigger, *_) = _turns(item["trigger_query"], names)
    return Person(
        id,
        _with_cue(sessions, cue, gap(item["time_gap"])),
        (Question("trigger", item["relation_type"], trigger.text, evidence),),
    )


def _turns(text: str, names: Mapping[str, str]) -> tuple[Turn, ...]:
    """Lines that begin with "A:" or "B:"; others go on."""
    lines = [line.strip() for line in re.split(r"\n(?=\s*[AB]:)", text.strip())]
    return tuple(
        Turn(
            f"{COMPARED_CHARACTERS}:{number}",
            "u" if line[0] == "A" else "a",
            f"{names[line[0]]}:{line[2:]}",
        )
        for number, line in enumerate(lines)
    )


def _with_cue(
    sessions: Sequence[Session], cue: tuple[Turn, ...], before: timedelta
) -> tuple[Session, ...]:
    """The cue behind all sessions that are not later."""
    days = [datetime.strptime(session.date, _DATE) for session in sessions]
    said = days[-1] + AFTER - before
    place = sum(day <= said for day in days)
    return (
        *sessions[:place],
        Session(COMPARED_CHARACTERS, said.strftime(_DATE), cue),
        *sessions[place:],
    )


def gap(text: str) -> timedelta:
    """What "about two weeks later" means; nothing where there is no number, as the authors do."""
    found = _GAP.search(text.lower())
    if found is None:
        return timedelta()
    number, unit = found.groups()
    words = _NUMBERS.split("|")
    count = words.index(number) + 1 if number in words else int(number) if number.isdigit() else 1
    return timedelta(days=count * _DAYS[unit])
