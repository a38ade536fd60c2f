"""PrefEval (Zhao et al. 2025): github.com/amazon-science/PrefEval, benchmark_dataset/.

Read are explicit_preference/*.json and implicit_preference/choice-based/*.json.  Of the
persona-driven conversations no turn is labelled, so nothing can be counted there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.recall.datasets.document import Document, fields
from bench.recall.datasets.labelled import Labelled
from bench.recall.people import Person, Question, Session, Turn

BETWEEN = "filtered_inter_turns.json"
"""Other people's conversations, which come between a preference and its question."""

STATED, CHOSEN = "stated preference", "chosen preference"
_CHOICE = (
    ("query", "u"),
    ("assistant_options", "a"),
    ("user_selection", "u"),
    ("assistant_acknowledgment", "a"),
)


def knows(document: Document) -> bool:
    return all(
        fields(item, "preference", "question") and "classification_task_options" not in item
        for item in document.records
    )


def people(document: Document) -> Labelled:
    """A person a preference.  Raises ValueError for conversations that nothing is labelled in."""
    if any("persona" in item for item in document.records):
        raise ValueError(f"{document.path}: no turn of persona-driven conversations is labelled")
    between = tuple(_between(document.beside(BETWEEN)))
    topic = document.path.stem
    return Labelled(
        tuple(
            _person(f"{topic}-{number}", item, between)
            for number, item in enumerate(document.records)
        )
    )


def _person(id: str, item: Mapping[str, Any], between: Sequence[Session]) -> Person:
    talk = item.get("conversation")
    if talk is None:
        turns: tuple[Turn, ...] = (Turn("stated", "u", item["preference"]),)
        question = Question("q", STATED, item["question"], ("stated",))
    else:
        turns = tuple(Turn(name, by, talk[name]) for name, by in _CHOICE)  # type: ignore[arg-type]
        question = Question("q", CHOSEN, item["question"], ("user_selection",))
    return Person(id, (Session("preference", "", turns), *between), (question,))


def _between(conversations: Sequence[Mapping[str, Any]]) -> Iterator[Session]:
    for place, talk in enumerate(conversations):
        turns = tuple(
            Turn(f"{place}:{n}", "u" if turn["role"] == "user" else "a", turn["content"])
            for n, turn in enumerate(talk["conversation"])
        )
        yield Session(f"between-{place}", "", turns)
