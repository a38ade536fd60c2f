"""What only the Redis store promises of sessions that people read, change and put back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from proxy.memory.archive import Details, Revision, SessionArchive
from proxy.memory.erasure import Subject
from proxy.memory.model import Card, LoadOptions, SessionKey, State
from proxy.memory.store import StoreError
from proxy.stores.address import read_address
from proxy.stores.redis.archive import STAGED_SECONDS
from proxy.stores.redis.base import list_keys, session_keys
from proxy.stores.redis.codec import MAX_BATCH_BYTES, MAX_BATCH_VALUES, batches, restored_values
from proxy.stores.redis.connection import connect
from proxy.stores.redis.scripts import Script
from proxy.stores.redis.store import RedisStore
from tests.support.clock import Clock
from tests.support.processes.redis import Server, guarded, wait_until
from tests.support.store.archives import edited, exchanges, lines, revise, take_out
from tests.support.store.commits import chat, draft, record
from tests.support.waiting import PATIENCE

ALL = LoadOptions(profile="default", whole=True)
ACTIVE: tuple[State, ...] = ("active",)


@pytest.fixture
def clock() -> Clock:
    return Clock(time.time())


def open_redis(url: str, clock: Clock, wait_replicas: int = 0) -> RedisStore:
    address = read_address(url)
    return RedisStore(
        address.name,
        connect(address, 5),
        one_slot=address.kind != "cluster",
        timeout=PATIENCE,
        commit_timeout=PATIENCE,
        wait_replicas=wait_replicas,
        clock=clock,
    )


@pytest.fixture
async def store(server: Server, clock: Clock) -> AsyncIterator[RedisStore]:
    store = open_redis(server.url, clock)
    yield store
    await store.close()


def keys_of(server: Server) -> set[bytes]:
    return set(server.ask("KEYS", "*"))


async def taken_out(store: RedisStore, key: SessionKey, **fields: Any) -> SessionArchive:
    """A session that was taken out, and is not there any more."""
    await store.commit(key, chat("x1", user="kai", **fields))
    archived = await take_out(store, key)
    await store.delete(key)
    return archived


# Replies that are lost


def lose_a_reply(store: RedisStore, lost: Script) -> None:
    """What runs this script is sent twice, as when the connection breaks before the reply."""
    link, run = store._link, store._link.run

    async def running(key: bytes, *commands: Any) -> list[Any]:
        if commands[0][1] in (lost.digest, lost.text):
            await run(key, *commands)
        return await run(key, *commands)

    link.run = running  # type: ignore[method-assign]


async def test_a_revision_whose_reply_was_lost_is_done_once_and_said_to_be_done(
    store: RedisStore, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    await revise(store, key)  # the script is known from here on
    lose_a_reply(store, store._scripts.revise)
    was = (await lines(store, key))[0].body
    assert await revise(store, key, edited=(edited("x1", 0, replaced_wire=was),), removed=("x1.1",))
    assert (await store.load(key, ALL)).changes == 2
    known = Details(title="t")
    assert await revise(store, key, details=known, expected_details=Details())
    assert not await revise(store, key, details=known, expected_details=Details())


async def test_a_session_whose_reply_was_lost_was_put_back(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    archived = await taken_out(store, key)
    await store.restore(SessionKey(key.tenant, "other"), archived)
    lose_a_reply(store, store._scripts.restore)
    assert await store.restore(key, archived)
    assert not await store.restore(key, archived)
    assert await take_out(store, key) == archived
    assert not [name for name in keys_of(server) if b"brought" in name]


@pytest.mark.parametrize("scripts", ["known", "unknown"])
async def test_revisions_wait_for_replicas_and_say_so_where_there_are_too_few(
    server: Server, key: SessionKey, clock: Clock, scripts: str
) -> None:
    store = open_redis(server.url, clock)
    archived = await taken_out(store, key)
    await store.restore(key, archived)
    await revise(store, key, details=Details())
    await store.close()
    store = RedisStore(
        "lonely",
        connect(read_address(server.url), 5),
        one_slot=True,
        commit_timeout=5,
        wait_replicas=1,
    )
    if scripts == "unknown":
        server.ask("SCRIPT", "FLUSH")
    outcomes = await asyncio.gather(
        revise(store, key, details=Details()),
        store.restore(SessionKey(key.tenant, "other"), archived),
        store.mark([Subject(key.tenant, "kai")], time.time()),
        store.unmark(Subject(key.tenant, "kai")),
        return_exceptions=True,
    )
    assert all(isinstance(outcome, StoreError) for outcome in outcomes)
    assert {str(outcome) for outcome in outcomes} == {"0 of 1 replicas have the commit"}
    await store.close()


async def test_with_replicas_everything_is_done_as_without(key: SessionKey, clock: Clock) -> None:
    with guarded() as guards:
        store = open_redis(guards.url, clock, wait_replicas=1)
        archived = await taken_out(store, key)
        assert await store.restore(key, archived)
        assert await revise(store, key, removed=("x1.0",))
        assert [line.card.id for line in await lines(store, key)] == ["x1.1"]
        await store.close()


# Keys, and how long they live


async def test_all_keys_of_a_changed_session_live_as_long_as_it(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    choice = draft("x1", 1, "assistant", choice=1)
    await store.commit(key, record("x1", draft("x1", 0), choice, ttl=100))
    was = (await lines(store, key))[0].body
    assert await revise(store, key, superseded=("x1.0", "x1.1"))
    new = edited("x1", 0, replaced_wire=was, wire=b"{}")
    assert await revise(store, key, activated=("x1.0",), edited=(new,))
    names = [name for name in session_keys(key) if server.ask("EXISTS", name)]
    assert len(names) == 6
    assert all(90_000 < server.ask("PTTL", name) <= 100_000 for name in names)
    assert await revise(store, key, details=Details(ttl=500))
    assert all(490_000 < server.ask("PTTL", name) <= 500_000 for name in names)
    assert await revise(store, key, details=Details())
    assert {server.ask("PTTL", name) for name in names} == {-1}


async def test_a_session_that_lives_longer_now_stays_in_the_lists(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", user="kai", ttl=10))
    assert await revise(store, key, details=Details(ttl=10_000))
    for user in (None, "kai"):
        expires = server.ask("ZSCORE", list_keys(key.tenant, user)[1], key.session)
        assert float(expires) > time.time() + 9_000
    assert await revise(store, key, details=Details())
    assert not server.ask("EXISTS", list_keys(key.tenant)[1])


async def test_a_session_that_is_put_back_has_the_keys_of_any_other(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    archived = await taken_out(store, key, ttl=100)
    assert keys_of(server) == set()
    assert await store.restore(key, archived)
    mine = {name for name in session_keys(key) if server.ask("EXISTS", name)}
    assert len(mine) == 5
    assert all(90_000 < server.ask("PTTL", name) <= 100_000 for name in mine)
    lists = {*list_keys(key.tenant), *list_keys(key.tenant, "kai")}
    assert keys_of(server) == mine | lists
    await store.delete(key)
    assert keys_of(server) == set()


async def test_a_session_without_messages_has_no_key_but_its_meta(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    choice = draft("x1", 1, "assistant", choice=1)
    await store.commit(key, record("x1", draft("x1", 0), choice, idempotency_key="k"))
    assert await revise(store, key, removed=("x1.0", "x1.1"))
    assert keys_of(server) == {session_keys(key)[0], list_keys(key.tenant)[0]}


# Putting back


async def test_what_was_cut_short_is_no_session_and_ends_by_itself(
    store: RedisStore, server: Server, key: SessionKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived = await taken_out(store, key)
    scripts, write = store._scripts, store._scripts.write

    async def cut(script: Script, keys: Any, arguments: Any) -> Any:
        if script is scripts.restore:
            raise StoreError("cut")
        return await write(script, keys, arguments)

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="cut"):
        patch.setattr(scripts, "write", cut)
        await store.restore(key, archived)
    left = keys_of(server)
    assert left and not left & set(session_keys(key))
    assert all(0 < server.ask("TTL", name) <= STAGED_SECONDS for name in left)
    assert await store.session(key) is None and await store.tenants() == []
    assert await store.restore(key, archived)
    assert await take_out(store, key) == archived


async def test_what_took_too_long_to_bring_is_not_put_back(
    store: RedisStore, server: Server, key: SessionKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived = await taken_out(store, key)
    scripts, write = store._scripts, store._scripts.write

    async def late(script: Script, keys: Any, arguments: Any) -> Any:
        if script is scripts.restore:
            server.ask("FLUSHALL")
        return await write(script, keys, arguments)

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="too long"):
        patch.setattr(scripts, "write", late)
        await store.restore(key, archived)
    assert keys_of(server) == set()


async def test_a_session_comes_into_its_lists_at_once_whatever_happens_next(
    store: RedisStore, key: SessionKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived = await taken_out(store, key)
    scripts, write = store._scripts, store._scripts.write

    async def last(script: Script, keys: Any, arguments: Any) -> Any:
        if script is not scripts.restore:
            raise StoreError("killed")
        return await write(script, keys, arguments)

    with monkeypatch.context() as patch, suppress(StoreError):
        patch.setattr(scripts, "write", last)
        await store.restore(key, archived)
    for user in (None, "kai"):
        assert (await store.sessions(key.tenant, user, None, 9)).items == (archived.session,)


@pytest.mark.parametrize("before", ["touch", "restore_keep"])
async def test_one_that_did_not_come_into_its_lists_ends_or_does_when_it_is_put_back_again(
    redis_cluster_url: str, key: SessionKey, clock: Clock, before: str
) -> None:
    """In a cluster they lie elsewhere."""
    store = open_redis(redis_cluster_url, clock)
    archived = await taken_out(store, key)
    scripts, write, meta = store._scripts, store._scripts.write, session_keys(key)[0]

    async def cut(script: Script, keys: Any, arguments: Any) -> Any:
        if script is getattr(scripts, before):
            raise StoreError("killed")
        return await write(script, keys, arguments)

    async def left() -> int:
        (seconds,) = await store._link.run(meta, ("TTL", meta))
        return int(seconds)

    scripts.write = cut  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="killed"):
        await store.restore(key, archived)
    assert 0 < await left() <= STAGED_SECONDS
    scripts.write = write  # type: ignore[method-assign]
    assert not await store.restore(key, archived)
    assert (await store.sessions(key.tenant, "kai", None, 9)).items == (archived.session,)
    assert await left() == -1
    await store.close()


async def test_what_is_said_in_a_session_that_is_being_put_back_is_not_lost_with_it(
    redis_cluster_url: str, key: SessionKey, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_redis(redis_cluster_url, clock)
    archived, meta = await taken_out(store, key), session_keys(key)[0]

    async def killed(*_: Any, **__: Any) -> bool:
        raise StoreError("killed")

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="killed"):
        patch.setattr(store, "_add_to_lists", killed)
        await store.restore(key, archived)
    assert await store.commit(key, chat("z1")) == "recorded"
    assert await store._link.run(meta, ("TTL", meta)) == [-1]
    assert len((await store.sessions(key.tenant, "kai", None, 9)).items) == 1
    await store.close()


async def test_what_remains_of_a_session_that_has_expired_is_not_the_one_that_is_put_back(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    archived = await taken_out(store, key)
    await store.commit(key, record("old", *(draft("old", n) for n in range(5))))
    server.ask("DEL", session_keys(key)[0])
    assert await store.restore(key, archived)
    assert await take_out(store, key) == archived


async def test_a_long_session_is_brought_in_parts_of_bounded_size(
    store: RedisStore, key: SessionKey
) -> None:
    for n in range(700):
        await store.commit(key, chat(f"x{n}"))
    big = [draft("big", n, wire=b'"%b"' % (b"x" * 200_000)) for n in range(4)]
    await store.commit(key, record("big", *big))
    archived = await take_out(store, key)
    values = list(restored_values(archived, "name"))
    parts = list(batches(values))
    assert [part for value in values for part in value] == [x for part in parts for x in part]
    assert max(len(part) // 3 for part in parts) <= MAX_BATCH_VALUES
    sizes = [sum(len(value) for value in part[2::3] if isinstance(value, bytes)) for part in parts]
    assert max(sizes) < MAX_BATCH_BYTES + 200_000 < sum(sizes)


# Reading


async def test_a_page_of_long_messages_is_read_in_steps(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    for n in range(6):
        await store.commit(key, record(f"x{n}", draft(f"x{n}", 0, wire=b"x" * 600_000)))
    await store.lines(key, 0, 1)  # the script is known from here on

    def calls() -> int:
        with server.client() as client:
            return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])

    before = calls()
    page = await store.lines(key, 0, 100)
    assert [len(line.wire or b"") for line in page.items] == [600_000] * 6
    assert calls() - before == 3
    messages = await store.messages(key, ACTIVE, 0, 100)
    assert [len(message.wire) for message in messages.items] == [600_000] * 6
    assert calls() - before == 6


async def test_looking_at_the_newest_exchanges_costs_the_same_however_many_there_are(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    def commands() -> int:
        with server.client() as client:
            stats = client.info("commandstats")
        return sum(int(each["calls"]) for each in stats.values())

    costs = []
    for end in (20, 200):
        for n in range(end // 10, end):
            await store.commit(key, chat(f"x{n:03d}"))
        await store.exchanges(key, None, 5)
        before = commands()
        looked = commands()
        assert len((await store.exchanges(key, None, 5)).items) == 5
        costs.append(commands() - looked - (looked - before))
    assert costs[0] == costs[1]


async def test_exchanges_of_any_id_are_found_by_their_messages(
    store: RedisStore, key: SessionKey
) -> None:
    names = ["a.b.1", 'quote"', "back\\slash", "\u2603", "x y", "1", "tab\t"]
    for name in names:
        await store.commit(key, chat(name))
    assert [placed.exchange.id for placed in await exchanges(store, key)] == names[::-1]
    await store.revise(key, Revision(removed=("tab\t.0", "tab\t.1")))
    session = await store.session(key)
    assert session is not None and session.last == "1"


def test_scripts_find_origin_and_choice_of_a_card_where_they_are() -> None:
    """In Lua lists begin with 1: see removal_prelude.lua."""
    assert Card.__struct_fields__[0] == "id"
    assert Card.__struct_fields__[7 - 1] == "origin"
    assert Card.__struct_fields__[11 - 1] == "choice"


async def test_an_old_release_s_session_is_read_and_changed(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    """Without title, metadata, and the name of a revision."""
    await store.commit(key, chat("x1", system=b"[1]", system_tokens=2))
    fields = set(server.ask("HKEYS", session_keys(key)[0]))
    assert not fields & {b"title", b"metadata", b"revised"}
    known = Details(system=b"[1]", system_tokens=2)
    session = await store.session(key)
    assert session is not None and session.details == known
    assert await revise(store, key, details=Details(title="t"), expected_details=known)


async def test_a_session_expires_while_it_is_looked_at(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", ttl=1))
    wait_until(lambda: not server.ask("EXISTS", session_keys(key)[0]), "expiry")
    assert await store.message(key, "x1.0") is None
    assert (await store.lines(key, 0, 9)).items == ()
    assert (await store.exchanges(key, None, 9)).items == ()
    assert not await revise(store, key, removed=("x1.0",))
    assert await store.session(key) is None


async def test_a_page_of_sessions_reads_a_page_however_many_have_one_time(
    store: RedisStore, server: Server, key: SessionKey
) -> None:
    def described() -> int:
        with server.client() as client:
            return int(client.info("commandstats")["cmdstat_hgetall"]["calls"])

    for n in range(60):
        await store.commit(SessionKey(key.tenant, f"s{n:02d}"), chat("x1", 1000.0))
    seen: list[str] = []
    after = None
    for _ in range(10):
        before = described()
        page = await store.sessions(key.tenant, None, after, 6)
        seen += [session.id for session in page.items]
        after = page.after
        assert described() - before <= 7
    assert seen == [f"s{n:02d}" for n in range(60)][::-1]
    assert after is None
