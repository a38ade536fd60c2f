"""``memory-proxy backup``: a copy of the whole database while a proxy serves."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from proxy.commands.failure import USAGE, CommandError
from proxy.commands.local import check_exists
from proxy.commands.transfer import temporary_beside
from proxy.memory.archive import OnProgress
from proxy.settings import Settings
from proxy.stores.address import read_address
from proxy.stores.sqlite.schema import SUFFIXES, Unusable, reopen, version

PAGES = 2048
"""Copied at once: 8 MiB between two looks at whether somebody has interrupted."""

STORE_TIMEOUT = 60.0


def back_up(settings: Settings, target: Path, on_pages: OnProgress) -> int:
    """Copy the store's file to ``target``, which takes its name once it is whole; its bytes.

    All of it is as it was at one moment: what is written meanwhile is not in it, and nobody waits.
    ``on_pages`` is told the pages copied and their number.  Raises CommandError, OSError.
    """
    source = _source(settings)
    _check_target(source, target)
    target = Path(os.path.realpath(target))
    with temporary_database(target) as beside:
        try:
            _copy(source, beside, on_pages)
        except sqlite3.Error as error:
            raise CommandError(f"The database cannot be copied: {error}") from error
        size = os.path.getsize(beside)
        os.replace(beside, target)
    return size


@contextmanager
def temporary_database(target: Path) -> Iterator[Path]:
    """A hidden database that may take this name; what has not is removed.  Raises CommandError."""
    descriptor, name = temporary_beside(target)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        for end in ("", *SUFFIXES):
            with suppress(FileNotFoundError):
                os.unlink(name + end)


def copy_all(source: sqlite3.Connection, target: Path, on_pages: OnProgress) -> None:
    """All pages of a database.  Raises sqlite3.Error."""
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        # Read in one transaction, the copy does not begin anew whenever somebody writes.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source.backup(copy, pages=PAGES, progress=lambda _, left, all: on_pages(all - left, all))
        source.execute("COMMIT")


def _source(settings: Settings) -> Path:
    address = read_address(settings.store.url)
    if address.kind != "sqlite":
        sentence = f"{address.name} is no file: a Redis is saved by its own means (RDB, AOF)."
        raise CommandError(sentence, USAGE)
    check_exists(settings)
    return address.path


def _check_target(source: Path, target: Path) -> None:
    """Raises CommandError where the copy would take the place of what is in use, or of no file."""
    there = Path(os.path.realpath(target))
    ours = Path(os.path.realpath(source))
    if there in (ours, *(ours.with_name(ours.name + end) for end in SUFFIXES)):
        raise CommandError(f"{target} is the database itself: name another file.", USAGE)
    if there.exists() and not there.is_file():
        raise CommandError(f"Cannot write {target}: it is no file.", USAGE)


def _copy(source: Path, target: Path, on_pages: OnProgress) -> None:
    with closing(reopen(source, STORE_TIMEOUT)) as live:
        _check_is_store(live)
        copy_all(live, target, on_pages)


def _check_is_store(live: sqlite3.Connection) -> None:
    """A file of an older release can be copied; one that is none of ours is a mistake."""
    try:
        version(live)
    except Unusable as error:
        raise CommandError(f"The store does not work: {error}") from error
