"""All operations of the memory API, in the order of the document."""

from __future__ import annotations

from proxy.admin.openapi.operations import (
    instructions,
    items,
    messages,
    overview,
    people,
    sessions,
)

OPERATIONS = (
    *sessions.OPERATIONS,
    *messages.OPERATIONS,
    *people.OPERATIONS,
    *instructions.OPERATIONS,
    *items.OPERATIONS,
    *overview.OPERATIONS,
)
