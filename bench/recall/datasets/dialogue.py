"""What LoCoMo's form and those that were made after it have in common: two people who talk.

Sessions are ``session_1``, ``session_2``, …, their days ``session_1_date_time``; turns have names
as "D8:6", and questions labels that are meant as such names.  Some are malformed ("D8:6; D9:17",
"D:11:26", "D30:05", "D4:8-D4:13", "D"): what can be read is repaired, the rest is dropped, and both
are counted.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bench.recall.datasets.labelled import Labelled
from bench.recall.people import (
    LEFT_OUT,
    NO_REPAIRS,
    Person,
    Question,
    Repairs,
    Session,
    Turn,
)

KINDS = {1: "several sessions", 2: "time", 3: "open domain", 4: "single fact"}
ADVERSARIAL = 5
"""Questions whose evidence is not what they ask for."""

MAX_TURNS = 1000
"""Turns of a label that is a span."""

_LABEL = re.compile(r"D\s*:?(\d+):(\d+)(?:\s*-\s*D:?(\d+):(\d+))?")
_SESSION = re.compile(r"session_(\d+)")


def person(
    id: str, conversation: Mapping[str, Any], user: str, qa: Sequence[Mapping[str, Any]], said: str
) -> Labelled:
    """``user`` is the speaker who is the user, ``said`` the field of a turn's text."""
    sessions = tuple(sessions_of(conversation, user, said))
    known = {turn.id for session in sessions for turn in session.turns}
    questions, repairs = _questions(qa, known)
    return Labelled((Person(id, sessions, questions),), repairs)


def sessions_of(conversation: Mapping[str, Any], user: str, said: str) -> Iterator[Session]:
    """In their order; who speaks is named before what is said."""
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        name = f"session_{number}"
        turns = tuple(_turn(turn, user, said) for turn in conversation[name])
        if turns:
            yield Session(name, conversation.get(f"{name}_date_time") or "", turns)


def _turn(turn: Mapping[str, Any], user: str, said: str) -> Turn:
    caption = turn.get("blip_caption")
    photo = f" [photo: {caption}]" if caption else ""
    speaker = turn["speaker"]
    return Turn(turn["dia_id"], "u" if speaker == user else "a", f"{speaker}: {turn[said]}{photo}")


def _questions(
    qa: Sequence[Mapping[str, Any]], known: set[str]
) -> tuple[tuple[Question, ...], Repairs]:
    questions: list[Question] = []
    repairs = NO_REPAIRS
    for number, one in enumerate(qa):
        if one["category"] == ADVERSARIAL:
            repairs = repairs.plus(LEFT_OUT)
            continue
        evidence, made = read_labels(one.get("evidence") or (), known)
        repairs = repairs.plus(made)
        if not evidence:
            repairs = repairs.plus(Repairs(questions=1))
            continue
        kind = KINDS[one["category"]]
        questions.append(Question(f"q{number}", kind, one["question"], tuple(evidence)))
    return tuple(questions), repairs


def read_labels(labels: Sequence[str], known: Collection[str]) -> tuple[list[str], Repairs]:
    """The turns that labels mean, each once, in their order."""
    evidence: dict[str, None] = {}
    repaired = dropped = 0
    for label in labels:
        found = [turn for match in _LABEL.finditer(label) for turn in _meant(match, known)]
        there = [turn for turn in found if turn in known]
        repaired += bool(there) and there != [label]
        dropped += max(1, len(found)) - len(there)
        evidence.update(dict.fromkeys(there))
    return list(evidence), Repairs(repaired, dropped)


def _meant(match: re.Match[str], known: Collection[str]) -> list[str]:
    """One turn, or all of a session from one to another."""
    session, first, other, last = (int(each or 0) for each in match.groups())
    if other != session:
        ends = [f"D{session}:{first}", f"D{other}:{last}"]
        return ends if other else ends[:1]
    between = (f"D{session}:{number}" for number in range(first, min(last, first + MAX_TURNS) + 1))
    return [turn for turn in between if turn in known]
