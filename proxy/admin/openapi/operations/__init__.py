"""All operations of the memory API, in the order of the document."""

from __future__ import annotations

from proxy.admin.openapi.operations import messages, others, people, sessions

OPERATIONS = (
    *sessions.OPERATIONS,
    *messages.OPERATIONS,
    *people.OPERATIONS,
    *others.OPERATIONS,
)
