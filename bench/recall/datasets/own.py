"""Our own form: a line of JSON a person.  It is told in ../../README.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.recall.datasets.document import Document, fields
from bench.recall.datasets.labelled import Labelled
from bench.recall.people import Person, Question, Session, Turn


def knows(document: Document) -> bool:
    return all(fields(record, "id", "sessions", "questions") for record in document.records)


def people(document: Document) -> Labelled:
    return Labelled(tuple(map(_person, document.records)))


def _person(record: Mapping[str, Any]) -> Person:
    sessions = tuple(
        Session(one["sid"], one.get("date") or "", tuple(Turn(*turn) for turn in one["turns"]))
        for one in record["sessions"]
    )
    return Person(record["id"], sessions, tuple(map(_question, record["questions"])))


def _question(record: Mapping[str, Any]) -> Question:
    return Question(
        id=record["id"],
        kind=record["type"],
        text=record["q"],
        evidence=tuple(record["ev"]),
        spans=record.get("span") or {},
        before=tuple(record.get("before") or ()),
    )
