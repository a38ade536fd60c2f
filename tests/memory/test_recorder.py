"""Loading and recording while the store works, and when it does not."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from proxy.memory.model import Amendment, Commit
from proxy.memory.recording.availability import PAUSE_SECONDS
from proxy.memory.recording.recorder import Recorder
from proxy.memory.recording.spool import Spool
from proxy.memory.store import StoreError, StoreTimeout
from tests.support.faulty import FaultyStore
from tests.support.store.commits import chat
from tests.support.store.recording import (
    KEY,
    LOAD_TIMEOUT,
    OTHER,
    Workbench,
    deferred,
    recorder_over,
    said,
    texts,
)

DOWN = StoreError("connection refused")


@pytest.fixture(autouse=True)
def _failures_may_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "proxy.memory.recording.recorder")


def keyed(id: str, idempotency_key: str) -> Commit:
    commit = chat(id, idempotency_key=idempotency_key)
    return replace(commit, exchange=replace(commit.exchange, has_idempotency_key=True))


# Loading


async def test_a_request_is_planned_over_what_the_store_has(bench: Workbench) -> None:
    await bench.recorder.record(KEY, chat("x1"))
    prepared = await bench.prepare()
    assert [e.card.id for e in prepared.snapshot.log] == ["x1.0", "x1.1"]
    assert prepared.planned.prompt.injected.messages == 2
    assert not bench.recorder.is_spooling(KEY)


async def test_after_a_failed_load_the_store_is_left_alone_for_a_second(bench: Workbench) -> None:
    bench.store.fail(DOWN)
    for session in (KEY, OTHER, KEY):
        with pytest.raises(StoreError, match="refused"):
            await bench.prepare(key=session)
    assert bench.store.asked["load"] == 1
    assert await bench.recorder.record(KEY, chat("x1")) == "spooled"
    assert bench.store.asked["commit"] == 0
    bench.clock.now += PAUSE_SECONDS
    bench.store.recover()
    assert (await bench.prepare(key=OTHER)).snapshot.log == ()
    assert bench.store.asked["load"] == 2


async def test_a_hung_store_costs_the_load_timeout_once(bench: Workbench) -> None:
    bench.store.hangs = True
    loop = asyncio.get_running_loop()
    costs = []
    for _ in range(3):
        began = loop.time()
        with pytest.raises(StoreTimeout):
            await bench.prepare()
        costs.append(loop.time() - began)
    assert LOAD_TIMEOUT * 0.9 < costs[0] < LOAD_TIMEOUT * 4
    assert max(costs[1:]) < LOAD_TIMEOUT / 2
    assert bench.store.asked["load"] == 1


async def test_each_request_gets_a_failure_of_its_own(bench: Workbench) -> None:
    """One exception raised again and again would keep the frames of every request alive."""
    bench.store.fail(StoreTimeout("too slow"))
    failures: list[BaseException] = []
    for _ in range(3):
        with pytest.raises(StoreTimeout, match="too slow") as raised:
            await bench.prepare()
        failures.append(raised.value)
    assert len({id(failure) for failure in failures}) == 3


# Recording


async def test_an_exchange_that_the_store_does_not_take_is_spooled_and_replayed_once(
    bench: Workbench,
) -> None:
    bench.store.fail(DOWN, "commit")
    assert await bench.recorder.record(KEY, chat("x1")) == "spooled"
    assert await bench.history() == []
    bench.store.recover()
    await bench.recorder.replay()
    await bench.recorder.replay()
    assert await bench.history() == ["x1"]
    assert bench.spool.is_idle()
    assert (bench.recorder.tally.spooled, bench.recorder.tally.replayed) == (1, 1)


async def test_a_commit_does_not_overtake_what_is_spooled_for_its_session(bench: Workbench) -> None:
    bench.store.fail(DOWN, "commit")
    await bench.recorder.record(KEY, chat("x1"))
    bench.store.recover()
    assert bench.recorder.is_spooling(KEY) and not bench.recorder.is_spooling(OTHER)
    assert await bench.recorder.record(KEY, chat("x2")) == "spooled"
    assert await bench.recorder.record(OTHER, chat("y1")) == "recorded"
    amendment = Amendment(exchange="x1", usage=b'{"total_tokens":3}')
    assert await bench.recorder.amend(KEY, amendment) == "spooled"
    await bench.recorder.replay()
    assert await bench.history() == ["x1", "x2"]
    recorded = await bench.store.exchange(KEY, "x1")
    assert recorded is not None and recorded[0].usage == amendment.usage
    assert await bench.recorder.record(KEY, chat("x3")) == "recorded"


async def test_a_commit_whose_answer_was_lost_is_not_recorded_twice(bench: Workbench) -> None:
    await bench.store.commit(KEY, chat("x1"))
    bench.store.fail(StoreTimeout("no answer"), "commit")
    assert await bench.recorder.record(KEY, chat("x1")) == "spooled"
    bench.store.recover()
    await bench.recorder.replay()
    assert await bench.history() == ["x1"]
    assert bench.spool.is_idle()


async def test_a_caller_that_is_cancelled_is_recorded_even_so(bench: Workbench) -> None:
    bench.store.gate = asyncio.Event()
    caller = asyncio.create_task(bench.recorder.record(KEY, chat("x1")))
    while not bench.store.asked["commit"]:
        await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    bench.store.gate.set()
    assert await bench.store.recorded(1) == ["x1"]


async def test_what_neither_store_nor_spool_can_take_is_counted_as_lost(bench: Workbench) -> None:
    bench.store.fail(DOWN)
    bench.spool.close()
    assert await bench.recorder.record(KEY, chat("x1")) == "lost"
    assert await bench.recorder.defer(KEY, deferred("x2", said("hello"))) == "lost"
    assert bench.recorder.tally.lost == 2


@pytest.mark.parametrize("name", ["commit", "amend"])
async def test_an_exchange_that_the_store_stumbles_over_is_spooled(
    bench: Workbench, name: str
) -> None:
    bench.store.fail(ValueError("never heard of"), name)
    bench.clock.now += PAUSE_SECONDS
    if name == "commit":
        fate = await bench.recorder.record(KEY, chat("x1"))
    else:
        fate = await bench.recorder.amend(KEY, Amendment(exchange="x1", usage=b"{}"))
    assert fate == "spooled"
    assert bench.recorder.tally.spooled == 1


async def test_what_waits_for_another_store_is_logged_at_the_start(
    bench: Workbench, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = Spool(path, "redis://elsewhere:6379/0", 1 << 20)
    other.open()
    other.put(KEY, "x1", "commit", b"{}")
    other.close()
    caplog.set_level(logging.WARNING, "proxy.memory.recording.recorder")
    await bench.recorder.open()
    (line,) = caplog.messages
    assert "another store, redis://elsewhere:6379/0: 1" in line


async def test_what_the_spool_stumbles_over_is_counted_as_lost(bench: Workbench) -> None:
    """Half a surrogate pair cannot be encoded."""
    bench.store.fail(DOWN)
    assert await bench.recorder.record(KEY, chat("x1", model="\ud83d")) == "lost"
    assert await bench.recorder.record(KEY, chat("x2")) == "spooled"
    assert bench.recorder.tally.lost == 1


def over(store: FaultyStore, path: Path) -> Recorder:
    spool = Spool(path, store.name, 1 << 20)
    return recorder_over(store, spool)


async def test_without_a_spool_a_store_that_works_is_enough(
    store: FaultyStore, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    recorder = over(store, taken)
    await recorder.open()
    assert await recorder.record(KEY, chat("x1")) == "recorded"
    assert not recorder.is_spooling(KEY)
    await recorder.close(1)


async def test_a_spool_that_was_damaged_is_one_again(store: FaultyStore, path: Path) -> None:
    path.write_bytes(b"no spool" * 1024)
    recorder = over(store, path)
    await recorder.open()
    store.fail(DOWN)
    assert await recorder.record(KEY, chat("x1")) == "spooled"
    store.recover()
    await recorder.close(1)


# What the next request sees


async def test_the_next_request_sees_what_is_spooled(bench: Workbench) -> None:
    await bench.recorder.record(KEY, chat("x1"))
    bench.store.fail(DOWN, "commit")
    await bench.recorder.record(KEY, chat("x2"))
    bench.store.recover()
    await bench.recorder.defer(KEY, deferred("x3", said("third"), reply="indeed"))
    snapshot = (await bench.prepare()).snapshot
    assert [e.card.exchange for e in snapshot.log] == ["x1", "x1", "x2", "x2", "x3", "x3"]
    assert texts(snapshot)[-2:] == ["third", "indeed"]
    assert (await bench.prepare(key=OTHER)).snapshot.log == ()


async def test_of_attempts_with_one_key_that_are_spooled_the_last_is_seen(
    bench: Workbench,
) -> None:
    for id, reply in (("x1", "no"), ("x2", "yes")):
        again = deferred(id, said("first"), reply=reply, idempotency_key="again")
        await bench.recorder.defer(KEY, again)
    bench.store.fail(DOWN, "commit")
    for id in ("x3", "x4"):
        await bench.recorder.record(KEY, chat(id, idempotency_key="other"))
    seen = [e.card.exchange for e in (await bench.prepare()).snapshot.log]
    bench.store.recover()
    await bench.recorder.replay()
    assert seen == [e.card.exchange for e in (await bench.prepare()).snapshot.log]
    assert seen == ["x2", "x2", "x4", "x4"]


@pytest.mark.parametrize("deferring", [True, False])
async def test_an_attempt_in_the_store_is_not_seen_beside_its_retry_in_the_spool(
    bench: Workbench, deferring: bool
) -> None:
    await bench.recorder.record(KEY, keyed("x1", "again"))
    bench.store.fail(DOWN)
    if deferring:
        retry = deferred("x2", said("first"), idempotency_key="again", at=1001.0)
        await bench.recorder.defer(KEY, retry)
    else:
        await bench.recorder.record(KEY, keyed("x2", "again"))
    bench.store.recover()
    bench.clock.now += PAUSE_SECONDS
    seen = [e.card.exchange for e in (await bench.prepare()).snapshot.log]
    await bench.recorder.replay()
    assert seen == [e.card.exchange for e in (await bench.prepare()).snapshot.log]
    assert seen == ["x2", "x2"]


async def test_for_retries_in_the_spool_the_store_is_asked_once_at_most(bench: Workbench) -> None:
    await bench.recorder.record(KEY, keyed("x1", "k1"))
    bench.store.fail(DOWN)
    for number in (2, 3, 4):
        key = f"k{number}"
        await bench.recorder.defer(KEY, deferred(f"x{number}", said(key), idempotency_key=key))
    bench.store.recover()
    bench.clock.now += PAUSE_SECONDS
    before = bench.store.asked["load"]
    seen = [e.card.exchange for e in (await bench.prepare()).snapshot.log]
    assert seen == ["x1", "x1", "x2", "x2", "x3", "x3", "x4", "x4"]
    assert bench.store.asked["load"] - before <= 2


async def test_an_entry_replayed_while_a_request_loads_is_seen(bench: Workbench) -> None:
    await bench.recorder.defer(KEY, deferred("x1", said("first")))
    bench.store.after_load = bench.recorder.replay
    snapshot = (await bench.prepare()).snapshot
    assert [e.card.exchange for e in snapshot.log] == ["x1", "x1"]
    assert bench.spool.is_idle()


async def test_what_cannot_be_read_in_the_spool_does_not_fail_a_request(bench: Workbench) -> None:
    await bench.recorder.defer(KEY, deferred("x1", said("first")))
    for number, payload in enumerate([b"{", b'{"said": 3}', b""]):
        bench.spool.put(KEY, f"broken{number}", "commit", payload)
    await bench.recorder.defer(KEY, deferred("x2", said("second")))
    snapshot = (await bench.prepare()).snapshot
    assert [e.card.exchange for e in snapshot.log] == ["x1", "x1", "x2", "x2"]
    await bench.recorder.replay()
    assert await bench.history() == ["x1", "x2"]
    assert bench.spool.depth() == (0, 3) and len(bench.quarantined) == 3
