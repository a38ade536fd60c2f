"""Converts notes of other programs on a person to that person's items.  Pure.

A sentence that is short enough becomes a fact, anything else a saved item with the same value.  Ids
are hashes of the notes' labels and keys, so that importing a note again changes nothing.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from proxy.learning.facts.fact import (
    FACTS,
    MAX_GIVEN,
    MAX_STATEMENT,
    Fact,
    fact_id,
    fact_place,
    one_line,
    with_expiry,
)
from proxy.memory.items import PEOPLE, Item, Place
from proxy.memory_api.shapes.people import MAX_METADATA
from proxy.portable.check import check_item
from proxy.portable.source import Note
from proxy.settings.learned import FactsSettings

MAX_NOTES = 5000
"""Notes of one person in a file: the facts of them, and the saved items beside these."""

PEOPLE_COUNTED = 10_000
ID_CHARACTERS = 16
MAX_NAME = 1024


class NoteImporter:
    """``now`` is the time of what has none, Unix seconds."""

    def __init__(self, settings: FactsSettings, now: float) -> None:
        self._settings, self._now = settings, now
        self._counts: Counter[str] = Counter()
        self._facts: Counter[str] = Counter()

    def items(self, user: str, notes: Sequence[Note]) -> tuple[Item, ...]:
        """Raises ValueError for what cannot be an item."""
        if len(self._counts) >= PEOPLE_COUNTED:
            self._counts.clear()
            self._facts.clear()
        self._counts[user] += len(notes)
        if self._counts[user] > MAX_NOTES:
            raise ValueError(f"over {MAX_NOTES} memories of one person")
        items = tuple(self._item(user, note) for note in notes)
        self._facts[user] += sum(item.namespace == (PEOPLE, user, FACTS) for item in items)
        if self._facts[user] > MAX_GIVEN:
            raise ValueError(f"over {MAX_GIVEN:,} facts of one person")
        return items

    def _item(self, user: str, note: Note) -> Item:
        text = one_line(note.text or "")
        if 0 < len(text) <= MAX_STATEMENT:
            fact = self._fact(note, text)
            place, value = fact_place(user, fact.id), msgspec.json.encode(fact)
        else:
            labels = (PEOPLE, user, *map(_name, note.labels))
            place, value = Place(labels, _name(note.key)), note.value
        created = self._valid_time(note.created_at, self._now)
        item = Item(
            namespace=place.namespace,
            key=place.key,
            value=msgspec.Raw(value),
            version=1,
            created_at=created,
            updated_at=self._valid_time(note.updated_at, created),
        )
        check_item(item, user)
        return item

    def _fact(self, note: Note, text: str) -> Fact:
        created = self._valid_time(note.created_at, self._now)
        metadata = dict(note.metadata)
        fact = Fact(
            id=_fact_id_of(note),
            text=text,
            valid_from=created,
            last_confirmed=self._valid_time(note.updated_at, created),
            until=note.until,
            origin="added",
            metadata=metadata if len(msgspec.json.encode(metadata)) <= MAX_METADATA else {},
        )
        return with_expiry(fact, self._settings)

    def _valid_time(self, time: float | None, default: float) -> float:
        """The time; ``default`` if it is None or in the future."""
        return default if time is None or time > self._now else time


def _name(text: str) -> str:
    """A text as a valid label or key of an item."""
    return one_line(text)[:MAX_NAME] or "-"


def _fact_id_of(note: Note) -> str:
    digest = sha256("\0".join((*note.labels, note.key)).encode("utf-8", "replace")).digest()
    return fact_id(urlsafe_b64encode(digest).decode("ascii")[:ID_CHARACTERS])
