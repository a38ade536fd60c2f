"""Sessions from ids in request bodies, in the fields that the settings list.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proxy.chat import jsontext
from proxy.memory.ids import is_id

USER_ID = "metadata.user_id"

_CLAUDE_CODE = re.compile(r"user_.+_session_(?P<session>.+)", re.DOTALL)
"""``metadata.user_id`` of Claude Code, unless it is JSON with a ``session_id``."""


def body_session(fields: dict[str, bytes], names: Sequence[str]) -> str | None:
    """The first valid id in these fields of a request; None if there is none.

    A name with a dot means a field of an object.
    """
    for name in names:
        value = _value(fields, name)
        session = _session_in_user_id(value) if name == USER_ID else _session_in(value)
        if isinstance(session, str) and is_id(session):
            return session
    return None


def _value(fields: dict[str, bytes], name: str) -> object:
    outer, _, inner = name.partition(".")
    try:
        value = jsontext.decode(fields.get(outer, b"null"))
    except jsontext.UNREADABLE:
        return None
    if not inner:
        return value
    return value.get(inner) if isinstance(value, dict) else None


def _session_in(value: object) -> object:
    return value.get("id") if isinstance(value, dict) else value


def _session_in_user_id(value: object) -> object:
    """The session in ``metadata.user_id``; None for a plain user id."""
    if not isinstance(value, str):
        return None
    if value.lstrip().startswith("{"):
        try:
            fields = jsontext.decode(value.encode("utf-8", "surrogatepass"))
        except jsontext.UNREADABLE:
            return None
        return fields.get("session_id") if isinstance(fields, dict) else None
    match = _CLAUDE_CODE.fullmatch(value)
    return match["session"] if match else None
