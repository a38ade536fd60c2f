"""``memory-proxy restore``: a backup in the place of the database, which is kept aside.

At every moment the name of the database means the old one or the new one, each of them whole.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from stat import S_IMODE

import msgspec
from rich.progress import Progress

from proxy.commands.backup import copy_all, temporary_database
from proxy.commands.failure import CONFLICT, NOT_FOUND, USAGE, CommandError
from proxy.commands.output import count_of
from proxy.commands.transfer import progress_callback
from proxy.memory.recording.store_names import waiting_in
from proxy.process.sqlite_file import is_busy, is_damage
from proxy.settings import Settings
from proxy.stores.address import is_same_store, read_address
from proxy.stores.sqlite.schema import SCHEMA, SUFFIXES, Unusable, is_ours, reopen, version

STORE_TIMEOUT = 2.0
"""Seconds for a command that looks at the file; a proxy has it open all the time."""

MOVE = "Nothing was changed: move it away, with its -wal if there is one, then restore."


class Restored(msgspec.Struct, frozen=True):
    """``kept``: what was there, under its new name.  ``waiting``: exchanges in the spool."""

    path: Path
    schema: int
    sessions: int
    kept: Path | None
    waiting: int


def restore(settings: Settings, file: Path, progress: Progress) -> Restored:
    """Put a copy of a backup in the place of the store's file.  Raises CommandError, OSError."""
    path = _store_path(settings)
    _check_files(file, path)
    with _exclusive(path):  # before a long copy
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_database(path) as beside:
        schema, sessions = _copy_backup(file, beside, progress)
        _copy_owner(beside, path)
        with _exclusive(path):
            kept = _swap(path, beside)
    return Restored(path, schema, sessions, kept, _waiting(settings))


def _store_path(settings: Settings) -> Path:
    """The file that the name means, if it is a link the one behind it: beside that is its log."""
    address = read_address(settings.store.url)
    if address.kind != "sqlite":
        sentence = (
            f"{address.name} is no file. Stop Redis and put its dump.rdb or AOF back; exports are"
            " put back with memory-proxy sessions import."
        )
        raise CommandError(sentence, USAGE)
    return Path(os.path.realpath(address.path))


def _check_files(file: Path, path: Path) -> None:
    if not file.exists():
        raise CommandError(f"There is no file {file}.", NOT_FOUND)
    if not file.is_file() or (path.exists() and not path.is_file()):
        raise CommandError(f"{path if file.is_file() else file} is no file.", USAGE)
    there = [Path(f"{path}{end}") for end in ("", *SUFFIXES)]
    if any(each.exists() and file.samefile(each) for each in there):
        raise CommandError(f"{file} is the database itself: name a backup of it.", USAGE)


# The backup


def _copy_backup(file: Path, beside: Path, progress: Progress) -> tuple[int, int]:
    """Copy the backup, and see whether the copy is whole; its schema and number of sessions."""
    try:
        with closing(_open_backup(file)) as backup:
            schema = _schema(backup)
            copy_all(backup, beside, progress_callback(progress, "pages"))
        progress.add_task("checking", total=None)
        with closing(_open_backup(beside)) as copy:
            found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise Unusable(f"it is damaged ({found}): name another backup")
            return schema, _sessions(copy)
    except (sqlite3.Error, Unusable) as error:
        sentence = f"{file} cannot be restored: {error}. Nothing was changed."
        raise CommandError(sentence) from error


def _open_backup(file: Path) -> sqlite3.Connection:
    """A backup may lie where nothing can be written; with a log beside it that is read too."""
    file = Path(os.path.realpath(file))
    alone = not any(os.path.exists(f"{file}{end}") for end in SUFFIXES)
    address = f"{file.as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    return sqlite3.connect(address, timeout=STORE_TIMEOUT, isolation_level=None, uri=True)


def _schema(backup: sqlite3.Connection) -> int:
    found = version(backup)
    if not found:
        raise Unusable("it is empty")
    if not is_ours(backup, found):
        raise Unusable("it is another program's, or no backup of a store")
    return found


def _sessions(copy: sqlite3.Connection) -> int:
    living = "SELECT count(*) FROM sessions WHERE expires_at IS NULL OR expires_at > ?"
    return int(copy.execute(living, (time.time(),)).fetchone()[0])


# The database


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Nobody else has the database open, and all that its log had is in it.

    One that SQLite cannot read is left as it is.
    """
    if not path.exists() or _unreadable(path):
        yield
        return
    with closing(reopen(path, STORE_TIMEOUT)) as connection:
        try:
            _lock(connection)
        except sqlite3.Error as error:
            raise _refusal(error, path) from error
        if sys.platform == "win32":
            connection.close()  # there a file that is open keeps its name
        yield


def _unreadable(path: Path) -> bool:
    """Raises CommandError where somebody has it open: so asked, SQLite says that first."""
    with closing(reopen(path, STORE_TIMEOUT)) as connection:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            if is_damage(error):
                return True
            raise _refusal(error, path) from error
    return False


def _lock(connection: sqlite3.Connection) -> None:
    """Without a log a lock shuts out readers too, and the log that is given up goes into the
    file; SQLite does not give it up while anybody else is connected."""
    connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    connection.execute("BEGIN EXCLUSIVE")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        raise sqlite3.OperationalError("somebody opened it meanwhile")


def _refusal(error: sqlite3.Error, path: Path) -> CommandError:
    if is_busy(error):
        sentence = (
            f"{path} is in use: stop the proxy, and whatever else has it open, then restore."
            " Nothing was changed."
        )
        return CommandError(sentence, CONFLICT)
    return CommandError(f"{path} cannot be kept aside: {error}. {MOVE}")


def _copy_owner(beside: Path, path: Path) -> None:
    """Let it belong to whom the old one does, and be on the disk before it has the name."""
    if path.exists():
        old, new = path.stat(), beside.stat()
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            _set_owner(beside, path, old)
        beside.chmod(S_IMODE(old.st_mode))
    with beside.open("rb+") as file:
        os.fsync(file.fileno())


def _set_owner(beside: Path, path: Path, owner: os.stat_result) -> None:
    try:
        os.chown(beside, owner.st_uid, owner.st_gid)
    except OSError as error:
        sentence = f"{path} is another user's: restore as that one. Nothing was changed."
        raise CommandError(sentence) from error


def _swap(path: Path, beside: Path) -> Path | None:
    """Give the copy the name; that of what was there, None where there was nothing.

    A log is there only of a file that is damaged or gone.
    """
    there = [end for end in ("", *SUFFIXES) if os.path.exists(f"{path}{end}")]
    kept = _free_name(path)
    if "" in there:
        _link_to(path, kept)
    for end in there:
        if end:
            os.replace(f"{path}{end}", f"{kept}{end}")
    _sync(path.parent)  # no log may come back beside the new file
    os.replace(beside, path)
    _sync(path.parent)
    return kept if there else None


def _free_name(path: Path) -> Path:
    """A name that neither a file nor a log has."""
    names = (Path(f"{path}.before-restore-{number}") for number in count(1))
    return next(
        n for n in names if not any(os.path.lexists(f"{n}{end}") for end in ("", *SUFFIXES))
    )


def _link_to(path: Path, kept: Path) -> None:
    """A second name: so the first one is never without a file."""
    try:
        os.link(path, kept)
    except OSError as error:
        raise CommandError(f"{path} cannot be kept aside: {error.strerror}. {MOVE}") from error


def _sync(folder: Path) -> None:
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _waiting(settings: Settings) -> int:
    name = read_address(settings.store.url).name
    found = waiting_in(Path(settings.spool.path), STORE_TIMEOUT).items()
    return sum(number for store, number in found if is_same_store(store, name))


def notes(settings: Settings, restored: Restored) -> Iterator[str]:
    """What belongs to it besides."""
    if restored.kept is not None:
        yield f"what was there is kept: {restored.kept}"
    if restored.schema < SCHEMA:
        yield f"it has schema {restored.schema}: the proxy's next start brings it to {SCHEMA}"
    if restored.waiting:
        yield (
            f"{count_of(restored.waiting, 'exchanges')} in the spool {settings.spool.path}: the"
            " proxy's next start writes what waits there into it; to be without, move it away first"
        )
    if settings.memory.recall.embeddings.model:
        yield "its vectors are of then: if memory.recall.embeddings changed, memory-proxy reindex"
    yield "what was erased since this backup is in it again: erase it again"
