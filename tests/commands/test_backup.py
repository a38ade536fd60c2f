"""``memory-proxy backup``: all of a database, at one moment, beside who writes."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from proxy.cli import app
from proxy.commands import backup
from proxy.settings import load
from proxy.stores.sqlite.schema import MIGRATIONS, connect, migrate, schema_of
from tests.commands.conftest import Program
from tests.support.waiting import PATIENCE

RUNNER = CliRunner()


def back_up(store: str, file: Path) -> Result:
    return RUNNER.invoke(app, ["backup", str(file), "--store", store])


def test_a_backup_of_a_running_proxy_has_everything_and_is_private(
    program: Program, talked: str, tmp_path: Path
) -> None:
    file = tmp_path / "copy.db"
    result = back_up(program.store, file)
    assert (result.exit_code, result.stdout) == (0, f"{file}: {file.stat().st_size} bytes\n")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with closing(sqlite3.connect(file)) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    environ = {"MEMORY_PROXY_KEY": "sk-alice-and-friends"}
    at = ["--store", f"sqlite:///{file}"]
    shown = RUNNER.invoke(app, ["sessions", "show", talked, *at], env=environ)
    assert "What is the weather in Bergen?" in shown.output


def test_what_is_written_meanwhile_is_not_in_it_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "PAGES", 8)
    source, file = tmp_path / "memory.db", tmp_path / "copy.db"
    with closing(connect(source, PATIENCE)) as writer:
        writer.execute("CREATE TABLE filling (data BLOB)")
        writer.execute("INSERT INTO filling VALUES (zeroblob(1000000))")
        steps: list[int] = []

        def meanwhile(done: int, total: int) -> None:
            steps.append(done)
            writer.execute("INSERT INTO filling VALUES (zeroblob(10000))")

        settings = load(None, {"store.url": f"sqlite:///{source}"}, {})
        backup.back_up(settings, file, meanwhile)
        # It never began anew, though somebody wrote behind each step.
        assert steps == sorted(steps) and len(set(steps)) > 10
        assert writer.execute("SELECT count(*) FROM filling").fetchone()[0] > 10
    with closing(sqlite3.connect(file)) as copy:
        assert copy.execute("SELECT count(*) FROM filling").fetchone()[0] == 1
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_file_of_an_older_release_is_copied_as_it_is(tmp_path: Path) -> None:
    source, file = tmp_path / "memory.db", tmp_path / "copy.db"
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:4])
    file.write_text("an older backup")
    assert back_up(f"sqlite:///{source}", file).exit_code == 0
    assert [schema_of(path, PATIENCE) for path in (source, file)] == [4, 4]


@pytest.mark.parametrize("name", ["memory.db", "memory.db-wal", "link.db", "folder", "none/a.db"])
def test_a_backup_takes_the_place_of_nothing_that_is_in_use(name: str, tmp_path: Path) -> None:
    source = tmp_path / "memory.db"
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.db").symlink_to(source)
    with closing(connect(source, PATIENCE)) as connection:
        before = {path.name for path in tmp_path.iterdir()}
        result = back_up(f"sqlite:///{source}", tmp_path / name)
        assert (result.exit_code, result.stdout) == (2, "")
        assert {path.name for path in tmp_path.iterdir()} == before
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    missing = back_up(f"sqlite:///{tmp_path}/typo.db", tmp_path / "copy.db")
    assert (missing.exit_code, "There is no database at" in missing.stderr) == (3, True)
    redis = back_up("redis://:hush@127.0.0.1:1/0", tmp_path / "copy.db")
    assert (redis.exit_code, "RDB" in redis.stderr, "hush" in redis.stderr) == (2, True, False)
    (tmp_path / "text.db").write_text("garbage" * 50)
    garbage = back_up(f"sqlite:///{tmp_path}/text.db", tmp_path / "copy.db")
    assert garbage.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["text.db"]
