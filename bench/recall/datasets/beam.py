"""BEAM (Tavakoli et al. 2026): github.com/mohammadtavakoli78/BEAM, chats/100K, 500K, 1M, 10M.

A chat is a folder: ``chat.json`` and ``probing_questions/probing_questions.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.recall.datasets.document import Document, fields
from bench.recall.datasets.labelled import Labelled, asked
from bench.recall.people import LEFT_OUT, NO_REPAIRS, Person, Question, Session, Turn

LEFT = frozenset({"abstention", "summarization"})
"""Kinds of questions that have no evidence, or nearly all of the chat."""

_ANSWERS = ("answer", "ideal_answer", "instruction_being_tested", "preference_being_tested")


def knows(document: Document) -> bool:
    return fields(document.value, "information_extraction", "temporal_reasoning")


def people(document: Document) -> Labelled:
    """A person a chat."""
    sessions = tuple(_sessions(document.beside("chat.json")))
    known = {turn.id: turn.text for session in sessions for turn in session.turns}
    questions: list[Question] = []
    repairs = NO_REPAIRS
    for kind, listed in document.value.items():
        for number, one in enumerate(listed):
            if kind in LEFT:
                repairs = repairs.plus(LEFT_OUT)
                continue
            labels = list(map(str, _ids(one.get("source_chat_ids"))))
            answer = next((str(one[name]) for name in _ANSWERS if one.get(name)), "")
            name = f"{kind}-{number}"
            question, made = asked(name, kind, one["question"], labels, known, answer)
            repairs = repairs.plus(made)
            questions += [question] if question else []
    return Labelled((Person(_name(document), sessions, tuple(questions)),), repairs)


def _name(document: Document) -> str:
    """Size and number of a chat, by its folders."""
    size, chat = document.path.absolute().parts[-4:-2]
    return f"{size}-{chat}"


def _sessions(chat: list[Mapping[str, Any]]) -> Iterator[Session]:
    """One a subject that the user brings up; its date is the latest that was told."""
    date = ""
    for batch in _batches(chat):
        for number, turns in enumerate(batch["turns"]):
            date = next((turn["time_anchor"] for turn in turns if turn.get("time_anchor")), date)
            said = tuple(
                Turn(str(turn["id"]), "u" if turn["role"] == "user" else "a", turn["content"])
                for turn in turns
            )
            if said:
                yield Session(f"s{said[0].id}-{number}", date, said)


def _batches(chat: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Those of a chat; a chat of ten million tokens is several plans' after one another."""
    for part in chat:
        if "turns" in part:
            yield part
        else:
            yield from (batch for plan in part.values() for batch in plan or ())


def _ids(labels: object) -> Iterator[int]:
    """All numbers in what labels are nested in: lists, and objects that name them."""
    if isinstance(labels, int):
        yield labels
    elif isinstance(labels, dict):
        yield from _ids(list(labels.values()))
    elif isinstance(labels, list):
        for label in labels:
            yield from _ids(label)
