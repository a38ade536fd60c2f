"""Public names of sessions that do not reveal their ids.  Pure.

A *reference* identifies a session in names that are given out: 128 bits, random for a session that
the proxy has named itself, whose id contains it, and else a hash of the id that its client gave
it.  For the latter an item of the tenant's own says which session is meant.
"""

from __future__ import annotations

import hashlib
import re

from proxy.memory.items import REQUESTS, Place

SESSION_LABEL = "sessions"
"""The label under which references are mapped to sessions."""

_OWN = re.compile(r"conv_([0-9a-f]{32})")


def reference_of(session: str) -> str:
    """The reference of a session: 32 hexadecimal digits."""
    return reference_in(session) or hashlib.sha256(session.encode()).hexdigest()[:32]


def conversation_name(reference: str) -> str:
    """The name of a conversation with this reference; a session named by the proxy has it as id."""
    return f"conv_{reference}"


def reference_in(name: object) -> str | None:
    """The reference in the name of a conversation; None for a name that is not the proxy's."""
    found = _OWN.fullmatch(name) if isinstance(name, str) else None
    return found[1] if found else None


def reference_place(reference: str) -> Place:
    """The place of the item that maps a reference to its session."""
    return Place((REQUESTS, SESSION_LABEL), reference)
