"""The procedure of an erasure: its marks, its rounds, and what it leaves to others."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.learning.collection import Busy
from proxy.learning.episodes.episode import Episode
from proxy.learning.evidence import Source
from proxy.learning.feedback_service import NoMessage
from proxy.learning.learned import Learned
from proxy.learning.profile.document import Schemas
from proxy.memory.archive import Revision, do_nothing
from proxy.memory.erasure import Subject
from proxy.memory.items import Change, ItemOwner, Namespace
from proxy.memory.model import MessageEdit, SessionKey, Summary
from proxy.memory.recording.spool import Spool
from proxy.memory.store import StoreError, StoreInUse
from proxy.memory_api.erasure import eraser as module
from proxy.memory_api.erasure.caches import TextCaches
from proxy.memory_api.erasure.eraser import (
    AT_ONCE,
    CONCURRENT_SESSIONS,
    LEASE,
    MAX_ROUNDS,
    RENEWAL,
    Eraser,
    Marks,
)
from proxy.memory_api.erasure.receipt import Counts, Receipt
from proxy.recall.index import IndexBatch, Owner
from proxy.recall.indexing.indexer import Indexer, passages_of
from proxy.settings import ProfileSettings
from proxy.stores.open import Backend, open_store
from proxy.stores.sqlite import file, rows, waste
from tests.support.clock import Clock
from tests.support.oracle.store import InMemoryStore
from tests.support.store.commits import chat, draft, record
from tests.support.store.passages import whole
from tests.support.store.recording import deferred, said
from tests.support.store.scanning import found_in_files
from tests.support.waiting import PATIENCE

NOW = 5000.0
PROFILE = ProfileSettings.model_validate(
    {
        "episodes": {"enabled": True},
        "instructions": {"enabled": True, "model": "m", "after_feedback": 100},
    }
)


def key(session: str, tenant: str = "t") -> SessionKey:
    return SessionKey(tenant, session)


def learned_over(store: Backend, clock: Clock) -> Learned:
    return Learned(
        store, Schemas([""]), lambda body: body.decode(), len, lambda name: PROFILE, clock
    )


def eraser_of(store: Backend, spool: Spool, learned: Learned, clock: Clock) -> Eraser:
    return Eraser(store, spool, learned, TextCaches(do_nothing, do_nothing), clock)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[Backend]:
    store = open_store(
        f"sqlite:///{tmp_path}/memory.db", timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock
    )
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def spool(store: Backend, tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path / "spool.db", store.name, 1 << 24)
    made.open()
    yield made
    made.close()


@pytest.fixture
def learned(store: Backend, clock: Clock) -> Learned:
    return learned_over(store, clock)


@pytest.fixture
def eraser(store: Backend, spool: Spool, learned: Learned, clock: Clock) -> Eraser:
    return eraser_of(store, spool, learned, clock)


def spooled(spool: Spool, session: str, id: str, user: str | None = None) -> None:
    made = deferred(id, said("hello"), user=user)
    spool.put(key(session), id, "deferred", msgspec.json.encode(made))


async def sessions(store: Backend, user: str | None = None) -> list[str]:
    return sorted(s.id for s in (await store.sessions("t", user, None, 100)).items)


# Marks


async def test_what_begins_during_an_erasure_is_refused_and_what_begins_behind_it_is_not(
    store: Backend, eraser: Eraser, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.commit(key("a"), chat("x1", user="kai"))
    outcomes: list[str] = []
    delete = store.delete

    async def slow(asked: SessionKey) -> bool:
        done = await delete(asked)
        clock.now += 3
        for id, session, user in [("y1", "a", "kai"), ("y2", "a", None), ("y3", "new", "kai")]:
            outcomes.append(await store.commit(key(session), chat(id, clock.now, user=user)))
        return done

    monkeypatch.setattr(store, "delete", slow)
    receipt = await eraser.erase_person("t", "kai")
    assert outcomes == ["erased"] * 3
    assert receipt.erased_at == NOW + 3
    for id, at, outcome in [("z1", NOW + 3, "erased"), ("z2", NOW + 3.1, "recorded")]:
        assert await store.commit(key("a"), chat(id, at, user="kai")) == outcome


async def test_marks_of_an_erasure_that_was_cut_off_run_out_by_themselves(
    store: Backend, eraser: Eraser, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LOWERED", 0)  # as far as a kill can be had here
    await store.commit(key("a"), chat("x1", user="kai"))

    async def fails(asked: SessionKey) -> bool:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", fails)
        with pytest.raises(asyncio.CancelledError):
            await eraser.erase_person("t", "kai")
    assert await store.commit(key("a"), chat("x2", NOW + LEASE, user="kai")) == "erased"
    assert await store.commit(key("a"), chat("x3", NOW + LEASE + 1, user="kai")) == "recorded"
    receipt = await eraser.erase_person("t", "kai")
    assert (receipt.counts.sessions, receipt.counts.messages) == (1, 4)
    assert receipt.erased_at == NOW


async def test_of_an_erasure_that_was_cut_off_no_mark_stays_on_sessions_already_removed(
    store: Backend, eraser: Eraser, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No erasure that follows could know of them."""
    monkeypatch.setattr(module, "MAX_LOWERED", 0)  # as far as a kill can be had here
    names = [f"s{n}" for n in range(2 * CONCURRENT_SESSIONS)]
    for name in names:
        await store.commit(key(name), chat("x1", user="kai"))
    delete, gone = store.delete, list[str]()

    async def killed(asked: SessionKey) -> bool:
        if len(gone) == CONCURRENT_SESSIONS:
            raise asyncio.CancelledError
        gone.append(asked.session)
        return await delete(asked)

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", killed)
        with pytest.raises(asyncio.CancelledError):
            await eraser.erase_person("t", "kai")
    await eraser.erase_person("t", "kai")
    outcomes = {
        (id, await store.commit(key(name), chat(id, at)))
        for name in names
        for id, at in [("y1", NOW), ("y2", NOW + 1)]
    }
    assert outcomes == {("y1", "erased"), ("y2", "recorded")}


@pytest.mark.parametrize(
    "error",
    [StoreError("connection refused"), asyncio.CancelledError()],
    ids=["failed", "was ended with the process"],
)
async def test_behind_an_erasure_that_is_not_complete_what_is_said_is_recorded(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    await store.commit(key("a"), chat("x1", user="kai"))

    async def fails(*_: object) -> bool:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", fails)
        with pytest.raises(type(error)):
            await eraser.erase_person("t", "kai")
    assert await store.commit(key("a"), chat("x2", NOW, user="kai")) == "erased"
    assert await store.commit(key("a"), chat("x3", NOW + 1, user="kai")) == "recorded"


@pytest.mark.parametrize("more", [0, 1])
async def test_a_store_that_cannot_lower_a_mark_keeps_nobody_waiting(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """It goes on behind the answer, of so many at once."""
    monkeypatch.setattr(module, "LOWERED_WITHIN", 0.001)
    monkeypatch.setattr(module, "LOWER_AFTER", 0.0)
    monkeypatch.setattr(module, "MAX_LOWERED", 1)
    free, mark = asyncio.Event(), store.mark

    async def locked(subjects: Sequence[Subject], until: float) -> None:
        if until > NOW:
            await mark(subjects, until)
            raise StoreError("locked")
        await free.wait()
        await mark(subjects, until)

    monkeypatch.setattr(store, "mark", locked)
    for number in range(1 + more):
        with pytest.raises(StoreError):
            await eraser.erase_person("t", f"kai{number}")
    free.set()
    await eraser.close()
    outcomes = [
        await store.commit(key(f"a{number}"), chat("x", NOW + 1, user=f"kai{number}"))
        for number in range(1 + more)
    ]
    assert outcomes == ["recorded", "erased"][: 1 + more]


async def test_marks_are_not_lowered_under_another_erasure_of_the_same(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOWERED_WITHIN", 0.001)
    asked: list[float] = []
    mark, drop_items = store.mark, store.drop_items

    async def noted(subjects: Sequence[Subject], until: float) -> None:
        asked.append(until - NOW)
        await mark(subjects, until)

    async def once(*shelf: Any) -> int:
        monkeypatch.setattr(store, "drop_items", drop_items)
        await asyncio.sleep(0)
        raise StoreError("away")

    monkeypatch.setattr(store, "mark", noted)
    monkeypatch.setattr(store, "drop_items", once)
    erasures = [eraser.erase_person("t", "kai") for _ in range(2)]
    failed, receipt = await asyncio.gather(*erasures, return_exceptions=True)
    await eraser.close()
    assert isinstance(failed, StoreError) and isinstance(receipt, Receipt)
    assert asked == [LEASE, LEASE, 0, 0]


async def test_marks_are_renewed_while_it_takes_long(clock: Clock) -> None:
    store = InMemoryStore(clock)
    marks, kai, session = Marks(store, clock), Subject("t", "kai"), Subject("t", session="a")
    await marks.put(kai)
    await marks.put(session)
    for _ in range(10):
        clock.now += RENEWAL - 1
        await marks.renew()
        for id, user, where in [("x", "kai", "b"), ("y", None, "a")]:
            late = chat(f"{id}{clock.now}", clock.now + LEASE - RENEWAL, user=user)
            assert await store.commit(key(where), late) == "erased"
    end = await marks.settle()
    assert end == clock.now and marks.sessions == ["a"]
    assert await store.commit(key("a"), chat("z1", end, user="kai")) == "erased"
    assert await store.commit(key("a"), chat("z2", end + 0.1, user="kai")) == "recorded"


class SlowStore(InMemoryStore):
    """Each question takes a second."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.clock, self.asked = clock, 0

    async def mark(self, subjects: Sequence[Subject], until: float) -> None:
        self.clock.now += 1
        self.asked += 1
        await super().mark(subjects, until)


async def test_thousands_of_marks_are_renewed_within_their_lease(clock: Clock) -> None:
    store = SlowStore(clock)
    marks = Marks(store, clock)
    for part in range(25):
        await marks.put(*(Subject("t", session=f"{part} {n}") for n in range(AT_ONCE)))
        clock.now += 1
    assert store.asked < 100
    for _ in range(3):
        clock.now += RENEWAL - 1
        await marks.renew()
        assert await store.commit(key("0 0"), chat(f"x{clock.now}", clock.now)) == "erased"
    renewed, clock.now = store.asked, clock.now + 1
    await marks.renew()
    assert store.asked == renewed  # there is time for something else
    end = await marks.settle()
    assert store.asked == renewed + 25 and len(marks.sessions) == 25 * AT_ONCE
    assert await store.commit(key("24 99"), chat("y", end)) == "erased"


async def test_sessions_are_marked_together_before_they_are_removed(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(7):
        await store.commit(key(f"s{n}"), chat("x", user="kai"))
    asked: list[int] = []
    mark = store.mark

    async def noted(subjects: Sequence[Subject], until: float) -> None:
        asked.append(len(subjects))
        await mark(subjects, until)

    monkeypatch.setattr("proxy.memory_api.erasure.eraser.AT_ONCE", 3)
    monkeypatch.setattr(store, "mark", noted)
    receipt = await eraser.erase_person("t", "kai")
    assert receipt.counts.sessions == 7 and not await sessions(store)
    lowered = 3
    assert asked == [1, 3, lowered, 3, lowered, 1, 1, 1]
    assert await store.commit(key("s6"), chat("y", NOW)) == "erased"


async def test_behind_a_failure_nothing_is_removed_any_more(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several are removed at once: what is said when the marks are lowered must not go too."""
    for n in range(3):
        await store.commit(key(f"s{n}"), chat("x", user="kai"))
    ended: list[str] = []

    async def delete(asked: SessionKey) -> bool:
        if asked == key("s1"):
            raise StoreError("away")
        for _ in range(20):
            await asyncio.sleep(0)
        ended.append(asked.session)
        return True

    monkeypatch.setattr(store, "delete", delete)
    gone = Counts()
    with pytest.raises(StoreError):
        await eraser.erase_person("t", "kai", gone)
    assert sorted(ended) == ["s0", "s2"] and gone.sessions == 2


async def test_what_many_sessions_have_in_common_is_asked_for_once(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that were given out, and what was proposed because of what somebody said."""
    for n in range(20):
        await store.commit(key(f"s{n}"), chat("x", user="kai"))
    asked: Counter[str] = Counter()
    change_items, namespaces = store.change_items, store.namespaces

    async def changed(*given: Any) -> bool:
        asked["change_items"] += 1
        return await change_items(*given)

    async def listed(*given: Any) -> Sequence[Namespace]:
        asked["namespaces"] += 1
        return await namespaces(*given)

    monkeypatch.setattr(store, "change_items", changed)
    monkeypatch.setattr(store, "namespaces", listed)
    assert (await eraser.count_person("t", "kai")).counts.sessions == 20
    assert asked == {"namespaces": 1}
    assert (await eraser.erase_person("t", "kai")).counts.sessions == 20
    assert asked == {"namespaces": 3, "change_items": 2}


async def test_two_erasures_of_the_same_person_go_one_behind_the_other(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.commit(key("a"), chat("x1", user="kai"))
    marked: list[float] = []
    mark = store.mark

    async def noted(subjects: Sequence[Subject], until: float) -> None:
        await asyncio.sleep(0)
        marked.extend(until for subject in subjects if not subject.session)
        await mark(subjects, until)

    monkeypatch.setattr(store, "mark", noted)
    first, second = await asyncio.gather(
        eraser.erase_person("t", "kai"), eraser.erase_person("t", "kai")
    )
    assert marked == [NOW + LEASE, NOW, NOW + LEASE, NOW]
    assert [first.counts.sessions, second.counts.sessions] == [1, 0]


async def test_a_person_is_counted_once_at_a_time(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.commit(key("a"), chat("x1", user="kai"))
    summaries, asking, most = store.summaries, 0, 0

    async def noted(asked: SessionKey) -> Sequence[Summary]:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await asyncio.sleep(0.01)
        asking -= 1
        return await summaries(asked)

    monkeypatch.setattr(store, "summaries", noted)
    counted = await asyncio.gather(*(eraser.count_person("t", "kai") for _ in range(5)))
    assert [each.counts.messages for each in counted] == [2] * 5
    assert most == 1


# What is found


async def test_it_looks_again_until_nothing_is_found(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is put meanwhile by somebody whom no mark holds back is gone as well."""
    shelf, rounds, drop = ItemOwner("t", "kai"), 3, store.drop
    await store.commit(key("a"), chat("x1", user="kai"))

    async def meanwhile(owner: Owner, state: bytes = b"") -> None:
        nonlocal rounds
        await drop(owner, state)
        if owner.user and (rounds := rounds - 1) > 0:
            change = Change(namespace=("users", "kai", "n"), key=str(rounds), value=b"{}")
            assert await store.change_items(shelf, [change])

    monkeypatch.setattr(store, "drop", meanwhile)
    receipt = await eraser.erase_person("t", "kai")
    assert receipt.counts.items == 2
    assert not (await store.items(shelf, (), None, 10)).items


async def test_who_is_never_done_with_writing_cannot_be_given_a_receipt(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop, rounds = store.drop, 0
    await store.commit(key("a"), chat("x1", user="kai"))

    async def meanwhile(owner: Owner, state: bytes = b"") -> None:
        nonlocal rounds
        rounds += bool(owner.user)
        await drop(owner, state)
        change = Change(namespace=("users", "kai", "n"), key="k", value=b"{}")
        await store.change_items(ItemOwner("t", "kai"), [change])

    monkeypatch.setattr(store, "drop", meanwhile)
    with pytest.raises(Busy):
        await eraser.erase_person("t", "kai")
    assert rounds == MAX_ROUNDS


async def test_sessions_that_the_spool_will_make_a_persons_are_theirs(
    store: Backend, eraser: Eraser, spool: Spool
) -> None:
    await store.commit(key("nobodys"), chat("x1"))
    await store.commit(key("eves"), chat("x2", user="eve"))
    for session, id in [("nobodys", "y1"), ("eves", "y2"), ("new", "y3")]:
        spooled(spool, session, id, "kai")
        spooled(spool, session, f"{id}+")
    counted = await eraser.count_person("t", "kai")
    receipt = await eraser.erase_person("t", "kai")
    assert counted.counts == receipt.counts
    assert (receipt.counts.sessions, receipt.counts.spooled) == (1, 5)
    assert [entry.exchange for entry in spool.entries()] == ["y2+"]
    assert await sessions(store) == ["eves"]
    late = [await store.commit(key(where), chat(f"late-{where}")) for where in ("nobodys", "new")]
    assert late == ["erased", "erased"]


async def test_a_session_that_only_the_spool_knows_can_be_erased(
    store: Backend, eraser: Eraser, spool: Spool
) -> None:
    assert await eraser.erase_session(key("a")) is None
    assert await eraser.count_session(key("a")) is None
    assert await store.commit(key("a"), chat("x1", user="kai")) == "recorded"
    await store.delete(key("a"))
    spooled(spool, "a", "x2", "kai")
    counted = await eraser.count_session(key("a"))
    assert counted is not None and counted.counts.spooled == 1 and not spool.is_idle()
    receipt = await eraser.erase_session(key("a"))
    assert receipt is not None and receipt.counts == counted.counts and spool.is_idle()
    assert await store.commit(key("a"), chat("x2", user="kai")) == "erased"


async def test_a_person_nobody_knows_has_an_empty_receipt_and_a_mark(
    store: Backend, eraser: Eraser
) -> None:
    """Other hosts may know more."""
    receipt = await eraser.erase_person("t", "kai")
    assert not receipt.counts and receipt.erased_at == NOW
    assert await store.commit(key("a"), chat("x1", NOW, user="kai")) == "erased"


async def test_the_same_names_of_another_tenant_are_left_alone(
    store: Backend, eraser: Eraser, spool: Spool
) -> None:
    await store.commit(key("a"), chat("x1", user="kai"))
    await store.commit(key("a", "u"), chat("x2", user="kai"))
    await eraser.erase_person("t", "kai")
    assert await store.session(key("a", "u")) is not None
    assert await store.commit(key("a", "u"), chat("x3", user="kai")) == "recorded"


async def test_what_is_in_the_index_of_a_session_has_no_vector_any_more(
    store: Backend, eraser: Eraser, clock: Clock
) -> None:
    indexer, owner = Indexer(store, store, whole, clock), Owner("t", "kai")
    for number, session in enumerate("aba"):
        await store.commit(key(session), chat(f"x{number}", user="kai"))
        await indexer.index_session(key(session))
    await indexer.update(owner, lambda state: state.with_vectors("m/4", 6))
    vectors = {number: bytes([number + 1] * 4) for number in range(6)}
    await store.put_vectors(owner, "m/4", 4, vectors)
    assert await passages_of(store, owner, "a") == [0, 1, 4, 5]
    counted = await eraser.count_session(key("a"))
    receipt = await eraser.erase_session(key("a"))
    assert receipt is not None and counted is not None
    assert receipt.counts.index_passages == counted.counts.index_passages == 4
    left = await store.vectors(owner, "m/4", 4, 0, 6)
    assert left.ljust(24, b"\0") == bytes(8) + b"\3" * 4 + b"\4" * 4 + bytes(8)
    await eraser.erase_person("t", "kai")
    assert (await store.lookup(owner, (), 0)).revision == 0
    assert not (await store.vectors(owner, "m/4", 4, 0, 6)).strip(b"\0")


async def test_a_session_in_an_index_of_another_format_leaves_no_vector_there(
    store: Backend, eraser: Eraser, clock: Clock
) -> None:
    """Nobody can tell what of it is whose: it is made anew, and keeps what it was told."""
    indexer, owner = Indexer(store, store, whole, clock), Owner("t", "kai")
    for session in "ab":
        await store.commit(key(session), chat(f"x-{session}", user="kai"))
        await indexer.index_session(key(session))
    await store.put_vectors(owner, "m/4", 4, dict.fromkeys(range(4), b"1234"))
    lookup, other = await store.lookup(owner, (), 0), b'[999,4,0,2,[],["tea"],0.0,0.0,{"m/4":4}]'
    assert await store.write(owner, IndexBatch(lookup.revision, other, "b", None, first=4))
    assert await eraser.count_session(key("a")) is not None
    assert (await store.lookup(owner, (), 0)).state == other
    assert await eraser.erase_session(key("a")) is not None
    assert not (await store.vectors(owner, "m/4", 4, 0, 4)).strip(b"\0")
    assert await indexer.dismissed(owner) == ("tea",)
    assert await indexer.catch_up(owner) == 2
    assert await passages_of(store, owner, "b") == [0, 1]


async def test_passages_that_lead_nowhere_any_more_are_not_counted(
    store: Backend, eraser: Eraser, clock: Clock
) -> None:
    """Those of a session that was erased before, and of messages that were removed or edited."""
    indexer = Indexer(store, store, whole, clock)
    for session in "abc":
        await store.commit(key(session), chat(f"x-{session}", user="kai"))
        await indexer.index_session(key(session))
    await eraser.erase_session(key("a"))
    assert await store.revise(key("b"), Revision(removed=("x-b.0",)))
    line = await store.message(key("c"), "x-c.0")
    assert line is not None
    edited = MessageEdit(
        card=replace(line.card, digest="other"), body=b'"other"', replaced_wire=line.body
    )
    assert await store.revise(key("c"), Revision(edited=(edited,)))
    await indexer.index_edited(key("c"), 1)

    told, everything = await eraser.count_session(key("b")), await eraser.count_person("t", "kai")
    gone = await eraser.erase_session(key("b"))
    assert told is not None and gone is not None
    assert gone.counts == told.counts and gone.counts.index_passages == 1
    assert everything.counts.index_passages == 3
    counted, receipt = await eraser.count_person("t", "kai"), await eraser.erase_person("t", "kai")
    assert receipt.counts == counted.counts and receipt.counts.index_passages == 2
    assert (await store.lookup(Owner("t", "kai"), (), 0)).revision == 0


# What nobody finds, and what is in the files


async def test_sessions_that_have_expired_are_in_no_file_behind_the_receipt(
    store: Backend, eraser: Eraser, clock: Clock, tmp_path: Path
) -> None:
    for session, user in [("a", "kai"), ("b", "kai"), ("eves", "eve"), ("nobodys", None)]:
        secret = replace(draft(f"x-{session}", 0), body=f'"of {session}"'.encode())
        await store.commit(key(session), record(f"x-{session}", secret, user=user, ttl=60))
    clock.now += 61
    assert found_in_files(tmp_path, "of a", "of b", "of nobodys")
    receipt = await eraser.erase_person("t", "kai")
    assert not receipt.counts and not found_in_files(tmp_path, "of a", "of b")
    assert await eraser.erase_session(key("nobodys")) is None
    assert not found_in_files(tmp_path, "of nobodys") and found_in_files(tmp_path, "of eves")


async def test_an_erasure_of_a_session_that_was_cut_off_is_ended_by_who_repeats_it(
    store: Backend, eraser: Eraser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "REMOVED_ROWS", 2)
    for n in range(5):
        secret = replace(draft(f"x{n}", 0), body=b'"the secret"')
        await store.commit(key("a"), record(f"x{n}", secret, user="kai"))

    def fails(*asked: object) -> bool:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(waste, "remove", fails)
        with pytest.raises(StoreError):
            await eraser.erase_session(key("a"))
    assert await store.session(key("a")) is None and found_in_files(tmp_path, "the secret")
    assert await eraser.erase_session(key("a")) is None
    assert not found_in_files(tmp_path, "the secret")


async def test_behind_a_repeated_erasure_of_a_session_what_is_said_is_recorded(
    store: Backend, eraser: Eraser, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LOWERED", 0)  # as far as a kill can be had here
    await store.commit(key("a"), chat("x1"))
    delete = store.delete

    async def fails(asked: SessionKey) -> bool:
        await delete(asked)
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", fails)
        with pytest.raises(asyncio.CancelledError):
            await eraser.erase_session(key("a"))
    assert await store.commit(key("a"), chat("x2", NOW + 1)) == "erased"
    assert await eraser.erase_session(key("a")) is None
    assert await store.commit(key("a"), chat("x3", NOW)) == "erased"
    assert await store.commit(key("a"), chat("x4", NOW + 1)) == "recorded"


async def test_a_session_that_begins_while_one_of_its_name_is_looked_for_is_erased(
    store: Backend, eraser: Eraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespaces, begun = store.namespaces, False

    async def late(*asked: Any) -> Any:
        nonlocal begun
        if not begun:
            begun = await store.commit(key("a"), chat("x1", NOW - 1)) == "recorded"
        return await namespaces(*asked)

    monkeypatch.setattr(store, "namespaces", late)
    receipt = await eraser.erase_session(key("a"))
    assert receipt is not None and begun and await store.session(key("a")) is None
    assert await store.commit(key("a"), chat("x2", NOW)) == "erased"


async def test_there_is_no_receipt_while_a_reader_keeps_the_text_in_the_log(
    store: Backend, eraser: Eraser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "WIPE_PAUSE", 0.001)
    for session in "ab":
        secret = replace(draft(f"x-{session}", 0), body=f'"of {session}"'.encode())
        await store.commit(key(session), record(f"x-{session}", secret, user="kai"))
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sessions").fetchone()
        for _ in range(2):
            with pytest.raises(StoreInUse):
                await eraser.erase_session(key("a"))
        with pytest.raises(StoreInUse):
            await eraser.erase_person("t", "kai")
        assert await sessions(store) == [] and found_in_files(tmp_path, "of a", "of b")
        # All is done but for the files: what begins now is recorded.
        assert await store.commit(key("a"), chat("new", NOW + 1, user="kai")) == "recorded"
    assert (await eraser.erase_person("t", "kai")).counts.sessions == 1
    assert not found_in_files(tmp_path, "of a", "of b")


# Feedback and examples


async def answered(store: Backend, user: str | None, session: str = "a") -> tuple[Any, str]:
    await store.commit(key(session), chat(f"x-{session}", user=user))
    found = await store.session(key(session))
    assert found is not None
    return found, f"x-{session}.1"


async def kept(store: Backend) -> list[str]:
    """Where anything is that was said of answers."""
    places: list[str] = []
    for shelf in (ItemOwner("t"), ItemOwner("t", "kai")):
        page = await store.items(shelf, (), None, 100)
        places += ["/".join(item.namespace) for item in page.items]
    return [place for place in places if not place.endswith("/card")]


@pytest.mark.parametrize("user", ["kai", None])
@pytest.mark.parametrize("when", ["before", "in-the-middle", "behind"])
async def test_a_comment_on_what_is_erased_meanwhile_is_not_kept(
    store: Backend,
    spool: Spool,
    learned: Learned,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    user: str | None,
    when: str,
) -> None:
    """Erased by another process, which waits for no change of this one."""
    elsewhere = eraser_of(store, spool, learned_over(store, clock), clock)
    session, message = await answered(store, user)
    name = {"before": "items_at", "in-the-middle": "change_items", "behind": "enqueue"}[when]
    if when == "behind":
        name = "exchange"
    real, calls = getattr(store, name), 0

    async def erased_first(*asked: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == (2 if when == "behind" else 1):
            monkeypatch.setattr(store, name, real)
            await elsewhere.erase_session(key("a"))
        return await real(*asked, **more)

    monkeypatch.setattr(store, name, erased_first)
    with pytest.raises(NoMessage):
        await learned.feedback.record(session, key("a"), message, 1, "a secret comment")
    assert [place for place in await kept(store) if "feedback" in place] == []
    assert not (await learned.episodes.load(ItemOwner("t", "kai"))).episodes


async def test_a_comment_of_who_is_erased_meanwhile_is_refused(
    store: Backend, eraser: Eraser, learned: Learned, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, message = await answered(store, "kai")
    answered_of, shelf = learned.feedback.exchanges.history.exchange, ItemOwner("t", "kai")

    async def erased_behind(asked: SessionKey, exchange: str) -> Any:
        found = await answered_of(asked, exchange)
        monkeypatch.setattr(store, "exchange", answered_of)
        await eraser.erase_person("t", "kai")
        return found

    monkeypatch.setattr(store, "exchange", erased_behind)
    with pytest.raises(NoMessage):
        await learned.feedback.record(session, key("a"), message, 1, "a secret comment")
    assert not (await store.items(shelf, (), None, 10)).items
    assert await kept(store) == []


async def test_an_example_that_was_read_before_is_not_kept_behind(
    store: Backend, eraser: Eraser, learned: Learned, clock: Clock
) -> None:
    shelf = ItemOwner("t", "kai")
    said = Source(session="a", message="x.1", exchange="x", at=NOW)
    example = Episode(id="ep_1", question="?", answer="!", origin="feedback", sources=(said,))
    await eraser.erase_person("t", "kai")
    with pytest.raises(Busy):
        await learned.episodes.add(shelf, example, NOW)
    assert not (await learned.episodes.load(shelf)).episodes
    await learned.episodes.add(shelf, example, NOW + 1)
    assert (await learned.episodes.load(shelf)).episodes == (example,)


# Whatever there is


PEOPLE = (None, "kai", "eve")
SAYS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(PEOPLE), st.booleans()), max_size=10
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(says=SAYS)
async def test_after_an_erasure_there_is_what_the_others_said(
    tmp_path_factory: pytest.TempPathFactory, says: list[tuple[str, str | None, bool]]
) -> None:
    """As if the person had never been there, whatever was said and replayed in which order."""
    clock = Clock(NOW)
    store = InMemoryStore(clock)
    spool = Spool(tmp_path_factory.mktemp("s") / "spool.db", store.name, 1 << 24)
    spool.open()
    eraser = eraser_of(store, spool, learned_over(store, clock), clock)
    for number, (session, user, spools) in enumerate(says):
        if spools:
            spooled(spool, session, f"x{number}", user)
        else:
            await store.commit(key(session), chat(f"x{number}", user=user))
    owners = {s.id: s.user for s in (await store.sessions("t", None, None, 10)).items}
    waiting = {(session, user) for session, user, spools in says if spools}
    theirs = {id for id, user in owners.items() if user == "kai"}
    theirs |= {session for session, user in waiting if user == "kai" and not owners.get(session)}
    counted = await eraser.count_person("t", "kai")
    receipt = await eraser.erase_person("t", "kai")
    assert receipt.counts == counted.counts
    assert set(await sessions(store)) == owners.keys() - theirs
    assert all(entry.key.session not in theirs for entry in spool.entries())
    assert spool.sessions_of("t", "kai") == []
    left = {entry.exchange for entry in spool.entries()}
    assert left == {
        f"x{number}"
        for number, (session, user, spools) in enumerate(says)
        if spools and user != "kai" and session not in theirs
    }
    spool.close()
