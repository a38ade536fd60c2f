"""PersonaMem (Jiang et al. 2025): github.com/bowen-upenn/PersonaMem, questions_32k.csv etc.

``shared_contexts_32k.jsonl`` belongs to it.  No turn is labelled by name, but it is told how many
tokens lie between a question and the message that it is made from: that message is the evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from bench.recall.counting import counter
from bench.recall.datasets.document import Document, fields
from bench.recall.datasets.labelled import Labelled, asked
from bench.recall.people import NO_REPAIRS, Person, Question, Session, Turn

NEAR = 40
"""Tokens by which a message may begin elsewhere than it is told: less than most messages have."""

Row = Mapping[str, str]
Message = Mapping[str, Any]


def knows(document: Document) -> bool:
    return all(
        fields(row, "shared_context_id", "end_index_in_shared_context", "distance_to_ref_in_tokens")
        for row in document.records
    )


def people(document: Document) -> Labelled:
    """A person for each beginning of a context that questions are asked at the end of."""
    name = document.path.name.replace("questions", "shared_contexts").replace(".csv", ".jsonl")
    lines = document.beside(name)
    contexts = {key: value for line in lines for key, value in line.items()}
    at_the_end: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in document.records:
        at_the_end[row["shared_context_id"], int(row["end_index_in_shared_context"])].append(row)
    count = counter()
    return Labelled.all(
        _person(f"{context[:12]}-{end}", contexts[context][:end], rows, count)
        for (context, end), rows in at_the_end.items()
    )


def _person(
    id: str, messages: Sequence[Message], rows: Sequence[Row], count: Callable[[str], int]
) -> Labelled:
    sessions = tuple(_sessions(messages))
    known = {turn.id: turn.text for session in sessions for turn in session.turns}
    begins = [0, *accumulate(count(f" {message['content']}") for message in messages)]
    questions: list[Question] = []
    repairs = NO_REPAIRS
    for row in rows:
        labels = [_evidence(row, messages, begins)]
        text, kind = row["user_question_or_message"], row["question_type"]
        question, made = asked(row["question_id"], kind, text, labels, known)
        repairs = repairs.plus(made)
        questions += [question] if question else []
    return Labelled((Person(id, sessions, tuple(questions)),) if questions else (), repairs)


def _sessions(messages: Sequence[Message]) -> Iterator[Session]:
    """A system message, which tells the persona, begins a session, and is not replayed."""
    turns: list[Turn] = []
    for place, message in enumerate(messages):
        if message["role"] == "system":
            yield from _session(turns)
            turns = []
        else:
            by = "u" if message["role"] == "user" else "a"
            turns.append(Turn(str(place), by, message["content"]))  # type: ignore[arg-type]
    yield from _session(turns)


def _session(turns: Sequence[Turn]) -> Iterator[Session]:
    if turns:
        yield Session(f"s{turns[0].id}", "", tuple(turns))


def _evidence(row: Row, messages: Sequence[Message], begins: Sequence[int]) -> str:
    """The user's message that begins where it is told; "" where none does.

    Both numbers of tokens have the question's own in them.
    """
    place = int(row["context_length_in_tokens"]) - int(row["distance_to_ref_in_tokens"])
    said = (n for n, message in enumerate(messages) if message["role"] == "user")
    nearest = min(said, key=lambda n: abs(begins[n] - place), default=None)
    there = nearest is not None and abs(begins[nearest] - place) <= NEAR
    return str(nearest) if there else ""
