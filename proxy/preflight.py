"""Checks before the start: addresses, certificates, and whether files can be written."""

from __future__ import annotations

import logging
import os
import sqlite3
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.assembly.origin import upstream_options
from proxy.lazy import lazy_import
from proxy.memory.store import StoreError
from proxy.process.sqlite_file import sqlite_name
from proxy.process.sqlite_version import version_problem
from proxy.settings import Settings
from proxy.stores.address import read_address
from proxy.stores.sqlite.schema import IS_FOLDER, SUFFIXES, Unusable, connect, schema_of

if TYPE_CHECKING:
    from proxy.learning.profile import document as profile_schema
else:
    profile_schema = lazy_import("proxy.learning.profile.document")


logger = logging.getLogger(__name__)

STORE_LOCK_TIMEOUT = 10.0
"""Seconds to wait for other processes that lock the store's file."""


def configuration_problems(settings: Settings) -> Iterator[str]:
    """Problems of addresses and files that the settings alone do not show."""
    try:
        upstream_options(settings)
    except ValueError as error:
        yield f"upstream: {error}"
    for index, listed in enumerate(settings.upstreams):
        try:
            upstream_options(settings.with_upstream(listed))
        except ValueError as error:
            yield f"upstreams[{index}]: {error}"
    yield from _certificate_problems(settings)
    if read_address(settings.store.url).kind in ("sqlite", "memory") and (old := version_problem()):
        yield f"store.url: {old}"
    for path in sorted(settings.schemas - {""}):
        try:
            profile_schema.read_schema(path)
        except ValueError as error:
            yield f"memory.profile.schema: {error}"


def _certificate_problems(settings: Settings) -> Iterator[str]:
    """Problems of the certificate files for upstreams and store."""
    listed = {f"upstreams[{n}].ca_file": each.ca_file for n, each in enumerate(settings.upstreams)}
    store = read_address(settings.store.url).options
    if problem := _client_certificate_problem(store.get("ssl_certfile"), store.get("ssl_keyfile")):
        yield f"store.url: {problem}"
    files = {"upstream.ca_file": settings.upstream.ca_file, **listed}
    for name, path in {**files, "store.url: ssl_ca_certs": store.get("ssl_ca_certs")}.items():
        if path is None:
            continue
        try:
            ssl.create_default_context(cafile=path)
        except ssl.SSLError:
            yield f"{name}: {path} holds no certificate"
        except (OSError, ValueError) as error:
            yield f"{name}: cannot read {path}: {getattr(error, 'strerror', error)}"


def _client_certificate_problem(certificate: str | None, key: str | None) -> str | None:
    """Why the certificate cannot be shown to Redis.  Without a file of its own the key is in it."""
    if certificate is None:
        return key and "ssl_keyfile: is of no use without ssl_certfile"
    for name, path in {"ssl_certfile": certificate, "ssl_keyfile": key or certificate}.items():
        try:
            Path(path).open("rb").close()
        except OSError as error:
            return f"{name}: cannot read {path}: {error.strerror}"
    try:  # with a password, or OpenSSL asks the terminal for one
        ssl.create_default_context().load_cert_chain(certificate, key, password="")
    except ssl.SSLError:
        return f"ssl_certfile: {certificate} holds no certificate, or its key is not there"
    return None


def start_problem(settings: Settings) -> str | None:
    """Why ``serve`` must not start, None if it may.

    A server that is down is no reason: the proxy starts without it and the spool takes over; nor
    is a spool that cannot be written, which the log and /readyz report.  A store on this host's own
    disk that cannot be written will not come back by itself.
    """
    address = read_address(settings.store.url)
    problem = write_problem(address.path) if address.kind == "sqlite" else None
    return problem or address_file_problem(settings)


def address_file_problem(settings: Settings) -> str | None:
    """Why ``server.address_file`` cannot be written, None if it can.  Changes nothing."""
    file = Path(settings.server.address_file or os.devnull)
    try:
        if not file.exists():
            with tempfile.TemporaryFile(dir=file.parent):
                return None
    except OSError as error:
        reason = error.strerror or error
        return f"server.address_file: cannot write in the folder {file.parent}: {reason}"
    if file.is_dir() or not os.access(file, os.W_OK):
        return f"server.address_file: cannot write the file {file}"
    return None


def schema_problem(settings: Settings) -> str | None:
    """Why the store's file can never be used as it is, None if it can or may later.

    With a file of a newer release, or none of ours, a proxy would fill its spool for ever.
    """
    address = read_address(settings.store.url)
    if address.kind != "sqlite":
        return None
    try:
        schema_of(address.path, STORE_LOCK_TIMEOUT)
    except Unusable as error:
        return f"store.url: {address.path}: {error}"
    except (sqlite3.Error, OSError):
        pass  # in use, or away: that may pass
    return None


def migrate_store(settings: Settings) -> None:
    """Create the store's file or migrate it to this release's schema, before requests come."""
    address = read_address(settings.store.url)
    if address.kind != "sqlite":
        return
    try:
        connect(address.path, STORE_LOCK_TIMEOUT).close()
    except (sqlite3.Error, OSError, StoreError) as error:
        logger.warning("the database cannot be used yet: %s", error)


def write_problem(file: Path) -> str | None:
    """Why a database file cannot be written, None if it can.  Makes its folder."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # SQLite needs the folder too, for its journal.
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        return f"cannot write in the folder {file.parent}: {error.strerror or error}"
    if file.is_dir():
        return f"{file} {IS_FOLDER}"
    if file.exists() and not os.access(file, os.R_OK | os.W_OK):
        return f"cannot write the file {file}"
    return None


FILE_LOCK_TIMEOUT = 5.0
"""Seconds to wait for other processes that lock a file."""

TRIAL_BYTES = 64 * 1024
"""Bytes to write to try a disk: about what a new database needs."""


def database_problem(path: Path) -> str | None:
    """Why a database file cannot be read and written, None if it can.

    Nothing that was not there stays: neither folders nor files.
    """
    if path.is_dir():
        return f"{path} {IS_FOLDER}"
    try:
        if path.exists():
            _try_existing(path)
        else:
            _try_beside(path)
    except sqlite3.Error as error:
        return f"{path} cannot be used: {_explain(error)}"
    except OSError as error:
        return f"cannot write in the folder {path.parent}: {error.strerror or error}"
    return None


def _explain(error: sqlite3.Error) -> str:
    if sqlite_name(error) == "SQLITE_NOTADB":
        return f"{error}; move it away, or name another"
    return str(error)


def _try_existing(path: Path) -> None:
    address = f"{path.absolute().as_uri()}?mode=rw"
    with _open_database(address, uri=True) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.execute("BEGIN IMMEDIATE")
        # Touches a page and thereby the disk, and changes nothing.
        number = connection.execute("PRAGMA application_id").fetchone()[0]
        connection.execute(f"PRAGMA application_id = {number}")
        connection.execute("COMMIT")
    _try_beside(path)


def _try_beside(path: Path) -> None:
    """Try another database in the same folder: SQLite needs the folder for its logs too."""
    with (
        _folder(path.parent) as folder,
        _scratch(folder, path.name) as file,
        _open_database(str(file)) as connection,
    ):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE trial (data BLOB)")
        connection.execute("INSERT INTO trial VALUES (zeroblob(?))", (TRIAL_BYTES,))


@contextmanager
def _open_database(address: str, *, uri: bool = False) -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(address, timeout=FILE_LOCK_TIMEOUT, isolation_level=None, uri=uri)
    with closing(made) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        yield connection


@contextmanager
def _folder(folder: Path) -> Iterator[Path]:
    """The folder; parts of its path that did not exist are removed afterwards."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        for each in missing:
            with suppress(OSError):  # somebody else has put something into it meanwhile
                each.rmdir()


@contextmanager
def _scratch(folder: Path, name: str) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", delete=False) as file:
        path = Path(file.name)
    try:
        yield path
    finally:
        for end in ("", *SUFFIXES):
            path.with_name(path.name + end).unlink(missing_ok=True)
