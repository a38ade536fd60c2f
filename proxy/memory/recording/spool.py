"""The spool: exchanges that the store could not record yet, in a SQLite file that all workers of
a host share.

An entry is durable when ``put`` returns (``synchronous = FULL``) and stays until it has been
replayed.  Entries belong to a store, by its name, and are replayed in the order in which they came.
Calls block; they are made on a thread, except ``has_waiting``, ``is_idle`` and ``sessions``, which
read eight bytes of a file as long as nothing was written.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from proxy.memory.model import SessionKey
from proxy.memory.recording import spool_owners, store_names
from proxy.memory.recording.place import SpoolPlace
from proxy.memory.recording.spool_file import OpenFile, copy_entries, used_bytes
from proxy.memory.recording.spool_owners import EntryOwner, QuarantinedEntry
from proxy.memory.recording.store_names import IsSame
from proxy.process.sqlite_file import identity, is_damage

logger = logging.getLogger(__name__)

Kind = Literal["commit", "deferred", "amendment", "more"]

_WAITS = "store = ? AND quarantined IS NULL"

# Ids are of one file: in another that has taken its place they may be others' by now.
_SAME = "id = ? AND exchange = ? AND kind = ?"

STAMP_SECONDS = 0.1
"""Seconds for which an unchanged stamp is trusted: see ``Stamp``."""

PAGE_BYTES = 32 * 1024 * 1024
"""Payloads that are read at once: as many as fit, and one whatever its size."""


MIN_DISK_BYTES = 1024 * 1024
"""Bytes that the disk must have left: room for an exchange that is large."""

NEVER, NO_STAMP = (-1, -1), (b"", -1)
"""SQLite's data version and the stamp, each with the count of skips, before the first read."""

FULL_SHARE = 0.95
"""The share of its bounds from which on a spool counts as full."""


class SpoolError(Exception):
    """The spool cannot be read or written, or is full."""


class SpoolDamaged(SpoolError):
    """The file is damaged; the next use finds another."""


class SpoolFull(SpoolError):
    """There is no room left; the text says where."""


class SpoolEntry(NamedTuple):
    """One thing to replay.  ``payload`` is the JSON of a value of the type for ``kind``."""

    id: int
    key: SessionKey
    exchange: str
    kind: Kind
    payload: bytes


class SessionHead(NamedTuple):
    """The oldest entry of a session."""

    id: int
    key: SessionKey


class Spool:
    """The entries of one store.  Raises SpoolError; sqlite3 errors become it in one place."""

    def __init__(
        self, path: Path, store: str, max_bytes: int, is_same: IsSame = str.__eq__
    ) -> None:
        self._path, self._store, self._max_bytes = path, store, max_bytes
        self._place = SpoolPlace(path, store, is_same)
        self._lock = threading.Lock()
        self._closed = True
        self._file: OpenFile | None = None
        self._seen_version = NEVER
        self._skipped: dict[SessionKey, int] = {}
        self._skip_count = 0
        self._seen_stamp, self._stamp_read_at = NO_STAMP, -STAMP_SECONDS
        self._sessions: frozenset[SessionKey] = frozenset()
        self._missed = False
        """Whether it was logged that the file is not at the path any more."""
        self._renewing = False
        self._damaged: OpenFile | None = None
        """The file that was found to be so, which may be in use no more."""

    @property
    def is_open(self) -> bool:
        """Whether it is open, and its file is still at the path."""
        return self._is_sound and self._file is not None and self._place.is_current(self._file)

    def open(self, renewing: bool = False) -> None:
        """Create the file (mode 0600) if needed; if this fails, each use tries again.

        ``renewing``: replace a damaged file.
        """
        with self._lock, self._mapping_errors():
            self._closed, self._renewing = False, renewing
            self._try_follow()
            self._open_file()

    def _open_file(self) -> OpenFile:
        """The file in use; one that is created if there is none."""
        old = self._file
        if old is not None and self._is_sound:
            return old
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._place.lock():
            new = self._use(self._renewed(old))
        if old is not None:
            old.close()
        return new

    @property
    def _is_sound(self) -> bool:
        return self._damaged is None or self._damaged is not self._file

    def _renewed(self, old: OpenFile | None) -> OpenFile:
        """The file at the path, or a new one if that is damaged, as ``old`` is."""
        try:
            if old is None or not self._place.is_current(old):  # another worker was first
                return self._place.open()
        except sqlite3.DatabaseError as error:
            if not (self._renewing and is_damage(error)):
                raise
        return self._place.replace_damaged()

    def _use(self, file: OpenFile) -> OpenFile:
        self._skipped, self._missed = {}, False
        self._file = file  # first: the loop looks without the lock, and may still see the old one
        self._seen_version, self._seen_stamp, self._stamp_read_at = NEVER, NO_STAMP, -STAMP_SECONDS
        return file

    def _follow(self) -> None:
        """If the open file was deleted or replaced, move its entries to the file now at the path:
        nobody would find them in the old one."""
        old = self._file
        if old is None or self._place.is_current(old):
            return
        with self._place.lock():
            if self._path.exists() and identity(self._place.sibling("wal")) == old.log:
                # SQLite would take the log of the old file for the new one's.
                raise SpoolError("its file was replaced while it was in use: start the proxy again")
            self._move_entries(old)

    def _move_entries(self, old: OpenFile) -> None:
        """Copy all entries to the file now at the path and use it.  If that fails (disk full) the
        old file stays in use, and it is tried again."""
        if not self._missed:
            logger.error("the spool's file was deleted or replaced while it was in use")
            self._missed = True
        new = self._place.open()
        try:
            copy_entries(old.writer, new.writer)
        except BaseException:
            new.close()
            raise
        self._use(new)
        old.close()

    def _try_follow(self) -> None:
        """As ``_follow``; if it fails, the old file stays in use for reading."""
        with suppress(sqlite3.Error, OSError):
            self._follow()

    def close(self) -> None:
        with self._lock:  # a thread may still be at it
            self._closed = True
            if self._file is not None:
                self._file.close()
                self._file = None

    def put(self, key: SessionKey, exchange: str, kind: Kind, payload: bytes) -> None:
        """Add an entry; durable on return.  The same exchange and kind again is a no-op."""
        try:
            self._put(key, exchange, kind, payload)
        except SpoolDamaged:
            self._put(key, exchange, kind, payload)

    def _put(self, key: SessionKey, exchange: str, kind: Kind, payload: bytes) -> None:
        with self._writing() as db:
            if used_bytes(db) + len(payload) > self._max_bytes:
                raise SpoolError("the spool is full")
            db.execute(
                "INSERT OR IGNORE INTO entries"
                " (store, tenant, session, exchange, kind, payload, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (self._store, *key, exchange, kind, payload, time.time()),
            )

    def has_waiting(self, key: SessionKey) -> bool:
        """Whether this session has entries to replay.  Cheap: checked by every request."""
        return key in self.sessions()

    def is_idle(self) -> bool:
        """Whether there is nothing to replay."""
        return not self.sessions()

    def sessions(self) -> frozenset[SessionKey]:
        """The sessions that have entries to replay; as cheap."""
        file, now = self._file, time.monotonic()
        if file is None:
            return frozenset()
        with self._mapping_errors(file):
            # First: what is written or passed over after this has another one.
            stamp = bytes(file.stamp), self._skip_count
            if stamp != self._seen_stamp or now - self._stamp_read_at >= STAMP_SECONDS:
                version = file.reader.execute("PRAGMA data_version").fetchone()[0], stamp[1]
                if version != self._seen_version:
                    self._sessions, self._seen_version = self._read_sessions(file), version
                self._seen_stamp, self._stamp_read_at = stamp, now
        return self._sessions

    def _read_sessions(self, file: OpenFile) -> frozenset[SessionKey]:
        rows = file.reader.execute(
            f"SELECT tenant, session, max(id) FROM entries WHERE {_WAITS} GROUP BY tenant, session",
            (self._store,),
        ).fetchall()
        last = ((SessionKey(tenant, session), id) for tenant, session, id in rows)
        return frozenset(key for key, id in last if id > self._last_skipped(key))

    def _last_skipped(self, key: SessionKey) -> int:
        """The id of the last entry of a session that is skipped; -1 without any."""
        return self._skipped.get(key, -1)

    def entries(self, key: SessionKey | None = None, limit: int = 1000) -> list[SpoolEntry]:
        """The oldest entries, of one session or of all, in order; see ``PAGE_BYTES``."""
        where = " AND tenant = ? AND session = ? AND id > ?" if key else ""
        found: list[SpoolEntry] = []
        size = 0
        with self._reading() as db:
            rows = db.execute(
                "SELECT id, tenant, session, exchange, kind, payload FROM entries"
                f" WHERE {_WAITS}{where} ORDER BY id LIMIT ?",
                (self._store, *((*key, self._last_skipped(key)) if key else ()), limit),
            )
            for id, tenant, session, exchange, kind, payload in rows:
                size += len(payload)
                if found and size > PAGE_BYTES:
                    break
                found.append(SpoolEntry(id, SessionKey(tenant, session), exchange, kind, payload))
            rows.close()
        return found

    def oldest_by_session(self, after: int, limit: int) -> list[SessionHead]:
        """Each session's oldest entry, those after the id ``after``, the oldest first."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT min(id) AS head, tenant, session FROM entries"
                f" WHERE {_WAITS} GROUP BY tenant, session"
                " HAVING head > ? ORDER BY head LIMIT ?",
                (self._store, after, limit),
            ).fetchall()
        return [SessionHead(id, SessionKey(tenant, session)) for id, tenant, session in rows]

    def size_of(self, key: SessionKey) -> tuple[int, int]:
        """The number of a session's waiting entries, and the bytes of their payloads."""
        with self._reading() as db:
            row = db.execute(
                "SELECT count(*), coalesce(sum(length(payload)), 0) FROM entries"
                f" WHERE {_WAITS} AND tenant = ? AND session = ? AND id > ?",
                (self._store, *key, self._last_skipped(key)),
            ).fetchone()
        return int(row[0]), int(row[1])

    def remove(self, entry: SpoolEntry | QuarantinedEntry) -> None:
        with self._writing() as db:
            db.execute(f"DELETE FROM entries WHERE {_SAME}", _identity_of(entry))

    def quarantine(self, entry: SpoolEntry, reason: str) -> None:
        """Set aside an entry that can never be replayed."""
        with self._writing() as db:
            query = f"UPDATE entries SET quarantined = ? WHERE {_SAME}"
            db.execute(query, (reason, *_identity_of(entry)))

    def skip(self, entry: SpoolEntry) -> None:
        """Treat an entry that was replayed but cannot be deleted, and older ones of its session, as
        gone: in this process, until ``unskip_all``."""
        with self._reading() as db:
            if db.execute(f"SELECT 1 FROM entries WHERE {_SAME}", _identity_of(entry)).fetchone():
                self._skipped[entry.key] = max(entry.id, self._last_skipped(entry.key))
                self._skip_count += 1

    def unskip_all(self) -> None:
        """Let everything that is still in the file be replayed again, and deleted."""
        with self._lock:
            self._skipped = {}
            self._skip_count += 1

    def quarantined(self) -> list[QuarantinedEntry]:
        with self._reading() as db:
            return spool_owners.quarantined(db, self._store)

    def sessions_of(self, tenant: str, user: str) -> list[str]:
        """The sessions with waiting entries that name this user."""
        with self._reading() as db:
            return spool_owners.sessions_of(db, self._store, tenant, user)

    def has_tenant(self, tenant: str) -> bool:
        """Whether there are entries of this tenant, quarantined ones and for any store."""
        with self._reading() as db:
            found = db.execute("SELECT 1 FROM entries WHERE tenant = ? LIMIT 1", (tenant,))
            return found.fetchone() is not None

    def count_waiting(self, tenant: str) -> int:
        """The number of this tenant's exchanges that wait."""
        with self._reading() as db:
            row = db.execute(
                f"SELECT count(DISTINCT exchange) FROM entries WHERE {_WAITS} AND tenant = ?",
                (self._store, tenant),
            ).fetchone()
        return int(row[0])

    def count(self, whose: EntryOwner) -> int:
        """The number of exchanges, quarantined ones and those for other stores included."""
        with self._reading() as db:
            return spool_owners.count(db, whose)

    def erase(self, whose: EntryOwner) -> int:
        """Remove what ``count`` counts, also from the bytes of the files."""
        with self._writing() as db:
            found = spool_owners.count(db, whose)
            if found:
                spool_owners.remove(db, whose)
        self.empty_log()
        return found

    def empty_log(self) -> None:
        """Empty the write-ahead log, so that deleted entries are in no file.  Raises SpoolError."""
        with self._reading() as db:
            busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise SpoolError("others use the spool all the while")

    def depth(self) -> tuple[int, int]:
        """Entries waiting and quarantined."""
        with self._reading() as db:
            row = db.execute(
                "SELECT count(*) FILTER (WHERE quarantined IS NULL),"
                " count(*) FILTER (WHERE quarantined IS NOT NULL) FROM entries WHERE store = ?",
                (self._store,),
            ).fetchone()
        return int(row[0]), int(row[1])

    def waiting_for_others(self) -> dict[str, int]:
        """The number of entries that wait for other stores, by store name."""
        with self._reading() as db:
            found = store_names.waiting_by_store(db)
        return {store: count for store, count in found.items() if store != self._store}

    def check(self) -> None:
        """Raise SpoolError unless the spool can be written, and has room."""
        with self._writing() as db:
            if shutil.disk_usage(self._path.parent).free < MIN_DISK_BYTES:
                raise SpoolFull("the disk of the spool is full")
            db.execute("DELETE FROM entries WHERE id = -1")
            if used_bytes(db) > self._max_bytes * FULL_SHARE:
                raise SpoolFull("the spool is nearly full")

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._using(self._try_follow)

    @contextmanager
    def _using(self, follow: Callable[[], None]) -> Iterator[sqlite3.Connection]:
        with self._lock, self._mapping_errors():
            if self._closed:
                raise SpoolError("the spool is not open")
            follow()
            yield self._open_file().writer

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._using(self._follow) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
            self._open_file().stamp.update()

    @contextmanager
    def _mapping_errors(self, file: OpenFile | None = None) -> Iterator[None]:
        """Raise SpoolError for errors of SQLite and files; ``file`` is the one in use, if not the
        current one."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            kind = SpoolError
            if is_damage(error) and self._renewing:
                kind, self._damaged = SpoolDamaged, file or self._file
            raise kind(f"the spool cannot be used: {error}") from error


def _identity_of(entry: SpoolEntry | QuarantinedEntry) -> tuple[int, str, str]:
    return entry.id, entry.exchange, entry.kind
