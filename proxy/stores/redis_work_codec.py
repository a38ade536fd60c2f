"""Keys and arguments of the scripts of the queue of work, and what their replies mean.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, get_args
from urllib.parse import quote, unquote

from proxy.memory.model import SessionKey
from proxy.memory.work import Due, Kind, Work

QUEUE_KEYS = [b"mp:{+work}:due", b"mp:{+work}:pieces"]
"""One queue for all; no tenant's tag has a plus sign, which percent-encoding would not leave."""


def piece_name(key: SessionKey, kind: Kind) -> str:
    return f"{kind}:{quote(key.tenant, safe='')}:{quote(key.session, safe='')}"


def name_of(work: Work) -> str:
    return piece_name(SessionKey(work.tenant, work.session), work.kind)


def all_names(key: SessionKey) -> list[str]:
    """What work on a session may be called."""
    return [piece_name(key, kind) for kind in get_args(Kind)]


def due_arguments(key: SessionKey, dues: Sequence[Due]) -> list[Any]:
    arguments: list[Any] = []
    for due in dues:
        name = piece_name(key, due.kind)
        arguments += [name, due.profile, repr(due.at), due.after, repr(due.later)]
    return arguments


def read_piece(name: bytes, score: bytes, packed: bytes) -> Work:
    """A piece that nobody holds, from its name, its score and what is kept of it."""
    kind, tenant, session = name.decode().split(":")
    asked, attempts, _, profile = packed.decode().split(" ", 3)
    return Work(
        tenant=unquote(tenant),
        session=unquote(session),
        kind=cast(Kind, kind),
        profile=profile,
        due=float(score),
        asked=int(asked),
        attempts=int(attempts),
    )
