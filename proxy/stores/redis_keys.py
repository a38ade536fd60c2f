"""What the keys of history are called.  Pure."""

from __future__ import annotations

from urllib.parse import quote, unquote

from proxy.memory.erasure import Subject
from proxy.memory.model import SessionKey

PARTS = (b"meta", b"cards", b"log", b"active", b"exchanges", b"keys", b"choices", b"summaries")
"""The keys of a session, in the order in which every script gets them."""

ANY_LIST = b"mp:{*}:sessions"
"""What the keys of all lists of sessions look like."""


def session_keys(key: SessionKey, prefix: bytes = b"") -> list[bytes]:
    """All keys of a session: one hash tag, so one slot, and no two sessions share it.

    Percent-encoding leaves neither braces nor colons in a tenant or a session id.  With ``prefix``
    other names in the same slot.
    """
    tag = _tag(key.tenant, key.session) + prefix
    return [tag + part for part in PARTS]


def list_keys(tenant: str, user: str | None = None) -> list[bytes]:
    """The list of a tenant's sessions, or of one user's, and when their entries expire."""
    tag = _tag(tenant, user)
    return [tag + b"sessions", tag + b"expiries"]


def mark_key(subject: Subject) -> bytes:
    """Where it is kept until when something was erased: not one of the session's own keys.

    In the slot of the session, or in that of the person's list and shelf.  The two have different
    names, since a session and a person may have the same id, and then the same hash tag.
    """
    if subject.session:
        return _tag(subject.tenant, subject.session) + b"erased"
    return _tag(subject.tenant, subject.user or None) + b"person-erased"


def read_tenant(key: bytes) -> str | None:
    """Whose list of all sessions a key is of; None for that of a user."""
    who = key.decode().removeprefix("mp:{").removesuffix("}:sessions")
    return None if ":" in who else unquote(who)


def field_of(seq: int) -> bytes:
    """The hash field of a message."""
    return b"%010d" % seq


def _tag(tenant: str, name: str | None) -> bytes:
    """What keys begin with: the hash tag of a tenant, or of one of its sessions or users."""
    who = quote(tenant, safe="")
    if name is not None:
        who = f"{who}:{quote(name, safe='')}"
    return f"mp:{{{who}}}:".encode()
