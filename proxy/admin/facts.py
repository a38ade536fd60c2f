"""Facts over the memory API: as objects, and as people write and change them.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast, get_args

import msgspec
from msgspec.structs import replace

from proxy.admin import asking
from proxy.admin.asking import invalid
from proxy.admin.imports import NO_TIME, UNREADABLE
from proxy.admin.objects import Object, found_object, source_object
from proxy.learning.fact import (
    MOST_ABOUT,
    MOST_CHARACTERS,
    USER,
    Fact,
    Filed,
    State,
    dated,
    new_id,
    one_line,
    parted,
)
from proxy.learning.fact_dates import FIRST
from proxy.recall.found import Found
from proxy.settings.written import FactsSettings

KIND = "fact"
LARGEST_METADATA = 4096
"""Bytes of JSON."""

NEW = frozenset({"text", "about", "kind", "valid_from", "expires_at", "metadata"})
CHANGED = frozenset({"text", "about", "state", "expires_at", "metadata"})
"""Fields that a new fact, and a change of one, may have."""

Fields = dict[str, bytes]

WRONG = object()
"""Stands for a value of another kind than is wanted."""


class Lately(NamedTuple):
    """Under which settings a fact is written, and when (Unix seconds)."""

    settings: FactsSettings
    now: float


def is_fact(memory: str) -> bool:
    """Is this the id of a fact?"""
    return memory.startswith("fact_")


def state_of(fact: Fact, now: float) -> str:
    """As people list it: a current fact may have expired."""
    return "expired" if fact.state == "current" and fact.expired(now) else fact.state


def fact_object(
    filed: Filed, now: float, count: Callable[[str], int], score: float = 0.0
) -> Object:
    """A memory of the kind "fact"."""
    fact = filed.fact
    first = fact.sources[0] if fact.sources else None
    return {
        "object": "memory",
        "id": fact.id,
        "kind": KIND,
        "text": fact.text,
        "about": fact.about,
        "state": state_of(fact, now),
        "score": score,
        "parts": {"lexical": score} if score else {},
        "tokens": count(fact.text),
        "role": "user",
        "message_id": first.message if first else None,
        "session_id": first.session if first else None,
        "sources": [source_object(each) for each in (*fact.sources, *fact.inherited)],
        "valid_from": fact.valid_from,
        "last_confirmed": fact.last_confirmed,
        "expires_at": fact.expires_at,
        "superseded_by": fact.superseded_by,
        "edited": fact.edited,
        "origin": fact.origin,
        "metadata": fact.metadata,
        "created_at": filed.created_at,
        "updated_at": filed.updated_at,
        "version": filed.version,
    }


def said_object(found: Found) -> Object:
    """A passage or a standing wish as a memory like all others."""
    source = {
        "session_id": found.session,
        "message_id": found.message,
        "exchange_id": found.message.rpartition(".")[0],
        "created_at": found.created_at,
    }
    return {
        **found_object(found),
        "about": USER,
        "state": "current",
        "sources": [source],
        "valid_from": found.created_at,
        "last_confirmed": found.created_at,
        "expires_at": None,
        "superseded_by": None,
        "edited": False,
        "origin": "said",
        "metadata": {},
        "updated_at": found.created_at,
        "version": 1,
    }


def new_fact(fields: Fields, when: Lately) -> Fact:
    """A fact that somebody adds.  Raises ProxyError 400."""
    _only(fields, NEW)
    if asking.text_field(fields, "kind") not in (None, KIND):
        raise invalid(f'kind must be "{KIND}": nothing else can be added.', "kind")
    valid_from = _time(fields, "valid_from")
    fact = Fact(
        id=new_id(),
        text=_text(fields),
        about=_about(fields) or USER,
        valid_from=when.now if valid_from is None else valid_from,
        last_confirmed=when.now,
        until=_time(fields, "expires_at"),
        origin="added",
        metadata=_metadata(fields) or {},
    )
    return dated(fact, when.settings)


def changed_fact(fact: Fact, fields: Fields, when: Lately) -> Fact:
    """The fact as somebody has changed it.  Raises ProxyError 400."""
    _only(fields, CHANGED)
    metadata = _metadata(fields)
    fact = replace(
        fact,
        text=_text(fields) if "text" in fields else fact.text,
        about=(_about(fields) or USER) if "about" in fields else fact.about,
        until=_time(fields, "expires_at") if "expires_at" in fields else fact.until,
        metadata=fact.metadata if metadata is None else metadata,
        last_confirmed=when.now,
        edited=fact.edited or not fields.keys() <= {"state"},
    )
    state = _state(fields)
    if state is not None and state != fact.state:
        fact = parted(fact, state)
    return dated(fact, when.settings)


def _only(fields: Fields, known: frozenset[str]) -> None:
    for name in fields:
        if name not in known:
            raise invalid(f"{name} is none of: {', '.join(sorted(known))}.", name)


def _text(fields: Fields) -> str:
    text = one_line(asking.text_field(fields, "text") or "")
    if not 0 < len(text) <= MOST_CHARACTERS:
        raise invalid(f"text must have 1 to {MOST_CHARACTERS} characters.", "text")
    return text


def _about(fields: Fields) -> str:
    about = one_line(asking.text_field(fields, "about") or "")
    if len(about) > MOST_ABOUT:
        raise invalid(f"about must have {MOST_ABOUT} characters at most.", "about")
    return about


def _state(fields: Fields) -> State | None:
    state = asking.text_field(fields, "state")
    if state is not None and state not in get_args(State):
        raise invalid(f"state must be one of: {', '.join(get_args(State))}.", "state")
    return cast(State | None, state)


def _time(fields: Fields, name: str) -> float | None:
    time = _read(fields, name, float | None)
    if time is not None and not (isinstance(time, float) and FIRST <= time < NO_TIME):
        raise invalid(f"{name} must be a time in Unix seconds, or null.", name)
    return time


def _metadata(fields: Fields) -> dict[str, object] | None:
    metadata = _read(fields, "metadata", dict[str, object] | None)
    if len(fields.get("metadata", b"")) > LARGEST_METADATA or metadata is WRONG:
        sentence = f"metadata must be an object of at most {LARGEST_METADATA} bytes."
        raise invalid(sentence, "metadata")
    return cast(dict[str, object] | None, metadata)


def _read(fields: Fields, name: str, kind: object) -> object:
    """A field's value, ``WRONG`` if it is of another kind, None if it is absent."""
    try:
        return msgspec.json.decode(fields.get(name, b"null"), type=kind)
    except UNREADABLE:
        return WRONG
