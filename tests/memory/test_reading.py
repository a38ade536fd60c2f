"""A session read whole, while others write to it."""

from __future__ import annotations

import pytest

from proxy.memory.archive import Page, Revision, StoredMessage
from proxy.memory.history import reading
from proxy.memory.history.reading import ATTEMPTS, all_lines, read_session
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from tests.support.oracle.store import InMemoryStore
from tests.support.store.commits import chat, summary

KEY = SessionKey("tenant", "s")


class Busy(InMemoryStore):
    """Something happens between the pages of messages, so many times."""

    def __init__(self, times: int, removing: bool) -> None:
        super().__init__()
        self._left, self._removing = times, removing

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        page = await super().lines(key, after, limit)
        if self._left:
            self._left -= 1
            if self._removing:
                await self.revise(key, Revision(superseded=(f"x{self._left}.0",)))
            else:
                await self.commit(key, chat(f"new{self._left}"))
        return page


async def told(store: InMemoryStore, count: int = 6) -> None:
    for number in range(count):
        await store.commit(KEY, chat(f"x{number}"))


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGES", (2, 1))


async def test_a_session_is_read_with_all_that_it_owns() -> None:
    store = InMemoryStore()
    await told(store)
    await store.put_summary(KEY, summary(3), 0, None)
    found = await read_session(store, KEY)
    assert found is not None
    assert [line.position.seq for line in found.lines] == list(range(1, 13))
    assert [placed.exchange.id for placed in found.exchanges] == [f"x{n}" for n in range(6)]
    assert [placed.first for placed in found.exchanges] == [1, 3, 5, 7, 9, 11]
    assert len(found.summaries) == 1
    assert await store.restore(SessionKey("tenant", "t"), found)


async def test_what_is_not_there_is_none() -> None:
    assert await read_session(InMemoryStore(), KEY) is None


async def test_what_is_said_meanwhile_is_not_in_it() -> None:
    store = Busy(3, removing=False)
    await told(store)
    found = await read_session(store, KEY)
    assert found is not None
    assert len(found.lines) == found.session.messages == 12
    assert len(found.exchanges) == 6


async def test_what_people_change_meanwhile_is_in_it_whole() -> None:
    store = Busy(3, removing=True)
    await told(store)
    found = await read_session(store, KEY)
    assert found is not None
    active = [line for line in found.lines if line.state == "active"]
    assert len(active) == found.session.messages == 9


async def test_what_changes_all_the_time_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGES", (500, 1))
    store = Busy(100, removing=True)
    await told(store, 100)
    with pytest.raises(StoreError, match="again and again"):
        await read_session(store, KEY)
    assert ATTEMPTS < 100


async def test_lines_begin_behind_a_place_and_end_at_another() -> None:
    store = InMemoryStore()
    await told(store)
    seqs = [line.position.seq async for line in all_lines(store, KEY, 9, 4)]
    assert seqs == [5, 6, 7, 8, 9]
