"""What a Redis that evicts keys may cost: what it threw away, and nothing of others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from proxy.memory.model import Due, SessionKey
from proxy.stores.open import Backend, open_store
from proxy.stores.redis.work import LOOKS, QUEUE_KEYS
from tests.support.clock import Clock
from tests.support.processes.redis import Server, standalone
from tests.support.waiting import PATIENCE

KEY = SessionKey("tenant", "session")
DUE = Due(kind="summary", profile="p", at=1.0)


@pytest.fixture(scope="module")
def machine() -> Iterator[Server]:
    with standalone() as server:
        yield server


@pytest.fixture
def server(machine: Server) -> Server:
    """A server that is empty."""
    machine.ask("FLUSHALL")
    return machine


@pytest.fixture
async def store(server: Server, clock: Clock) -> AsyncIterator[Backend]:
    store = open_store(server.url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock)
    await store.open()
    yield store
    await store.close()


# The queue of work


@pytest.mark.parametrize("without", [(), ("others",)])
async def test_work_that_is_lost_is_not_in_the_way_of_other_work(
    store: Backend, server: Server, without: tuple[str, ...]
) -> None:
    for number in range(7):
        await store.enqueue(SessionKey("tenant", f"{number}"), DUE)
    due, pieces = QUEUE_KEYS
    server.ask("DEL", pieces)
    await store.enqueue(KEY, Due(kind="summary", profile="p", at=2.0))
    assert [work.session for work in await store.waiting(9.0, 2, without)] == [KEY.session]
    assert server.ask("ZRANGE", due, 0, -1) == [b"summary:tenant:session"]


async def test_of_much_work_that_is_lost_one_look_forgets_some(
    store: Backend, server: Server
) -> None:
    due, pieces = QUEUE_KEYS
    for number in range(LOOKS + 3):
        await store.enqueue(SessionKey("tenant", f"{number}"), DUE)
    server.ask("DEL", pieces)
    assert [await store.waiting(9.0, 1), server.ask("ZCARD", due)] == [[], 3]


@pytest.mark.parametrize("state", ["waits", "failed", "held"])
async def test_work_of_which_is_lost_when_it_is_due_is_done_once_it_is_asked_for(
    store: Backend, server: Server, state: str
) -> None:
    await store.enqueue(KEY, DUE)
    if state != "waits":
        (work,) = await store.waiting(9.0, 9)
        held = await store.claim(work, 9.0, 60.0)
        assert held is not None
        if state == "failed":
            await store.put_off(held, 100.0, failed=True)
    server.ask("DEL", QUEUE_KEYS[0])
    assert not await store.waiting(1e9, 9)
    await store.enqueue(KEY, DUE)
    (work,) = await store.waiting(9.0, 9)
    assert (work.asked, work.attempts) == (2, int(state == "failed"))
    assert await store.claim(work, 9.0, 60.0) is not None
