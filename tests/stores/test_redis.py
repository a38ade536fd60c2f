"""What only the Redis store promises, on a standalone server that is treated badly."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.crc import key_slot

from proxy.memory.archive import Details
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Amendment,
    LoadOptions,
    MessageEdit,
    SessionKey,
    WindowMove,
    WorkRequest,
)
from proxy.memory.store import Store, StoreError, StoreFull, StoreTimeout
from proxy.stores.open import Backend, open_store
from proxy.stores.redis.base import PAGES_AT_ONCE, list_keys, session_keys
from proxy.stores.redis.store import RedisStore
from proxy.stores.redis.work import QUEUE_KEYS
from tests.support.processes.redis import HOST, Server, free_port, standalone, wait_until
from tests.support.store.archives import revise
from tests.support.store.commits import card, chat, draft, record, summary
from tests.support.waiting import PATIENCE, felt

ALL = LoadOptions(profile="default", whole=True)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of this test's own, empty, that keeps what it was told."""
    with standalone(appendonly="yes", appendfsync="always") as server:
        yield server


@pytest.fixture
async def store(server: Server) -> AsyncIterator[Store]:
    store = open_store(server.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


def keys_of(server: Server) -> set[bytes]:
    return set(server.ask("KEYS", "*"))


async def test_scripts_are_sent_again_when_the_server_has_lost_them(
    store: Store, key: SessionKey, server: Server
) -> None:
    assert await store.commit(key, chat("x1")) == "recorded"
    before = await store.load(key, ALL)
    server.ask("SCRIPT", "FLUSH")
    assert await store.load(key, ALL) == before
    server.ask("SCRIPT", "FLUSH")
    assert await store.commit(key, chat("x2")) == "recorded"
    assert (await store.load(key, ALL)).messages == 4


async def test_a_restart_in_between_costs_nothing(
    store: Store, key: SessionKey, server: Server
) -> None:
    await store.commit(key, chat("x1"))
    before = await store.load(key, ALL)
    server.restart(kill=True)
    assert await store.load(key, ALL) == before
    server.restart()
    assert await store.commit(key, chat("x2")) == "recorded"


async def test_a_load_costs_the_same_however_long_the_history_is(
    store: Store, key: SessionKey, server: Server
) -> None:
    def spent() -> tuple[int, int]:
        with server.client() as client:
            stats = client.info()
        return int(stats["total_net_output_bytes"]), int(stats["total_commands_processed"])

    await store.load(key, ALL)  # the script is known from here on
    costs = []
    for version, end in enumerate((30, 300)):
        for n in range(end // 10, end):
            at = f"x{max(0, n - 9):05d}.0"
            move = WindowMove(profile="default", start=at)
            await store.commit(key, chat(f"x{n:05d}", window=move))
        await store.put_summary(key, summary(2 * end - 19), version, 0)
        for uncovered in (None, 1_000_000):
            assert isinstance(store, RedisStore)
            store._logs.clear()
            before = spent()
            looked = spent()
            seen = await store.load(
                key, LoadOptions(profile="default", max_uncovered_tokens=uncovered)
            )
            after = spent()
            assert len(seen.log) == len(seen.bodies) == 20
            assert seen.summary is not None
            overhead = looked[0] - before[0]
            costs.append((after[0] - looked[0] - overhead, after[1] - looked[1]))
    sizes, commands = zip(*costs, strict=True)
    assert max(sizes) - min(sizes) < 200
    assert len(set(commands)) == 1

    before = spent()
    await store.load(key, LoadOptions(profile="default"))
    assert spent()[0] - before[0] - overhead < max(sizes) / 2  # it is known


async def test_all_keys_of_a_session_share_a_slot_and_live_and_die_together(
    store: Store, key: SessionKey, server: Server
) -> None:
    move = WindowMove(profile="default", start="x1.0")
    choice = draft("x1", 1, "assistant", choice=1)
    first = record(
        "x1",
        draft("x1", 0),
        choice,
        user="kai",
        ttl=100,
        window=move,
        idempotency_key="k",
        work_requests=(WorkRequest(kind="summary", profile="default", due_at=1.0),),
    )
    await store.commit(key, first)
    await store.put_summary(key, summary(3), 0, None)
    mine = set(session_keys(key))
    lists = {*list_keys(key.tenant), *list_keys(key.tenant, "kai")}
    assert keys_of(server) == mine | lists | set(QUEUE_KEYS)
    assert len({key_slot(name) for name in mine}) == 1
    assert all(99_000 < server.ask("PTTL", name) <= 100_000 for name in mine)
    assert await revise(store, key, details=Details(ttl=200))
    await store.commit(key, chat("x2"))
    assert all(199_000 < server.ask("PTTL", name) <= 200_000 for name in mine)
    assert await revise(store, key, details=Details())
    await store.commit(key, chat("x3", ttl=100))
    assert {server.ask("PTTL", name) for name in mine} == {-1}
    await store.delete(key)
    assert keys_of(server) == set()


async def test_a_key_that_an_amendment_makes_expires_with_the_others(
    store: Store, key: SessionKey, server: Server
) -> None:
    await store.commit(key, record("x1", reserved=1, ttl=100))
    await store.amend(key, Amendment(exchange="x1", drafts=(draft("x1", 0),)))
    names = [name for name in session_keys(key) if server.ask("EXISTS", name)]
    assert len(names) == 5
    assert all(0 < server.ask("PTTL", name) <= 100_000 for name in names)


async def test_a_session_that_is_not_summarised_looks_as_it_always_did(
    store: Store, key: SessionKey, server: Server
) -> None:
    """What releases without summaries have written is read, and they read what is written."""
    await store.commit(key, chat("x1", user="kai"))
    await store.commit(key, chat("x2"))
    fields = {b"next", b"owner", b"messages", b"tokens", b"last", b"profile", b"ttl", b"created"}
    fields |= {b"active_at", b"revision"}
    meta, *_, versions = session_keys(key)
    assert set(server.ask("HKEYS", meta)) == fields
    assert not server.ask("EXISTS", versions)


async def test_what_remains_of_a_summary_is_not_the_next_session_s(
    store: Store, key: SessionKey, server: Server
) -> None:
    """Keys of a session may go at different moments."""
    await store.commit(key, chat("x1"))
    await store.put_summary(key, summary(3), 0, None)
    server.ask("DEL", session_keys(key)[0])
    assert list(await store.summaries(key)) == []
    assert not await store.put_summary(key, summary(3), 1, None)
    await store.commit(key, chat("x1"))
    assert list(await store.summaries(key)) == []


async def test_work_is_asked_for_in_the_round_trip_of_the_commit(
    store: Store, key: SessionKey, server: Server
) -> None:
    dues = tuple(
        WorkRequest(kind=kind, profile="p", due_at=1.0) for kind in ("summary", "learning")
    )
    await store.commit(key, chat("x1", user="kai", work_requests=dues))
    before = calls_of(server)
    await store.commit(key, chat("x2", user="kai", work_requests=dues))
    assert calls_of(server)["evalsha"] == before["evalsha"] + 1
    assert [work.requests for work in await store.waiting(1.0, 10)] == [2, 2]


async def test_asking_for_work_costs_one_command_while_nothing_is_due(
    store: Store, key: SessionKey, server: Server
) -> None:
    for n in range(100):
        due = WorkRequest(kind="summary", profile="p", due_at=1000.0 + n)
        await store.enqueue(SessionKey(key.tenant, f"s{n}"), due)
    before = calls_of(server)
    assert list(await store.waiting(999.0, 10)) == []
    calls = calls_of(server) - before
    assert (calls["zrangebyscore"], calls["hmget"], calls["evalsha"]) == (1, 0, 0)
    assert len(await store.waiting(2000.0, 10)) == 10


def calls_of(server: Server) -> Counter[str]:
    """How often each command has been called, those of scripts included."""
    with server.client() as client:
        stats = client.info("commandstats")
    return Counter({name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()})


async def test_an_expired_session_is_gone_from_every_list(
    store: Store, key: SessionKey, server: Server
) -> None:
    await store.commit(key, chat("x1", user="kai", ttl=1))
    await store.commit(SessionKey(key.tenant, "stays"), chat("x1", user="kai"))
    wait_until(lambda: not server.ask("EXISTS", session_keys(key)[0]), "expiry")
    assert not (await store.load(key, ALL)).exists
    for user in (None, "kai"):
        page = await store.sessions(key.tenant, user, None, 10)
        assert [session.id for session in page.items] == ["stays"]
        assert server.ask("ZRANGE", list_keys(key.tenant, user)[0], 0, -1) == [b"stays"]
    assert await store.commit(key, chat("x1", user="eve")) == "recorded"


async def test_commits_clear_the_lists_of_what_has_expired(
    store: Store, server: Server, tenant: str
) -> None:
    for n in range(5):
        await store.commit(SessionKey(tenant, f"s{n}"), chat("x1", user="kai", ttl=10))
    for user in (None, "kai"):
        ended = (part for n in range(5) for part in (time.time() - 100, f"s{n}"))
        server.ask("ZADD", list_keys(tenant, user)[1], *ended)
    await store.commit(SessionKey(tenant, "new"), chat("x1", user="kai"))
    for user in (None, "kai"):
        sessions, expiries = list_keys(tenant, user)
        assert server.ask("ZRANGE", sessions, 0, -1) == [b"new"]
        assert server.ask("EXISTS", expiries) == 0


async def test_a_list_whose_sessions_all_expire_ends_with_the_last_of_them(
    store: Store, server: Server, tenant: str
) -> None:
    """Nobody may ever come to write it again, so as to clear it."""
    await store.commit(SessionKey(tenant, "ends"), chat("x1", user="kai", ttl=10))
    await store.commit(SessionKey(tenant, "stays"), chat("x1", user="kai"))
    await store.commit(SessionKey(tenant, "eves"), chat("x1", user="eve", ttl=10))
    assert lives_of(server, tenant, "kai", None) == {-1}
    assert all(10 < life <= 10 + GRACE for life in lives_of(server, tenant, "eve"))
    await store.delete(SessionKey(tenant, "stays"))
    assert all(10 < life <= 10 + GRACE for life in lives_of(server, tenant, "kai", None))
    await store.commit(SessionKey(tenant, "anew"), chat("x1", user="kai"))
    assert lives_of(server, tenant, "kai", None) == {-1}


async def test_a_list_that_was_lost_ends_with_none_of_those_that_were_in_it(
    store: Store, server: Server, tenant: str
) -> None:
    """What the server has evicted is only one of its two keys."""
    await store.commit(SessionKey(tenant, "ends"), chat("x1", user="kai", ttl=10))
    for user in ("kai", None):
        server.ask("DEL", list_keys(tenant, user)[0])
    await store.commit(SessionKey(tenant, "stays"), chat("x1", user="kai"))
    assert lives_of(server, tenant, "kai", None) <= {-1, -2}
    await store.commit(SessionKey(tenant, "ends too"), chat("x1", user="kai", ttl=10))
    assert lives_of(server, tenant, "kai", None) == {-1}


GRACE = 60
"""Seconds for which names of sessions are kept behind their end."""


def lives_of(server: Server, tenant: str, *users: str | None) -> set[int]:
    """Seconds that these lists have to live; -1 is for ever."""
    return {server.ask("TTL", key) for user in users for key in list_keys(tenant, user)}


async def test_a_host_whose_clock_is_ahead_takes_no_living_session_for_dead(
    store: Store, server: Server, tenant: str
) -> None:
    def in_a_while() -> float:
        return time.time() + 1000

    await store.commit(SessionKey(tenant, "lives"), chat("x1", user="kai", ttl=10))
    ahead = open_store(server.url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=in_a_while)
    await ahead.commit(SessionKey(tenant, "new"), chat("x1", user="kai"))
    await ahead.close()
    for user in (None, "kai"):
        listed = server.ask("ZRANGE", list_keys(tenant, user)[0], 0, -1)
        assert listed == [b"lives", b"new"]


async def test_old_idempotency_keys_are_removed(
    store: Store, key: SessionKey, server: Server
) -> None:
    await store.commit(key, chat("x1", 0.0, idempotency_key="old"))
    await store.commit(key, chat("x2", 2.0 * IDEMPOTENCY_SECONDS, idempotency_key="new"))
    exchanges, times = session_keys(key)[4:6]
    assert server.ask("ZRANGE", times, 0, -1) == [b"new"]
    fields = server.ask("HKEYS", exchanges)
    assert b"knew" in fields and b"kold" not in fields


async def test_a_server_that_hangs_costs_its_time_limit_and_no_more(
    key: SessionKey, server: Server
) -> None:
    store = open_store(server.url, timeout=1, commit_timeout=2)
    await store.commit(key, chat("x1"))
    with server.paused():
        for work, limit in ((store.load(key, ALL), 1), (store.commit(key, chat("x2")), 2)):
            began = time.monotonic()
            outcome, seconds = await felt(asyncio.gather(work, return_exceptions=True))
            assert isinstance(outcome[0], StoreTimeout)
            assert limit * 0.9 < time.monotonic() - began and seconds < 2 * limit
    assert (await store.load(key, ALL)).exists
    assert await store.commit(key, chat("x2")) in ("recorded", "duplicate")
    await store.close()


async def test_a_reply_nobody_waited_for_is_never_the_next_ones(
    store: Store, tenant: str, server: Server
) -> None:
    keys = [SessionKey(tenant, f"s{n}") for n in range(8)]
    for key in keys:
        await store.commit(key, chat("x1", user=key.session))
    for turn in range(30):
        tasks = [asyncio.create_task(store.load(key, ALL)) for key in keys]
        for _ in range(turn % 6):
            await asyncio.sleep(0)
        for task in tasks[:4]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        seen = [await store.load(key, ALL) for key in keys]
        assert [snapshot.owner for snapshot in seen] == [key.session for key in keys]
        for key, result in zip(keys[4:], results[4:], strict=True):
            assert not isinstance(result, BaseException) and result.owner == key.session
    with server.client() as client:
        assert int(client.info()["connected_clients"]) <= 40


async def test_more_requests_than_connections_wait_and_are_served(
    store: Store, tenant: str, server: Server
) -> None:
    keys = [SessionKey(tenant, f"s{n}") for n in range(200)]
    outcomes = await asyncio.gather(*(store.commit(key, chat("x1")) for key in keys))
    assert outcomes == ["recorded"] * 200
    with server.client() as client:
        assert int(client.info()["connected_clients"]) <= 33


async def test_what_the_server_refuses_is_a_store_error(
    store: Store, key: SessionKey, server: Server
) -> None:
    await store.commit(key, chat("x1"))
    await store.ping()
    with server.full():
        for work in (store.commit(key, chat("x2")), store.ping()):
            with pytest.raises(StoreFull, match="maxmemory"):
                await work
        assert (await store.load(key, ALL)).messages == 2
    server.ask("REPLICAOF", HOST, free_port())
    for work in (store.commit(key, chat("x2")), store.ping()):
        with pytest.raises(StoreError, match="read only"):
            await work
    server.ask("REPLICAOF", "NO", "ONE")
    assert await store.commit(key, chat("x2")) == "recorded"


async def test_a_full_server_takes_no_new_session_and_nothing_in_the_place_of_what_is_there(
    store: Backend, key: SessionKey, server: Server
) -> None:
    """It refuses nothing to a script that has removed something."""
    new = SessionKey(key.tenant, "new")
    await store.commit(key, chat("x1"))
    longer = MessageEdit(card=card("x1", 0), replaced_wire=draft("x1", 0).body, body=b"longer")
    with server.full():
        before = keys_of(server)
        for work in (
            store.commit(new, chat("x1", user="kai", ttl=60)),
            store.commit(key, chat("x2", superseded=("x1.0", "x1.1"))),
            store.amend(key, Amendment(exchange="x1", edited=longer)),
            revise(store, key, edited=(longer,)),
        ):
            with pytest.raises(StoreFull):
                await work
        assert keys_of(server) == before
        assert len((await store.load(key, ALL)).log) == 2
        assert await revise(store, key, removed=("x1.0",))
        assert await store.delete(key)
    assert await store.commit(new, chat("x1", user="kai")) == "recorded"


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("redis://127.0.0.1:{port}", id="standalone"),
        pytest.param("redis+cluster://127.0.0.1:{port}", id="cluster"),
        pytest.param("redis+sentinel://127.0.0.1:{port}/main", id="sentinel"),
        pytest.param("redis://nobody.invalid", id="unknown-host"),
    ],
)
async def test_an_unreachable_server_is_a_store_error_at_once(url: str, key: SessionKey) -> None:
    store = open_store(url.format(port=free_port()), timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    works = (store.load(key, ALL), store.commit(key, chat("x1")), store.ping())
    outcomes, seconds = await felt(asyncio.gather(*works, return_exceptions=True))
    assert all(isinstance(outcome, StoreError) for outcome in outcomes)
    assert seconds < 6
    await store.close()


async def test_a_password_that_is_missing_is_told_whatever_is_asked(tenant: str) -> None:
    key = SessionKey(tenant, "s")
    with standalone(requirepass="p@ss") as server:
        store = open_store(server.url, timeout=PATIENCE, commit_timeout=PATIENCE)
        for work in (
            store.ping(),
            store.load(key, ALL),
            store.commit(key, chat("x1")),
            store.sessions(tenant, None, None, 10),
        ):
            with pytest.raises(StoreError, match="password is missing or wrong"):
                await work
        await store.close()


async def test_passwords_and_databases_are_used(tenant: str) -> None:
    key = SessionKey(tenant, "s")
    with standalone(requirepass="p@ss") as server:
        with pytest.raises(StoreError, match="password is missing or wrong"):
            await open_store(server.url, timeout=PATIENCE, commit_timeout=PATIENCE).ping()
        url = f"redis://:p%40ss@{server.address}/3"
        store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
        assert await store.commit(key, chat("x1")) == "recorded"
        await store.close()


async def test_pages_that_a_patient_one_waits_for_keep_no_lists_waiting() -> None:
    url = f"redis://{HOST}:{free_port()}"
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    patient = store.with_long_timeout(PATIENCE)
    assert isinstance(patient, RedisStore)
    for _ in range(PAGES_AT_ONCE):
        await patient._page_slots.acquire()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreError):
            await store.sessions("t", None, None, 10)
    await store.close()
