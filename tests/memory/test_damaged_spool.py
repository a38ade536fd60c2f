"""A spool whose file is damaged: it is set aside, and nothing that comes is lost by it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from proxy.memory.model import SessionKey
from proxy.memory.recording.spool import Spool, SpoolError
from proxy.memory.recording.spool_file import MAX_DAMAGED_FILES

STORE = "redis://127.0.0.1:6379"
ONE = SessionKey("tenant", "one")
TWO = SessionKey("tenant", "two")
MANY = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


def exchanges(spool: Spool, key: SessionKey | None = None) -> list[str]:
    return [entry.exchange for entry in spool.entries(key)]


def damage(path: Path, what: str) -> None:
    """A spool of ten entries of which a part is no more what it was."""
    made = Spool(path, STORE, MANY)
    made.open()
    for number in range(10):
        made.put(ONE, f"x{number}", "commit", bytes(10_000))
    made.close()
    found = bytearray(path.read_bytes())
    begin = {"its beginning": 0, "its middle": len(found) // 2}[what]
    found[begin : begin + 8192] = b"?" * 8192
    path.write_bytes(found)


@pytest.mark.parametrize("what", ["its beginning", "its middle"])
def test_a_damaged_spool_is_set_aside_and_another_takes_what_comes(
    path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    damage(path, what)
    aside, bytes_of_it = path.with_name("spool.db-damaged-1"), path.read_bytes()
    spool = Spool(path, STORE, MANY)
    spool.open(renewing=True)
    spool.put(TWO, "y1", "commit", b"{}")
    with suppress(SpoolError):
        spool.entries()
    spool.put(TWO, "y2", "commit", b"{}")
    assert spool.is_open and exchanges(spool, TWO) == ["y1", "y2"] and spool.has_waiting(TWO)
    left = [int(exchange[1:]) for exchange in exchanges(spool, ONE)]
    assert left == sorted(left) and len(left) < 10
    assert what == "its beginning" or {0, 9} <= set(left)
    spool.check()
    spool.close()
    assert len(bytes_of_it) <= aside.stat().st_size
    (record,) = caplog.records
    assert record.levelname == "ERROR" and str(aside) in record.getMessage()


def test_the_exchange_that_finds_the_damage_is_not_lost(path: Path) -> None:
    damage(path, "its middle")
    spool, other = Spool(path, STORE, MANY), Spool(path, STORE, MANY)
    for worker in (spool, other):
        worker.open(renewing=True)
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
    spool.put(TWO, "y1", "commit", b"{}")
    other.put(TWO, "y2", "commit", b"{}")
    assert exchanges(spool, TWO) == exchanges(other, TWO) == ["y1", "y2"]
    assert [each.name for each in path.parent.glob("*-damaged-?")] == ["spool.db-damaged-1"]
    for worker in (spool, other):
        worker.close()


def test_a_damaged_spool_stays_where_it_is_for_who_only_looks(path: Path) -> None:
    damage(path, "its beginning")
    before = path.read_bytes()
    spool = Spool(path, STORE, MANY)
    with pytest.raises(SpoolError):
        spool.open()
    assert path.read_bytes() == before and not list(path.parent.glob("*-damaged-*"))
    spool.close()


def test_so_many_damaged_spools_are_kept_and_no_more(path: Path) -> None:
    spool = Spool(path, STORE, MANY)
    for number in range(1, MAX_DAMAGED_FILES + 1):
        path.write_bytes(b"?" * 8192)
        spool.open(renewing=True)
        spool.close()
        assert path.with_name(f"spool.db-damaged-{number}").exists()
    path.write_bytes(b"?" * 8192)
    with pytest.raises(SpoolError, match="remove them"):
        spool.open(renewing=True)
    assert path.read_bytes() == b"?" * 8192
    spool.close()
