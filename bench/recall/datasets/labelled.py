"""What a set gives: people with their questions, and what was done to the labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bench.recall.datasets.part import telling_part
from bench.recall.people import NO_REPAIRS, Person, Question, Repairs


class Labelled(NamedTuple):
    people: tuple[Person, ...]
    repairs: Repairs = NO_REPAIRS

    @classmethod
    def all(cls, parts: Iterable[Labelled]) -> Labelled:
        """What several files, or people, give together."""
        people: list[Person] = []
        repairs = NO_REPAIRS
        for part in parts:
            people += part.people
            repairs = repairs.plus(part.repairs)
        return cls(tuple(people), repairs)


def asked(
    id: str,
    kind: str,
    text: str,
    labels: Sequence[str],
    known: Mapping[str, str],
    answer: str = "",
) -> tuple[Question | None, Repairs]:
    """A question whose evidence are turns, by id; None where no label is one of the ``known``.

    ``known`` has the texts of turns.  Of a long one the part counts that the ``answer`` is about.
    """
    there = [label for label in dict.fromkeys(labels) if label in known]
    repairs = Repairs(dropped=len(set(labels)) - len(there), questions=int(not there))
    if not there:
        return None, repairs
    parts = ((label, telling_part(known[label], answer)) for label in there if answer)
    spans = {label: part for label, part in parts if part}
    return Question(id, kind, text, tuple(there), spans), repairs
