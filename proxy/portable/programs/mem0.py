"""Memories of mem0: a list of them, or an object that has it.  Pure.

A memory is ``{"id", "memory", "user_id", "metadata", "created_at", "updated_at"}``.  The list is
``results`` of what ``get_all`` returns, or ``records`` of the file with which mem0 migrates to its
platform.  The source is mem0ai/mem0: mem0/configs/base.py (MemoryItem),
mem0/memory/main.py (get_all) and scripts/oss-to-platform-migrate.sh (the file).
"""

from __future__ import annotations

from proxy.chat import jsontext
from proxy.portable.check import Fields, fields_in, text_in, timestamp_in
from proxy.portable.source import Note, Warnings

LISTS = ("results", "records", "memories")
METADATA_FIELDS = ("categories", "agent_id", "app_id", "run_id", "actor_id", "role")
"""Fields beside a memory that go on as its metadata."""


def note_of(fields: Fields, warnings: Warnings, number: int) -> tuple[str | None, Note] | None:
    text = text_in(fields, "memory")
    if not text.strip():
        warnings.add(f"memory {number} says nothing and was left out")
        return None
    more_metadata = {name: fields[name] for name in METADATA_FIELDS if fields.get(name)}
    user = text_in(fields, "user_id") or None
    return user, Note(
        labels=("mem0",),
        key=text_in(fields, "id") or text[:200],
        value=jsontext.encode(fields),
        text=text,
        metadata={**fields_in(fields, "metadata"), **more_metadata},
        created_at=timestamp_in(fields, "created_at"),
        updated_at=timestamp_in(fields, "updated_at"),
        until=timestamp_in(fields, "expiration_date"),
    )
