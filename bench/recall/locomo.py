"""LoCoMo's own JSON (github.com/snap-research/locomo, data/locomo10.json) as records of our form.

Its licence is CC BY-NC 4.0; nothing of it is here.  Adversarial questions (category 5) are left
out: their evidence is not what the question asks for.  Some labels are malformed ("D8:6; D9:17",
"D:11:26", "D30:05", "D"): what can be read is repaired, the rest is dropped, and both are counted.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

KINDS = {1: "several sessions", 2: "time", 3: "open domain", 4: "single fact"}
ADVERSARIAL = 5

_TURN = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")


class Repairs(NamedTuple):
    """``repaired`` labels were read another way, ``dropped`` ones lead nowhere, and ``questions``
    had no evidence left and were not asked."""

    repaired: int = 0
    dropped: int = 0
    questions: int = 0

    def plus(self, other: Repairs) -> Repairs:
        return Repairs(*(a + b for a, b in zip(self, other, strict=True)))


NO_REPAIRS = Repairs()


def convert(samples: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], Repairs]:
    """A record a sample, in the form that ``people`` reads.  Raises KeyError for other files."""
    repairs, records = NO_REPAIRS, []
    for number, sample in enumerate(samples):
        sessions = list(_sessions(sample["conversation"]))
        known = {turn[0] for session in sessions for turn in session["turns"]}
        questions, made = _questions(sample["qa"], known)
        name = str(sample.get("sample_id") or number)
        records.append({"id": name, "sessions": sessions, "questions": questions})
        repairs = repairs.plus(made)
    return records, repairs


def _sessions(conversation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """In their order; speaker A is the user, and whoever speaks is named before what is said."""
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        name = f"session_{number}"
        turns = [_turn(turn, conversation["speaker_a"]) for turn in conversation[name]]
        if turns:
            yield {"sid": name, "date": conversation.get(f"{name}_date_time"), "turns": turns}


def _turn(turn: Mapping[str, Any], user: str) -> tuple[str, str, str]:
    caption = turn.get("blip_caption")
    photo = f" [photo: {caption}]" if caption else ""
    by = "u" if turn["speaker"] == user else "a"
    return turn["dia_id"], by, f"{turn['speaker']}: {turn['text']}{photo}"


def _questions(
    asked: Sequence[Mapping[str, Any]], known: set[str]
) -> tuple[list[dict[str, Any]], Repairs]:
    questions: list[dict[str, Any]] = []
    repairs = NO_REPAIRS
    for number, one in enumerate(asked):
        if one["category"] == ADVERSARIAL:
            continue
        evidence, made = read_labels(one.get("evidence") or (), known)
        repairs = repairs.plus(made)
        if not evidence:
            repairs = repairs.plus(Repairs(questions=1))
            continue
        kind = KINDS[one["category"]]
        questions.append({"id": f"q{number}", "type": kind, "q": one["question"], "ev": evidence})
    return questions, repairs


def read_labels(labels: Sequence[str], known: set[str]) -> tuple[list[str], Repairs]:
    """The turns that labels mean, each once, in their order."""
    evidence: dict[str, None] = {}
    repaired = dropped = 0
    for label in labels:
        found = [f"D{int(session)}:{int(turn)}" for session, turn in _TURN.findall(label)]
        there = [turn for turn in found if turn in known]
        repaired += bool(there) and there != [label]
        dropped += max(1, len(found)) - len(there)
        evidence.update(dict.fromkeys(there))
    return list(evidence), Repairs(repaired, dropped)
