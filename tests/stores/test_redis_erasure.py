"""What only the Redis store promises of erasing: where marks lie, and commits under way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import nullcontext
from itertools import combinations_with_replacement
from typing import Any

import pytest
from redis.crc import key_slot

from proxy.memory.erasure import MARK_SECONDS, Subject
from proxy.memory.items import ItemOwner
from proxy.memory.model import Commit, LoadOptions, Outcome, SessionKey, WorkRequest
from proxy.memory.store import StoreError
from proxy.recall.index import Owner
from proxy.recall.indexing.indexer import Indexer
from proxy.stores.address import read_address
from proxy.stores.redis.base import list_keys, mark_key, session_keys
from proxy.stores.redis.connection import collect_keys, connect
from proxy.stores.redis.items import item_keys
from proxy.stores.redis.store import RedisStore
from tests.support.processes.redis import Server, standalone, wait_until
from tests.support.store.archives import take_out
from tests.support.store.commits import chat
from tests.support.store.passages import whole
from tests.support.waiting import PATIENCE

ALL = LoadOptions(profile="default", whole=True)
MARK = 1000.0
"""What began at this time or before is erased."""

EARLY, LATE = 990.0, 1010.0
DUE = WorkRequest(kind="summary", profile="p", due_at=1.0)


def open_redis(url: str) -> RedisStore:
    address = read_address(url)
    return RedisStore(
        address.name,
        connect(address, 5),
        one_slot=address.kind != "cluster",
        timeout=PATIENCE,
        commit_timeout=PATIENCE,
        clock=lambda: MARK,
    )


@pytest.fixture
async def store(redis_cluster_url: str) -> AsyncIterator[RedisStore]:
    store = open_redis(redis_cluster_url)
    yield store
    await store.close()


@pytest.fixture
async def eraser(redis_cluster_url: str) -> AsyncIterator[RedisStore]:
    """A store of another process."""
    store = open_redis(redis_cluster_url)
    yield store
    await store.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with standalone() as server:
        yield server


async def everything(store: RedisStore, tenant: str) -> dict[bytes, bytes]:
    """All keys of a tenant but the marks, with what is in them."""
    commands = {
        b"string": ("GET",),
        b"hash": ("HGETALL",),
        b"set": ("SMEMBERS",),
        b"zset": ("ZRANGE", 0, -1),
    }
    link = store._link
    found = {}
    for key in await collect_keys(link.scan(f"mp:{{{tenant}*".encode())):
        (kind,) = await link.run(key, ("TYPE", key))
        name, *rest = commands[kind]
        found[key] = repr(await link.run(key, (name, key, *rest))).encode()
    return {key: text for key, text in found.items() if not key.endswith(b"erased")}


# Where marks lie


@pytest.mark.parametrize("name", ["kai", "{a}", "a:b", "\u2603"])
def test_marks_lie_with_what_they_forbid_and_are_no_part_of_it(name: str) -> None:
    of_session = mark_key(Subject("t", session=name))
    of_person = mark_key(Subject("t", name))
    own = session_keys(SessionKey("t", name))
    lists, shelf = list_keys("t", name), item_keys(ItemOwner("t", name))
    assert len({key_slot(key) for key in (of_session, *own)}) == 1
    assert len({key_slot(key) for key in (of_person, *lists, *shelf)}) == 1
    nobody = mark_key(Subject("t"))
    assert (
        len({key_slot(key) for key in (nobody, *list_keys("t"), *item_keys(ItemOwner("t")))}) == 1
    )
    assert len({of_session, of_person, nobody, *own, *lists, *shelf}) == 3 + 8 + 2 + 3
    assert of_session == mark_key(Subject("t", "kai", name))


async def test_a_mark_is_a_time_that_ends_by_itself_and_outlives_the_session(
    server: Server, key: SessionKey
) -> None:
    store = open_redis(server.url)
    mark = mark_key(Subject(key.tenant, session=key.session))
    await store.mark([Subject(key.tenant, session=key.session)], MARK + 100.5)
    assert float(server.ask("GET", mark)) == MARK + 100.5
    life = (MARK_SECONDS + 100.5) * 1000
    assert life - 5000 < server.ask("PTTL", mark) <= life
    await store.commit(key, chat("x1", MARK + 200, ttl=60))
    assert server.ask("PTTL", session_keys(key)[0]) <= 60_000
    assert life - 5000 < server.ask("PTTL", mark) <= life
    await store.delete(key)
    assert life - 5000 < server.ask("PTTL", mark) <= life
    await store.unmark(Subject(key.tenant, session=key.session))
    assert server.ask("EXISTS", mark) == 0
    await store.mark([Subject(key.tenant, session=key.session)], 1e300)
    assert float(server.ask("GET", mark)) == 1e300
    await store.mark([Subject(key.tenant, session=key.session)], -1e300)
    wait_until(lambda: server.ask("EXISTS", mark) == 0, "expiry")
    await store.close()


# Commits under way


class Steps:
    """What another does while a commit is under way: step by step, before its commands.

    ``at`` says before which of them each step is taken, ascending; what is left is done at the end.
    """

    def __init__(self, store: RedisStore, eraser: RedisStore, tenant: str, at: Sequence[int]):
        self._link, self._run = store._link, store._link.run
        self._eraser, self._tenant, self._at = eraser, tenant, list(at)
        self._names: list[str] = []
        self._taken = self._commands = 0
        store._link.run = self._meddle  # type: ignore[method-assign]

    async def _meddle(self, key: bytes, *commands: Any) -> list[Any]:
        while self._taken < len(self._at) and self._at[self._taken] <= self._commands:
            await self._step()
        self._commands += 1
        return await self._run(key, *commands)

    async def finish(self) -> None:
        self._link.run = self._run  # type: ignore[method-assign]
        while self._taken < 3:
            await self._step()

    async def _step(self) -> None:
        self._taken += 1
        if self._taken == 1:
            await self._eraser.mark([Subject(self._tenant, "kai")], MARK)
        elif self._taken == 2:
            page = await self._eraser.sessions(self._tenant, "kai", None, 100)
            self._names = [session.id for session in page.items]
        for name in self._names if self._taken == 3 else ():
            await self._eraser.mark([Subject(self._tenant, session=name)], MARK)
            await self._eraser.delete(SessionKey(self._tenant, name))


COMMANDS = 9
"""As many as a commit sends: the commit, the mark, the commit, two lists; to take it back three."""


@pytest.mark.parametrize("marked", range(COMMANDS + 1))
@pytest.mark.parametrize(
    ("there", "user"),
    [
        pytest.param(False, "kai", id="a-new-session"),
        pytest.param(True, "kai", id="a-known-session"),
        pytest.param(True, None, id="the-user-is-not-named"),
    ],
)
async def test_whenever_a_person_is_erased_nothing_of_a_commit_is_left(
    store: RedisStore, eraser: RedisStore, tenant: str, there: bool, user: str | None, marked: int
) -> None:
    """``marked`` is the command before which the erasure begins."""
    late = chat(
        "secret1", EARLY, user=user, system=b"secret2", work_requests=(DUE,), idempotency_key="k"
    )
    for n, then in enumerate(combinations_with_replacement(range(marked, COMMANDS + 1), 2)):
        key = SessionKey(f"{tenant}-{n}", "session")
        if there:
            await store.commit(key, chat("secret0", EARLY - 1, user="kai"))
        steps = Steps(store, eraser, key.tenant, (marked, *then))
        assert await store.commit(key, late) in ("recorded", "erased")
        await steps.finish()
        found = await everything(store, key.tenant)
        assert not [name for name, text in found.items() if b"secret" in text]
        assert not (await store.load(key, ALL)).exists
        assert (await store.sessions(key.tenant, None, None, 9)).items == ()
        assert await store.commit(key, late) == "erased"


async def test_whenever_a_person_is_erased_nothing_of_what_is_put_back_is_left(
    store: RedisStore, eraser: RedisStore, tenant: str
) -> None:
    """Read before the erasure, as a fork's or an import's."""
    source = SessionKey(f"{tenant}-source", "session")
    await store.commit(source, chat("secret", EARLY, user="kai"))
    archived = await take_out(store, source)
    for n, at in enumerate(combinations_with_replacement(range(COMMANDS + 1), 3)):
        key = SessionKey(f"{tenant}-{n}", "session")
        steps = Steps(store, eraser, key.tenant, at)
        await store.restore(key, archived, EARLY)
        await steps.finish()
        found = await everything(store, key.tenant)
        assert not [name for name, text in found.items() if b"secret" in text], at
        assert await store.session(key) is None
        assert (await store.sessions(key.tenant, None, None, 9)).items == ()


async def meddled(
    store: RedisStore, key: SessionKey, commit: Commit, before: str, meddle: Any
) -> Outcome:
    """Commit while something else is done before the script of this name is run the first time."""
    scripts, write = store._scripts, store._scripts.write
    done: list[bool] = []

    async def meddling(script: Any, keys: Any, arguments: Any) -> Any:
        if script is getattr(scripts, before) and not done:
            done.append(True)
            await meddle()
        return await write(script, keys, arguments)

    scripts.write = meddling  # type: ignore[method-assign]
    try:
        return await store.commit(key, commit)
    finally:
        scripts.write = write  # type: ignore[method-assign]


async def die() -> None:
    raise StoreError("killed")


async def lose_list(store: RedisStore, tenant: str, user: str | None) -> None:
    for key in list_keys(tenant, user):
        await store._link.run(key, ("DEL", key))


async def test_a_session_is_in_its_persons_list_before_it_is_there(
    store: RedisStore, eraser: RedisStore, key: SessionKey
) -> None:
    """Whoever is killed in between leaves none that an erasure does not find."""
    with pytest.raises(StoreError, match="killed"):
        await meddled(store, key, chat("x1", EARLY, user="kai"), "touch", die)
    page = await eraser.sessions(key.tenant, "kai", None, 9)
    assert [session.id for session in page.items] == [key.session]


async def test_what_is_refused_leaves_nothing_in_the_list(
    store: RedisStore, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", EARLY, user="kai"))
    assert await store.commit(key, chat("x2", EARLY, user="eve")) == "foreign"
    listed, _ = list_keys(key.tenant, "eve")
    assert await store._link.run(listed, ("EXISTS", listed)) == [0]


async def test_what_is_taken_back_leaves_what_is_newer(
    store: RedisStore, eraser: RedisStore, key: SessionKey
) -> None:
    """The session began anew after the erasure, while a late exchange was on its way into it."""

    async def erase() -> None:
        await eraser.mark([Subject(key.tenant, "kai")], MARK)
        assert await eraser.commit(key, chat("new", LATE, user="kai")) == "recorded"

    late = chat("secret", EARLY, user="kai", system=b"secret", ttl=100, idempotency_key="k")
    assert await meddled(store, key, late, "commit", erase) == "erased"
    found = await everything(store, key.tenant)
    assert not [name for name, text in found.items() if b"secret" in text]
    seen = await store.load(key, ALL)
    assert [entry.card.id for entry in seen.log] == ["new.0", "new.1"]
    assert (seen.system, seen.messages) == (None, 2)
    assert seen.last is not None and seen.last.id == "new"
    page = await store.sessions(key.tenant, "kai", None, 9)
    assert [session.id for session in page.items] == [key.session]
    lives = [(await store._link.run(name, ("PTTL", name)))[0] for name in session_keys(key)]
    assert {life for life in lives if life != -2} == {-1}


async def test_a_refused_commit_is_not_written_at_all(
    store: RedisStore, eraser: RedisStore, key: SessionKey
) -> None:
    async def fail() -> None:
        pytest.fail("it was written, and is taken back")

    await eraser.mark([Subject(key.tenant, "kai")], MARK)
    late = chat("x1", EARLY, user="kai", work_requests=(DUE,))
    assert await meddled(store, key, late, "touch", fail) == "erased"
    assert await everything(store, key.tenant) == {}
    assert key.tenant not in {work.tenant for work in await store.waiting(1e9, 1000)}


async def test_an_exchange_that_never_came_into_the_list_is_taken_back_when_it_comes_again(
    store: RedisStore, eraser: RedisStore, key: SessionKey
) -> None:
    """The proxy died between the two, the person was erased, and the spool replays."""
    late = chat("secret", EARLY, user="kai")
    with pytest.raises(StoreError, match="killed"):
        await meddled(store, key, late, "touch", die)
    assert (await store.load(key, ALL)).exists
    await lose_list(store, key.tenant, "kai")
    await eraser.mark([Subject(key.tenant, "kai")], MARK)
    assert await store.commit(key, late) == "erased"
    assert await everything(store, key.tenant) == {}


async def test_an_exchange_without_messages_is_taken_back_too(
    store: RedisStore, eraser: RedisStore, key: SessionKey
) -> None:
    async def erase() -> None:
        await eraser.mark([Subject(key.tenant, "kai")], MARK)

    nothing = Commit(exchange=chat("secret", EARLY).exchange, user="kai", reserved=2)
    assert await meddled(store, key, nothing, "touch", erase) == "erased"
    assert await everything(store, key.tenant) == {}


# Lists that have lost something


@pytest.mark.parametrize("clustered", [False, True])
async def test_sessions_that_no_list_names_are_listed_again(
    redis_cluster_url: str, server: Server, tenant: str, clustered: bool
) -> None:
    """Also by a server that is full: they are to be erased."""
    store = open_redis(redis_cluster_url if clustered else server.url)
    for name, user in (("a", "kai"), ("b:}*", "kai"), ("c", "eve"), ("d", None)):
        await store.commit(SessionKey(tenant, name), chat("x1", EARLY, user=user))
    await store.commit(SessionKey(f"{tenant}s", "a"), chat("x1", EARLY, user="kai"))
    await Indexer(store, store, whole, lambda: MARK).index_session(SessionKey(tenant, "a"))
    before = await everything(store, tenant)
    for user in (None, "kai"):
        await lose_list(store, tenant, user)
    with nullcontext() if clustered else server.full():
        await store.repair_session_list(tenant, "kai")
    for user in (None, "kai"):
        page = await store.sessions(tenant, user, None, 9)
        assert [session.id for session in page.items] == ["b:}*", "a"]
    found = await everything(store, tenant)
    assert found.keys() == before.keys()
    await store.close()


# Deletions that were cut off


async def test_the_index_of_a_person_has_forgotten_a_session_before_it_is_gone(
    store: RedisStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose it was cannot be told behind that."""
    key, kai = SessionKey(tenant, "a"), Owner(tenant, user="kai")
    await store.commit(key, chat("x1", LATE, user="kai"))
    indexer = Indexer(store, store, whole, lambda: MARK)
    await indexer.index_session(key)
    assert (await store.lookup(kai, (), 0, session="a")).mark is not None

    async def fails(*asked: object) -> None:
        raise StoreError

    with monkeypatch.context() as patch:
        patch.setattr(store, "_forget_work", fails)
        with pytest.raises(StoreError):
            await store.delete(key)
    assert await store.session(key) is None
    assert (await store.lookup(kai, (), 0, session="a")).mark is None


async def test_a_deletion_that_was_cut_off_is_ended_by_who_repeats_it(
    store: RedisStore, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = SessionKey(tenant, "a")
    await store.commit(key, chat("x1", LATE))
    await Indexer(store, store, whole, lambda: MARK).index_session(key)

    async def fails(*asked: object, **named: object) -> None:
        raise StoreError

    with monkeypatch.context() as patch:
        patch.setattr(store, "_sweep", fails)
        with pytest.raises(StoreError):
            await store.delete(key)
    assert any(b":si:" in name for name in await everything(store, tenant))
    assert not await store.delete(key)
    assert not any(b":si:" in name for name in await everything(store, tenant))
