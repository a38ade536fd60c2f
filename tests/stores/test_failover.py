"""Redis with several servers: masters die, slots move, replicas lag; nothing is lost by it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import redis
from redis.crc import key_slot

from proxy.memory.erasure import Subject
from proxy.memory.model import LoadOptions, SessionKey, Summary
from proxy.memory.store import Store, StoreError, StoreTimeout
from proxy.stores.open import open_store
from proxy.stores.redis.base import list_keys, session_keys
from tests.support.processes.redis import HOST, Cluster, Server, cluster, guarded, wait_until
from tests.support.store.commits import chat, draft, record
from tests.support.waiting import PATIENCE

ALL = LoadOptions(profile="default", whole=True)


@pytest.fixture(scope="module")
def masters() -> Iterator[Cluster]:
    with cluster() as formed:
        yield formed


@pytest.fixture(scope="module")
def replicated() -> Iterator[Cluster]:
    with cluster(replicas=3, node_timeout_ms=1000) as formed:
        yield formed


def owner_of(formed: Cluster, slot: int) -> Server:
    for server in formed.servers:
        if not server.running:
            continue
        with server.client() as client:
            nodes = client.execute_command("CLUSTER NODES")
        line = next(node for node in nodes.values() if "myself" in node["flags"])
        if any(int(part[0]) <= slot <= int(part[-1]) for part in line["slots"]):
            return server
    raise AssertionError(f"nobody has slot {slot}")


def key_on(formed: Cluster, server: Server, tenant: str, start: int = 0) -> SessionKey:
    """A session that lives on this server."""
    for n in range(start, start + 1000):
        key = SessionKey(tenant, f"s{n}")
        if owner_of(formed, key_slot(session_keys(key)[0])) is server:
            return key
    raise AssertionError("no such session among a thousand")


async def commit_until_recorded(store: Store, key: SessionKey, id: str) -> None:
    """As a caller with a spool does: the same exchange again until it is in."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            assert await store.commit(key, chat(id)) in ("recorded", "duplicate")
            return
        except StoreError:
            assert time.monotonic() < deadline, "no commit succeeded in time"


def identity(server: Server) -> str:
    return str(server.ask("CLUSTER", "MYID").decode())


async def test_a_slot_that_has_moved_is_found_again(masters: Cluster, tenant: str) -> None:
    store = open_store(masters.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    old, new, third = masters.masters
    key = key_on(masters, old, tenant)
    slot = key_slot(session_keys(key)[0])
    await store.commit(key, chat("x1"))
    await store.delete(key)
    for server in (new, old, third):
        server.ask("CLUSTER", "SETSLOT", slot, "NODE", identity(new))
    assert await store.commit(key, chat("x2")) == "recorded"
    assert (await store.load(key, ALL)).messages == 2
    page = await store.sessions(tenant, None, None, 10)
    assert [session.id for session in page.items] == [key.session]
    assert new.ask("EXISTS", session_keys(key)[0]) == 1
    await store.close()


async def test_a_slot_on_its_way_is_asked_for_where_it_goes(masters: Cluster, tenant: str) -> None:
    store = open_store(masters.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    old, new, _ = masters.masters
    key = key_on(masters, old, tenant)
    slot = key_slot(session_keys(key)[0])
    # With every key of a session there: a command on several, some missing, must wait.
    choice = draft("x1", 1, "assistant", choice=1)
    await store.commit(key, record("x1", draft("x1", 0), choice, idempotency_key="k"))
    await store.put_summary(key, Summary(text="short", version=1), 0, None)
    await store.mark([Subject(tenant, session=key.session)], time.time() - 60)
    before = await store.load(key, ALL)
    new.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", identity(old))
    old.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", identity(new))
    names = old.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)
    old.ask("MIGRATE", HOST, new.port, "", 0, 1000, "KEYS", *names)
    assert await store.load(key, ALL) == before
    assert await store.commit(key, chat("x2", time.time())) == "recorded"
    for server in (new, old):
        server.ask("CLUSTER", "SETSLOT", slot, "NODE", identity(new))
    assert (await store.load(key, ALL)).messages == 4
    await store.close()


async def test_a_slot_whose_way_was_broken_off_is_named(masters: Cluster, tenant: str) -> None:
    store = open_store(masters.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    old, new, _ = masters.masters
    key = key_on(masters, old, tenant)
    slot = key_slot(session_keys(key)[0])
    old.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", identity(new))  # which does not expect it
    with pytest.raises(StoreError, match=f"slot {slot} is moved from server to server"):
        await store.load(key, ALL)
    old.ask("CLUSTER", "SETSLOT", slot, "STABLE")
    assert await store.commit(key, chat("x1")) == "recorded"
    await store.close()


async def test_a_list_on_its_way_is_read_on_from_a_place(masters: Cluster, tenant: str) -> None:
    """With several commands together, which the server that gets the slot is to be told of each."""
    store = open_store(masters.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    for name in ("a", "b"):
        await store.commit(SessionKey(tenant, name), chat("x1", user="kai"))
    first = await store.sessions(tenant, "kai", None, 1)
    slot = key_slot(list_keys(tenant, "kai")[0])
    old = owner_of(masters, slot)
    new = next(server for server in masters.masters if server is not old)
    new.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", identity(old))
    old.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", identity(new))
    names = old.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)
    old.ask("MIGRATE", HOST, new.port, "", 0, 1000, "KEYS", *names)
    page = await store.sessions(tenant, "kai", first.after, 1)
    assert [session.id for session in page.items] == ["a"]
    for server in (new, old):
        server.ask("CLUSTER", "SETSLOT", slot, "NODE", identity(new))
    await store.close()


async def test_a_cluster_is_found_through_any_of_its_servers(masters: Cluster, tenant: str) -> None:
    key = SessionKey(tenant, "s")
    for n, server in enumerate(masters.masters):
        url = f"redis+cluster://127.0.0.1:1,{server.address}"
        store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
        assert await store.commit(key, chat(f"x{n}")) == "recorded"
        await store.ping()
        await store.close()
    assert await _count(masters.url, key) == 6


async def test_a_master_of_the_cluster_that_hangs_is_away_for_its_own_sessions(
    masters: Cluster, tenant: str
) -> None:
    keys = [key_on(masters, server, tenant) for server in masters.masters]
    store = open_store(masters.url, timeout=1, commit_timeout=1)
    assert {store.server_of(key) for key in keys} == {""}
    for key in keys:
        await store.ping(key)
    assert [store.server_of(key) for key in keys] == [each.address for each in masters.masters]
    with masters.masters[1].paused():
        for look in (store.ping(keys[1]), store.peek(keys[1])):
            with pytest.raises(StoreTimeout):
                await look
        for key in (keys[0], keys[2]):
            await store.ping(key)
            await store.peek(key)
    await store.ping(keys[1])
    await store.close()


async def _count(url: str, key: SessionKey) -> int:
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    messages = (await store.load(key, ALL)).messages
    await store.close()
    return messages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "way"), [(0, "killed"), (1, "hanging")], ids=["killed", "hanging"]
)
async def test_a_replica_takes_over_from_a_master_of_the_cluster(
    replicated: Cluster, tenant: str, number: int, way: str
) -> None:
    victim, replica = replicated.masters[number], replicated.replicas[number]
    key = key_on(replicated, victim, tenant)
    store = open_store(replicated.url, timeout=2, commit_timeout=1)
    for n in range(20):
        await commit_until_recorded(store, key, f"x{n}")
    wait_until(lambda: _last(replica, key) == b"x19", "replication")
    with ExitStack() as stack:
        if way == "killed":
            victim.stop(kill=True)
        else:
            stack.enter_context(victim.paused())
        await commit_until_recorded(store, key, "after")
        seen = await store.load(key, ALL)
    assert [entry.card.exchange for entry in seen.log[::2]] == [
        *(f"x{n}" for n in range(20)),
        "after",
    ]
    assert [entry.position.seq for entry in seen.log] == list(range(1, 43))
    await store.close()


def _last(replica: Server, key: SessionKey) -> bytes | None:
    with replica.client() as client:
        client.execute_command("READONLY")
        found: bytes | None = client.hget(session_keys(key)[0], "last")
    return found


@pytest.mark.slow
async def test_the_store_follows_the_master_that_sentinel_names(tenant: str) -> None:
    key = SessionKey(tenant, "s")
    with guarded(down_after_ms=500) as group:
        store = open_store(group.url, timeout=2, commit_timeout=1)
        for n in range(10):
            await commit_until_recorded(store, key, f"x{n}")
        (replica,) = group.replicas
        wait_until(lambda: replica.ask("HGET", session_keys(key)[0], "last") == b"x9", "sync")
        group.master.stop(kill=True)
        await commit_until_recorded(store, key, "after")
        assert group.master_port() == replica.port
        seen = await store.load(key, ALL)
        assert [entry.card.exchange for entry in seen.log[::2]] == [
            *(f"x{n}" for n in range(10)),
            "after",
        ]
        await store.close()


async def test_a_commit_waits_for_its_replicas(tenant: str) -> None:
    key = SessionKey(tenant, "s")
    with guarded() as group:
        (replica,) = group.replicas
        url = group.master.url
        one, two = (open_store(url, timeout=1, commit_timeout=3, wait_replicas=n) for n in (1, 2))
        assert await one.commit(key, chat("x1")) == "recorded"
        assert replica.ask("HGET", session_keys(key)[0], "last") == b"x1"
        with pytest.raises(StoreError, match="1 of 2 replicas"):
            await two.commit(key, chat("x2"))
        with replica.paused():
            with pytest.raises(StoreError, match="0 of 1 replicas"):
                await one.commit(key, chat("x3"))
            # Recorded on the master, but nothing that may be acknowledged yet.
            with pytest.raises(StoreError, match="0 of 1 replicas"):
                await one.commit(key, chat("x3"))
        assert await one.commit(key, chat("x3")) == "duplicate"
        await asyncio.gather(one.close(), two.close())


async def test_a_move_that_was_cut_short_is_done_again(masters: Cluster, tenant: str) -> None:
    """The copy is made and the original not yet deleted: what a kill in between leaves."""
    store = open_store(masters.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    old, new = SessionKey(tenant, "s"), SessionKey(f"{tenant}-new", "s")
    await store.commit(old, chat("x1", user="kai"))
    before = await store.load(old, ALL)
    url = masters.masters[0].address.split(":")
    with redis.RedisCluster(host=url[0], port=int(url[1]), protocol=2) as client:
        for source, target in zip(session_keys(old), session_keys(new), strict=True):
            payload = client.execute_command("DUMP", source)
            if payload is not None:
                client.execute_command("RESTORE", target, 0, payload)
    assert await store.move(tenant, new.tenant) == 1
    assert not (await store.load(old, ALL)).exists
    assert await store.load(new, ALL) == before
    page = await store.sessions(new.tenant, "kai", None, 10)
    assert [session.id for session in page.items] == ["s"]
    await store.close()


async def test_two_tenants_lists_lie_where_their_keys_say(masters: Cluster, tenant: str) -> None:
    store = open_store(masters.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.commit(SessionKey(tenant, "s"), chat("x1", user="kai"))
    for user in (None, "kai"):
        name = list_keys(tenant, user)[0]
        server = owner_of(masters, key_slot(name))
        assert server.ask("ZRANGE", name, 0, -1) == [b"s"]
    await store.close()
