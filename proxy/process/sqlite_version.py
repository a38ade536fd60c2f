"""What differs between versions of the SQLite that Python was built with: a system's may be old."""

from __future__ import annotations

import sqlite3
from sqlite3 import Connection
from typing import Any, cast

OLDEST = (3, 32)
"""The first version that takes more than 999 parameters in a statement."""

JOINS_BLOBS_SINCE = (3, 37)
"""The first version whose ``group_concat`` does not end a blob at its first NUL byte.  RHEL 9 and
Debian 11 have an older one."""


def version_problem(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> str | None:
    """Why a ``version`` cannot hold a store, None if it can."""
    if version >= OLDEST:
        return None
    has, needs = (".".join(map(str, each)) for each in (version, OLDEST))
    return f"this Python has SQLite {has}; take one with {needs} or newer, or a store in Redis"


class _GroupConcat:
    """``group_concat`` with a separator, as SQLite has it, but the result is a blob."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._separator = b""

    def step(self, value: bytes | str | int | None, separator: str) -> None:
        if value is not None:
            self._parts.append(value if isinstance(value, bytes) else str(value).encode())
            self._separator = separator.encode()

    def finalize(self) -> bytes | None:
        return self._separator.join(self._parts) if self._parts else None


def mend_group_concat(
    connection: Connection, version: tuple[int, ...] = sqlite3.sqlite_version_info
) -> None:
    """Have a connection join blobs whole, whatever the ``version``."""
    if version < JOINS_BLOBS_SINCE:
        connection.create_aggregate("group_concat", 2, cast(Any, _GroupConcat))
