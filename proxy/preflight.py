"""What is made sure of before anything starts: addresses, and files of this host."""

from __future__ import annotations

import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.late import late
from proxy.memory.store import StoreError
from proxy.origin import upstream_options
from proxy.settings import Settings
from proxy.stores.address import read_address
from proxy.stores.sqlite_schema import Unusable, connect, schema_of

if TYPE_CHECKING:
    from proxy.learning import profile_schema
else:
    profile_schema = late("proxy.learning.profile_schema")


logger = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds for which other processes are waited for that use the store's file."""


def unreadable(settings: Settings) -> Iterator[str]:
    """What is wrong with addresses and files in ways that only those who use them can tell."""
    try:
        read_address(settings.store.url)
    except ValueError as error:
        yield f"store.url: {error}"
    try:
        upstream_options(settings)
    except ValueError as error:
        yield f"upstream: {error}"
    for path in sorted(settings.schemas - {""}):
        try:
            profile_schema.read_schema(path)
        except ValueError as error:
            yield f"memory.profile.schema: {error}"


def startable(settings: Settings) -> str | None:
    """Why ``serve`` must not start, None if it may.

    A server that is away is no reason: the proxy starts without it and the spool takes over.  A
    place on this host's own disk that cannot be written will not come back by itself.
    """
    address = read_address(settings.store.url)
    files = [Path(settings.spool.path)]
    if address.kind == "sqlite":
        files.insert(0, address.path)
    return next(filter(None, map(unwritable, files)), None)


def hopeless(settings: Settings) -> str | None:
    """Why the store's file can never be used as it is, None if it may.

    With a file of a newer release, or none of ours, a proxy would fill its spool for ever.
    """
    address = read_address(settings.store.url)
    if address.kind != "sqlite":
        return None
    try:
        schema_of(address.path, PATIENCE)
    except Unusable as error:
        return f"store.url: {address.path}: {error}"
    except (sqlite3.Error, OSError):
        pass  # in use, or away: that may pass
    return None


def bring_up_to_date(settings: Settings) -> None:
    """Make the store's file, or bring it to this release's schema: before anybody waits for it."""
    address = read_address(settings.store.url)
    if address.kind != "sqlite":
        return
    try:
        connect(address.path, PATIENCE).close()
    except (sqlite3.Error, OSError, StoreError) as error:
        logger.warning("the database cannot be used yet: %s", error)


def unwritable(file: Path) -> str | None:
    """Why a database file cannot be written, None if it can.  Makes its folder."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # SQLite needs the folder too, for its journal.
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        return f"cannot write in the folder {file.parent}: {error.strerror or error}"
    if file.is_dir() or (file.exists() and not os.access(file, os.R_OK | os.W_OK)):
        return f"cannot write the file {file}"
    return None
