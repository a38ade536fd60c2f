"""The SQLite file: its schema, version by version, how it is opened, and how it is migrated.

Knows SQL and the file system, no chats.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

from proxy.memory.store import StoreError
from proxy.process.sqlite_file import create_private, is_busy, is_damage

# Rows of a session are stored next to each other (WITHOUT ROWID, session first), for loads.
# entry comes before body, so that reading cards does not read the pages of long bodies.
_VERSION_1 = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    owner TEXT,
    system BLOB,
    system_tokens INTEGER NOT NULL,
    next INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    last TEXT,
    ttl INTEGER NOT NULL,
    expires_at REAL,
    created_at REAL NOT NULL,
    last_active_at REAL NOT NULL,
    UNIQUE (tenant, session)
);
CREATE INDEX activity ON sessions (tenant, last_active_at, session);
CREATE INDEX activity_of_user ON sessions (tenant, owner, last_active_at, session)
    WHERE owner IS NOT NULL;
CREATE INDEX expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE messages (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    active INTEGER NOT NULL,
    entry BLOB NOT NULL,
    body BLOB NOT NULL,
    wire BLOB,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE INDEX log ON messages (session, turn, seq, tokens) WHERE active = 1;
CREATE TABLE exchanges (
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    first INTEGER NOT NULL,
    size INTEGER NOT NULL,
    choices INTEGER NOT NULL,
    profile TEXT NOT NULL,
    started_at REAL NOT NULL,
    created_at REAL NOT NULL,
    record BLOB NOT NULL,
    usage BLOB,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;
CREATE INDEX choices ON exchanges (session, first) WHERE choices = 1;
CREATE TABLE windows (
    session INTEGER NOT NULL,
    profile TEXT NOT NULL,
    turn INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (session, profile)
) WITHOUT ROWID;
CREATE TABLE keys (
    session INTEGER NOT NULL,
    key TEXT NOT NULL,
    exchange TEXT NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (session, key)
) WITHOUT ROWID;
CREATE INDEX key_age ON keys (session, created_at)
"""

# The indexes.  Terms are hashes, so the postings of a message are far apart: writing it costs a
# page per term.  An owner's id is never reused (AUTOINCREMENT): the rows of a dropped index are
# found by it (waste) and removed in steps.
_VERSION_2 = """
CREATE TABLE owners (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    revision INTEGER NOT NULL,
    state BLOB NOT NULL,
    passages INTEGER NOT NULL,
    expires_at REAL,
    UNIQUE (tenant, user, session)
);
CREATE INDEX owner_expiry ON owners (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE marks (
    owner INTEGER NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (owner, session)
) WITHOUT ROWID;
CREATE INDEX mark_number ON marks (owner, number);
CREATE TABLE passages (
    owner INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (owner, number)
) WITHOUT ROWID;
CREATE TABLE postings (
    owner INTEGER NOT NULL,
    term BLOB NOT NULL,
    block INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (owner, term, block)
) WITHOUT ROWID;
CREATE TABLE vectors (
    owner INTEGER NOT NULL,
    block INTEGER NOT NULL,
    model TEXT NOT NULL,
    size INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (owner, block, model, size)
);
CREATE TABLE waste (owner INTEGER PRIMARY KEY)
"""

# A claimed piece of work is due when its lease expires.
_VERSION_3 = """
ALTER TABLE sessions ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN stalled INTEGER NOT NULL DEFAULT 0;
CREATE TABLE summaries (
    session INTEGER NOT NULL,
    version INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (session, version)
) WITHOUT ROWID;
CREATE TABLE work (
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    profile TEXT NOT NULL,
    due REAL NOT NULL,
    asked INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lease TEXT NOT NULL,
    PRIMARY KEY (tenant, session, kind)
) WITHOUT ROWID;
CREATE INDEX work_due ON work (due)
"""

# Places are packed so that they sort by namespace and key; value comes last, so that reading places
# does not read the pages of long values.
_VERSION_4 = """
CREATE TABLE items (
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    place BLOB NOT NULL,
    version INTEGER NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    expires_at REAL,
    value BLOB NOT NULL,
    PRIMARY KEY (tenant, user, place)
) WITHOUT ROWID;
CREATE INDEX item_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE usage (
    tenant TEXT NOT NULL,
    day TEXT NOT NULL,
    feature TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, feature)
) WITHOUT ROWID
"""

# Titles and metadata of sessions, and erasure marks.  A subject is a hash: the id of an erased
# person is not kept.
_VERSION_5 = """
ALTER TABLE sessions ADD COLUMN title TEXT;
ALTER TABLE sessions ADD COLUMN metadata BLOB NOT NULL DEFAULT x'7b7d';
CREATE INDEX exchange_place ON exchanges (session, first);
CREATE TABLE erasures (
    subject BLOB NOT NULL PRIMARY KEY,
    until REAL NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX erasure_expiry ON erasures (expires_at)
"""

# A lookup in a table WITHOUT ROWID reads whole rows on its way: so instead of a long value it has
# the id of a text.  Long values of older versions stay where they are.
_TEXTS = "CREATE TABLE texts (id INTEGER PRIMARY KEY, data BLOB NOT NULL)"


def _text_triggers(table: str, *columns: str) -> str:
    """Triggers that delete the texts of a row when it is deleted, or gets other values."""
    old = [f"OLD.{column}" for column in columns]
    when = f"WHEN 'integer' IN ({', '.join(f'typeof({each})' for each in old)})"
    trigger = f"{when} BEGIN DELETE FROM texts WHERE id IN ({', '.join(old)}); END"
    return (
        f"CREATE TRIGGER {table}_removed AFTER DELETE ON {table} {trigger};"
        f"CREATE TRIGGER {table}_changed AFTER UPDATE OF {', '.join(columns)} ON {table} {trigger}"
    )


_VERSION_6 = ";".join(
    [
        _TEXTS,
        _text_triggers("messages", "body", "wire"),
        _text_triggers("exchanges", "record"),
        _text_triggers("items", "value"),
    ]
)

MIGRATIONS = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5, _VERSION_6)
"""The script at index N migrates from version N to N + 1.  Released ones are never edited."""


# Opening and migrating

logger = logging.getLogger(__name__)

IS_FOLDER = "is a folder: name a file in it"

SCHEMA = len(MIGRATIONS)
"""The version that this release writes."""

SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of SQLite's files beside the database; the first and the last contain data."""

MAX_IDLE_LOG = 16 * 1024 * 1024
"""Bytes to which the log is truncated when it is restarted: a long read lets it grow beyond its
usual 4 MB."""


class Unusable(StoreError):
    """The file cannot be used as it is, so that there is no use in trying again."""


def connect(path: Path, busy_timeout: float) -> Connection:
    """Open the file; create it if it is missing, and migrate it to the newest version.

    ``busy_timeout`` in seconds.  Raises OSError, sqlite3.Error, or Unusable.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    create_private(path)
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
    try:
        _enable_wal(connection, busy_timeout)
        _configure(connection)
        was = migrate(connection)
    except BaseException:
        connection.close()
        raise
    if was not in (0, SCHEMA):
        logger.warning("the database %s was brought from schema %d to %d", path, was, SCHEMA)
    return connection


def connect_as_is(path: Path, busy_timeout: float) -> Connection:
    """Open an existing file with this release's schema; neither create nor migrate it.

    For commands that use a store beside a proxy.  Raises as ``connect``, and StoreError for a file
    with another schema.
    """
    connection = reopen(path, busy_timeout)
    try:
        _configure(connection)
        found = version(connection)
        if found != SCHEMA:
            raise StoreError(_schema_message(found))
    except BaseException:
        connection.close()
        raise
    return connection


def schema_of(path: Path, busy_timeout: float) -> int | None:
    """The version of a file; 0 if it is empty, None if there is none.  Raises as ``connect``.

    Changes nothing, and waits at most ``busy_timeout`` for a lock.
    """
    if not path.exists():
        return None
    with closing(reopen(path, busy_timeout)) as connection:
        return version(connection)


def reopen(path: Path, busy_timeout: float) -> Connection:
    """A connection to an existing file.  Raises sqlite3.Error, also if there is none."""
    if path.is_dir():
        raise sqlite3.OperationalError(IS_FOLDER)
    address = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(address, timeout=busy_timeout, isolation_level=None, uri=True)


def _configure(connection: Connection) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA journal_size_limit = {MAX_IDLE_LOG}").fetchone()


def _schema_message(found: int) -> str:
    if not found:
        return "the database is empty: the first start of the proxy makes its tables"
    return (
        f"the database has schema {found}, this release writes {SCHEMA}: back it up, then start"
        " the proxy, which brings it up to date; there is no way back"
    )


def _enable_wal(connection: Connection, seconds: float) -> None:
    """Switch to write-ahead logging.

    Concurrent processes that do so on a new file lock each other out, and SQLite's busy timeout
    does not apply to it.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def migrate(connection: Connection, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Run the migrations that the file lacks, all or none of them; the version that it had."""
    known = len(migrations)
    found = version(connection, known)
    if found == known:
        return found
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again under the lock: another process may have migrated it.
        found = version(connection, known)
        for script in migrations[found:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {known}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return found


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; a trigger contains several semicolons."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def version(connection: Connection, known: int = SCHEMA) -> int:
    """The version of the file, 0 if it is empty.  Raises Unusable."""
    try:
        # In this order: if another process creates the tables now, it sets the version with them.
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise Unusable(f"{error}: name another file, or restore a backup") from error
        raise
    if found > known:
        raise Unusable(
            f"the database has schema {found}, this release knows up to {known}: "
            "use the newer release that wrote it, or another file"
        )
    if not found and tables:
        raise Unusable("the database is another program's: name another file")
    return found


def is_ours(connection: Connection, found: int) -> bool:
    """Whether a file has all tables of its version: other programs use version numbers too."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        migrate(model, MIGRATIONS[:found])
        return _names(model) <= _names(connection)


def _names(connection: Connection) -> set[tuple[str, str]]:
    return set(connection.execute("SELECT type, name FROM sqlite_master"))
