"""Ids in bodies as names of sessions, where the settings list them.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proxy.chat import jsontext
from proxy.memory.ids import is_id

USER_ID = "metadata.user_id"

_CLAUDE_CODE = re.compile(r"user_.+_session_(?P<session>.+)", re.DOTALL)
"""What Claude Code sends as ``metadata.user_id``, unless it is JSON with a ``session_id``."""


def body_session(fields: dict[str, bytes], names: Sequence[str]) -> str | None:
    """The session that a request's fields name, by the first of these that is there and is an id.

    A name with a dot is that of a field in an object.
    """
    for name in names:
        said = _said(fields, name)
        found = _of_user_id(said) if name == USER_ID else _of(said)
        if isinstance(found, str) and is_id(found):
            return found
    return None


def _said(fields: dict[str, bytes], name: str) -> object:
    outer, _, inner = name.partition(".")
    try:
        found = jsontext.decode(fields.get(outer, b"null"))
    except jsontext.UNREADABLE:
        return None
    if not inner:
        return found
    return found.get(inner) if isinstance(found, dict) else None


def _of(said: object) -> object:
    return said.get("id") if isinstance(said, dict) else said


def _of_user_id(said: object) -> object:
    """A user's id alone names no session."""
    if not isinstance(said, str):
        return None
    if said.lstrip().startswith("{"):
        try:
            told = jsontext.decode(said.encode("utf-8", "surrogatepass"))
        except jsontext.UNREADABLE:
            return None
        return told.get("session_id") if isinstance(told, dict) else None
    found = _CLAUDE_CODE.fullmatch(said)
    return found["session"] if found else None
