"""The member of a stored message that is for one API alone: see ``proxy.formats.native``."""

from __future__ import annotations

from proxy.chat import jsontext

FIELD = "native"
MARK = b'"native"'


def without_native(message: bytes) -> bytes:
    """A stored message as chat completions may have it."""
    if MARK not in message:
        return message
    try:
        fields = jsontext.fields(message)
    except jsontext.UNREADABLE:
        return message
    return jsontext.join_fields({k: v for k, v in fields.items() if k != FIELD})
