"""What is made sure of before anything starts: addresses, and files of this host."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.late import late
from proxy.origin import upstream_options
from proxy.settings import Settings
from proxy.stores.address import read_address

if TYPE_CHECKING:
    from proxy.learning import profile_schema
else:
    profile_schema = late("proxy.learning.profile_schema")


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
