"""``memory-proxy restore``: a backup in the place of a database, of which nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from proxy.cli import app
from proxy.commands import restore
from proxy.stores.sqlite.schema import MIGRATIONS, connect, migrate
from tests.commands.conftest import Program
from tests.support.waiting import PATIENCE

RUNNER = CliRunner()

SESSION = (
    "INSERT INTO sessions (tenant, session, system_tokens, next, messages, tokens, ttl,"
    " created_at, last_active_at) VALUES ('t', ?, 0, 0, 0, 0, 0, 0, 0)"
)


def put_back(store: Path | str, file: Path) -> Result:
    url = store if isinstance(store, str) else f"sqlite:///{store}"
    spool = {"MEMORY_PROXY_SPOOL__PATH": str(file.parent / "spool.db")}
    return RUNNER.invoke(app, ["restore", str(file), "--store", url], env=spool)


def made(path: Path, *sessions: str) -> Path:
    with closing(connect(path, PATIENCE)) as connection:
        for session in sessions:
            connection.execute(SESSION, (session,))
    return path


def killed(path: Path, *sessions: str) -> Path:
    """As SIGKILL leaves it: what was said last is in the log alone."""
    live = made(path.with_name("live.db"))
    with closing(connect(live, PATIENCE)) as connection:
        for session in sessions:
            connection.execute(SESSION, (session,))
        for end in ("", "-wal", "-shm"):
            shutil.copy(f"{live}{end}", f"{path}{end}")
    live.unlink()
    return path


def sessions_in(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [row[0] for row in connection.execute("SELECT session FROM sessions ORDER BY id")]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return made(folder / "backup.db", "saved")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


def test_the_log_of_a_killed_proxy_does_not_come_over_the_backup(
    folder: Path, backup: Path
) -> None:
    path = killed(folder / "m.db", "told", "told last")
    result = put_back(path, backup)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        f"{path}: 1 session",
        f"note: what was there is kept: {path}.before-restore-1",
        "note: what was erased since this backup is in it again: erase it again",
    ]
    assert names_in(folder) == ["m.db", "m.db.before-restore-1"]
    assert sessions_in(path) == ["saved"]
    assert sessions_in(folder / "m.db.before-restore-1") == ["told", "told last"]
    assert sessions_in(backup) == ["saved"]
    assert names_in(backup.parent) == ["backup.db"]


def test_whenever_it_is_killed_there_is_the_old_database_or_the_new_one(
    folder: Path, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = killed(folder / "m.db", "told")
    moments = (tmp_path / f"moment-{number}" for number in count())

    def seen(does: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object) -> object:
            shutil.copytree(folder, next(moments))
            return does(*arguments)

        return step

    for name in ("link", "replace", "unlink", "fsync"):
        monkeypatch.setattr(os, name, seen(getattr(os, name)))
    assert put_back(path, backup).exit_code == 0
    monkeypatch.undo()
    seen_then = [sessions_in(each / "m.db") for each in sorted(tmp_path.glob("moment-*"))]
    assert len(seen_then) > 5
    assert all(each in (["told"], ["saved"]) for each in seen_then)
    assert seen_then[0] == ["told"] and sessions_in(path) == ["saved"]


def test_what_was_kept_can_be_put_back(folder: Path, backup: Path) -> None:
    path = made(folder / "m.db", "told")
    put_back(path, backup)
    kept = folder / "m.db.before-restore-1"
    assert put_back(path, kept).exit_code == 0
    assert (sessions_in(path), sessions_in(kept)) == (["told"], ["told"])
    assert sessions_in(folder / "m.db.before-restore-2") == ["saved"]


def test_a_link_stays_and_what_it_names_is_restored(folder: Path, backup: Path) -> None:
    path = killed(folder / "m.db", "told")
    (folder / "link.db").symlink_to(path)
    assert put_back(folder / "link.db", backup).exit_code == 0
    assert (folder / "link.db").is_symlink()
    assert sessions_in(folder / "link.db") == ["saved"]
    assert names_in(folder) == ["link.db", "m.db", "m.db.before-restore-1"]


def test_who_may_read_it_stays(folder: Path, backup: Path) -> None:
    path = made(folder / "m.db", "told")
    path.chmod(0o640)
    put_back(path, backup)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_store_that_is_not_there_is_made_private(tmp_path: Path, backup: Path) -> None:
    path = tmp_path / "new" / "m.db"
    result = put_back(path, backup)
    assert (result.exit_code, "kept" in result.stdout) == (0, False)
    assert (sessions_in(path), names_in(path.parent)) == (["saved"], ["m.db"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_without_its_file_is_kept_and_not_read(folder: Path, backup: Path) -> None:
    path = killed(folder / "m.db", "told")
    path.unlink()
    assert put_back(path, backup).exit_code == 0
    assert sessions_in(path) == ["saved"]
    kept = "m.db.before-restore-1"
    assert names_in(folder) == ["m.db", f"{kept}-shm", f"{kept}-wal"]


def test_a_damaged_database_is_kept_as_it_is(folder: Path, backup: Path) -> None:
    path = folder / "m.db"
    path.write_bytes(b"garbage" * 5000)
    assert put_back(path, backup).exit_code == 0
    assert sessions_in(path) == ["saved"]
    assert (folder / "m.db.before-restore-1").read_bytes() == b"garbage" * 5000


def refused(result: Result, status: int, reason: str, folder: Path, names: list[str]) -> None:
    assert (result.exit_code, result.stdout) == (status, "")
    assert reason in result.stderr
    assert names_in(folder) == names


@pytest.mark.parametrize("damaged", [False, True])
def test_a_database_that_somebody_has_open_is_left(
    damaged: bool, folder: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "STORE_TIMEOUT", 0)
    path = made(folder / "m.db", "told")
    with closing(connect(path, PATIENCE)) as connection:
        connection.execute(SESSION, ("told now",))
        if damaged:
            connection.execute("PRAGMA wal_checkpoint").fetchone()
            with path.open("r+b") as file:
                file.write(b"x" * 200)
        result = put_back(path, backup)
        refused(result, 5, "stop the proxy", folder, ["m.db", "m.db-shm", "m.db-wal"])
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (2,)


def test_a_proxy_that_serves_is_not_disturbed(
    program: Program, talked: str, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "STORE_TIMEOUT", 0)
    result = put_back(program.store, backup)
    assert (result.exit_code, "is in use" in result.stderr) == (5, True)
    assert program.api("GET", f"/sessions/{talked}").status_code == 200


def damaged_in_the_middle(path: Path) -> None:
    made(path, *(f"session {number}" for number in range(300)))
    with path.open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(b"x" * 4096)


def cut_short(path: Path) -> None:
    made(path, "saved")
    os.truncate(path, 8192)


def of_a_newer_release(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE entries (store TEXT)")
        connection.execute("PRAGMA user_version = 2")


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        pytest.param(lambda path: path.write_bytes(b""), "it is empty", id="empty"),
        pytest.param(lambda path: path.write_text("garbage" * 99), "not a database", id="garbage"),
        pytest.param(cut_short, "malformed", id="cut-short"),
        pytest.param(damaged_in_the_middle, "damaged", id="damaged"),
        pytest.param(of_a_newer_release, "has schema 99", id="newer"),
        pytest.param(of_another_program, "another program's", id="another-program"),
    ],
)
def test_what_is_no_whole_backup_is_refused(
    write: Callable[[Path], object], reason: str, folder: Path, tmp_path: Path
) -> None:
    path, file = made(folder / "m.db", "told"), tmp_path / "backup.db"
    write(file)
    refused(put_back(path, file), 1, reason, folder, ["m.db"])
    assert sessions_in(path) == ["told"]


def test_what_is_no_file_or_the_database_itself_is_refused(folder: Path, backup: Path) -> None:
    path = made(folder / "m.db", "told")
    refused(put_back(path, folder / "none"), 3, "no file", folder, ["m.db"])
    refused(put_back(path, folder), 2, "is no file", folder, ["m.db"])
    refused(put_back(path, path), 2, "the database itself", folder, ["m.db"])
    redis = put_back("redis://:hush@127.0.0.1:1/0", backup)
    assert (redis.exit_code, "dump.rdb" in redis.stderr, "hush" in redis.stderr) == (2, True, False)


def test_without_a_second_name_nothing_is_changed(
    folder: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = made(folder / "m.db", "told")
    monkeypatch.setattr(os, "link", none)
    refused(put_back(path, backup), 1, "move it away", folder, ["m.db"])
    assert sessions_in(path) == ["told"]


def test_a_backup_with_a_log_is_read_with_it(folder: Path, tmp_path: Path) -> None:
    file = killed(tmp_path / "backup.db", "saved", "saved last")
    assert put_back(folder / "m.db", file).exit_code == 0
    assert sessions_in(folder / "m.db") == ["saved", "saved last"]


def test_a_backup_of_an_older_release_is_put_back_as_it_is(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:4])
    result = put_back(folder / "m.db", file)
    assert (result.exit_code, "has schema 4" in result.stdout) == (0, True)


def test_what_waits_in_the_spool_is_told(folder: Path, backup: Path) -> None:
    path = folder / "m.db"
    with closing(sqlite3.connect(backup.parent / "spool.db")) as spool, spool:
        spool.execute("CREATE TABLE entries (store TEXT, quarantined TEXT)")
        spool.execute("INSERT INTO entries VALUES (?, NULL)", (f"sqlite:///{path}",))
        spool.execute("INSERT INTO entries VALUES ('sqlite:////another.db', NULL)")
    assert "1 exchange in the spool" in put_back(path, backup).stdout
