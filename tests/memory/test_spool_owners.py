"""Whose the entries of a spool are, and removing them for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.memory.erasure import Subject
from proxy.memory.model import Amendment, SessionKey
from proxy.memory.recording.spool import Kind, Spool, SpoolError
from proxy.memory.recording.spool_file import connect
from proxy.memory.recording.spool_owners import EntryOwner
from tests.support.store.commits import chat, draft
from tests.support.store.recording import deferred, said
from tests.support.store.scanning import found_in_files

STORE = "redis://127.0.0.1:6379"
MANY = 1 << 24
MARKER = "the-secret-marker"


def opened(path: Path, store: str = STORE) -> Spool:
    spool = Spool(path, store, MANY)
    spool.open()
    return spool


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


@pytest.fixture
def spool(path: Path) -> Iterator[Spool]:
    made = opened(path)
    yield made
    made.close()


def key(session: str, tenant: str = "tenant") -> SessionKey:
    return SessionKey(tenant, session)


def put(
    spool: Spool, session: str, id: str, user: str | None = None, kind: Kind = "commit", **of: Any
) -> None:
    """An exchange in which the marker is said; an amendment names nobody."""
    made: msgspec.Struct
    if kind == "commit":
        made = chat(id, user=user)
        made = msgspec.structs.replace(made, drafts=(marked(id),))
    elif kind == "deferred":
        made = deferred(id, said(MARKER), user=user)
    else:
        made = Amendment(exchange=id, drafts=(marked(id),))
    spool.put(key(session, **of), id, kind, msgspec.json.encode(made))


def marked(id: str) -> Any:
    return msgspec.structs.replace(draft(id, 0), body=b'{"content":"%b"}' % MARKER.encode())


def left(spool: Spool) -> list[str]:
    return [entry.exchange for entry in spool.entries()]


def test_what_names_a_person_is_theirs_with_what_was_added_to_it(spool: Spool) -> None:
    put(spool, "a", "x1", "kai")
    put(spool, "b", "x2", "kai", "deferred")
    put(spool, "b", "x2", None, "amendment")
    put(spool, "c", "x3", "eve")
    put(spool, "d", "x4")
    whose = EntryOwner("tenant", (), "kai")
    assert spool.count(whose) == 2
    assert spool.sessions_of("tenant", "kai") == ["a", "b"]
    assert spool.erase(whose) == 2
    assert left(spool) == ["x3", "x4"] and spool.count(whose) == 0


def test_a_session_is_erased_whoever_spoke_in_it(spool: Spool) -> None:
    put(spool, "a", "x1", "kai")
    put(spool, "a", "x2")
    put(spool, "b", "x3", "kai")
    assert spool.erase(EntryOwner("tenant", ("a",))) == 2
    assert left(spool) == ["x3"]


def test_what_names_nobody_is_nobodys(spool: Spool) -> None:
    put(spool, "a", "x1")
    put(spool, "b", "x2", None, "deferred")
    assert spool.count(EntryOwner("tenant")) == 0
    assert spool.count(EntryOwner("tenant", (), "None")) == 0
    assert spool.erase(EntryOwner("tenant")) == 0
    assert left(spool) == ["x1", "x2"]


def test_another_tenants_are_left_alone(spool: Spool) -> None:
    put(spool, "a", "x1", "kai")
    put(spool, "a", "x2", "kai", tenant="other")
    assert spool.erase(EntryOwner("tenant", ("a",), "kai")) == 1
    assert left(spool) == ["x2"]


def test_what_is_quarantined_or_waits_for_another_store_is_erased_too(
    path: Path, spool: Spool
) -> None:
    put(spool, "a", "x1", "kai")
    spool.quarantine(spool.entries()[0], "foreign")
    another = opened(path, "redis://elsewhere:6379")
    put(another, "a", "x2", "kai")
    assert spool.sessions_of("tenant", "kai") == []
    assert spool.erase(EntryOwner("tenant", (), "kai")) == 2
    assert spool.depth() == (0, 0) and another.is_idle()
    another.close()


@pytest.mark.parametrize("payload", [b"", b"\xff\xfe", b"{", b"[1]", b'"kai"', b'{"user":{}}'])
def test_what_nobody_can_read_is_found_by_its_session_alone(spool: Spool, payload: bytes) -> None:
    spool.put(key("a"), "x1", "commit", payload)
    put(spool, "b", "x2", "kai")
    assert spool.erase(EntryOwner("tenant", (), "kai")) == 1
    assert left(spool) == ["x1"]
    assert spool.erase(EntryOwner("tenant", ("a",))) == 1
    assert left(spool) == []


@pytest.mark.parametrize("kind", ["commit", "deferred", "amendment"])
def test_nothing_that_was_erased_is_in_the_files(path: Path, spool: Spool, kind: Kind) -> None:
    for number in range(20):
        put(spool, "a", f"x{number}", "kai", kind)
    put(spool, "b", "y", "eve")
    spool.erase(EntryOwner("tenant", ("a",)))
    assert left(spool) == ["y"] and found_in_files(path.parent, MARKER)
    spool.remove(spool.entries()[0])
    spool.empty_log()
    assert found_in_files(path.parent, MARKER) == []


def test_an_erasure_says_so_if_others_keep_what_is_gone_in_the_log(
    path: Path, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.memory.recording.place.LOCK_TIMEOUT", 0.05)
    impatient = opened(path)
    put(spool, "a", "x1", "kai")
    other = connect(path, 0.05)
    other.execute("BEGIN")
    assert other.execute("SELECT count(*) FROM entries").fetchone() == (1,)
    with pytest.raises(SpoolError, match="all the while"):
        impatient.erase(EntryOwner("tenant", ("a",)))
    other.execute("COMMIT")
    other.close()
    assert impatient.erase(EntryOwner("tenant", ("a",))) == 0
    assert found_in_files(path.parent, MARKER) == []
    impatient.close()


def test_what_is_quarantined_is_told_with_whom_it_names_and_when_it_began(spool: Spool) -> None:
    before = time.time()
    put(spool, "a", "x1", "kai")
    put(spool, "b", "x2", "eve", "deferred")
    put(spool, "c", "x3")
    spool.put(key("d"), "x4", "commit", b"unread")
    for entry in spool.entries():
        spool.quarantine(entry, "foreign")
    *legible, unread = spool.quarantined()
    assert [entry[1:] for entry in legible] == [
        ("x1", "commit", "tenant", "a", "kai", 1000.0),
        ("x2", "deferred", "tenant", "b", "eve", 1000.0),
        ("x3", "commit", "tenant", "c", None, 1000.0),
    ]
    assert unread[3:6] == ("tenant", "d", None) and before <= unread.began <= time.time()
    assert legible[0].subjects == [Subject("tenant", session="a"), Subject("tenant", "kai")]
    assert unread.subjects == [Subject("tenant", session="d")]
    spool.remove(unread)
    assert spool.depth() == (0, 3)


IDS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=4)
ENTRIES = st.lists(
    st.tuples(IDS, st.one_of(st.none(), IDS), st.sampled_from(["commit", "deferred"])), max_size=8
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(entries=ENTRIES, sessions=st.sets(IDS, max_size=3), user=IDS, data=st.data())
def test_exactly_what_is_theirs_is_erased(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[str, str | None, Kind]],
    sessions: set[str],
    user: str,
    data: Any,
) -> None:
    # An example that hypothesis gives up must not leave it open.
    with closing(opened(tmp_path_factory.mktemp("spool") / "spool.db")) as spool:
        if entries and data.draw(st.booleans()):
            sessions.add(entries[0][0])
            user = entries[-1][1] or user
        for number, (session, named, kind) in enumerate(entries):
            put(spool, session, f"x{number}", named, kind)
        theirs = {
            f"x{number}"
            for number, (session, named, _) in enumerate(entries)
            if session in sessions or named == user
        }
        assert spool.erase(EntryOwner("tenant", sessions, user)) == len(theirs)
        assert set(left(spool)) == {f"x{number}" for number in range(len(entries))} - theirs
