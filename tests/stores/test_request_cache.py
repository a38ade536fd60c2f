"""What a request looks up of the session that it has just loaded is asked once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextvars import Context
from typing import Any

import pytest

from proxy.memory.model import LoadOptions, SessionKey
from proxy.recall.index import Owner
from proxy.stores.common.passage_cache import NO_PASSAGES
from proxy.stores.open import open_store
from proxy.stores.redis import request_cache
from proxy.stores.redis.store import RedisStore
from proxy.stores.redis.wire import Command
from tests.support.clock import Clock
from tests.support.store.archives import revise
from tests.support.store.batches import batch, term
from tests.support.store.commits import chat
from tests.support.waiting import PATIENCE

SEQS = range(1, 7)
ASK = LoadOptions(profile="default", max_messages=6)


async def known_session(store: RedisStore, key: SessionKey) -> Callable[[], Awaitable[int]]:
    """A session of six messages that are known, and loaded just now; looks one of them up."""
    for n in range(3):
        await store.commit(key, chat(f"x{n}", user="kai"))
    await store.passages(key.tenant, "kai", {key.session: SEQS})
    await store.load(key, ASK)

    async def look(user: str | None = "kai") -> int:
        return len(await store.passages(key.tenant, user, {key.session: (3, 4)}))

    return look


@pytest.fixture
async def redis(redis_url: str, clock: Clock) -> AsyncIterator[RedisStore]:
    store = open_store(redis_url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock)
    assert isinstance(store, RedisStore)
    yield store
    await store.close()


@pytest.fixture
def asked(redis: RedisStore, monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """What the server was asked."""
    commands: list[Command] = []
    run, many = redis._link.run, redis._link.many

    async def one(key: bytes, *sent: Command) -> list[Any]:
        commands.extend(sent)
        return await run(key, *sent)

    async def several(sent: Sequence[tuple[bytes, Command]]) -> list[Any]:
        commands.extend(command for _, command in sent)
        return await many(sent)

    monkeypatch.setattr(redis._link, "run", one)
    monkeypatch.setattr(redis._link, "many", several)
    return commands


async def test_of_the_session_that_a_request_has_just_loaded_nothing_is_asked_that_is_known(
    redis: RedisStore, key: SessionKey, asked: list[Command]
) -> None:
    look = await known_session(redis, key)
    asked.clear()
    assert await look() == 2
    assert not asked
    assert await look() == 2
    assert len(asked) == 1, "what is looked up later may have changed"


@pytest.mark.parametrize("why", ["late", "written", "of another", "in another task", "more"])
async def test_else_it_is_asked(
    redis: RedisStore,
    key: SessionKey,
    asked: list[Command],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await known_session(redis, key)
    if why == "late":
        later = request_cache.now() + 1
        monkeypatch.setattr(request_cache, "now", lambda: later)
    if why == "written":
        await redis.commit(key, chat("y1", user="kai", superseded=("x1.0",)))
    asked.clear()
    user = "lou" if why == "of another" else "kai"
    seqs = (3, 4, 7) if why == "more" else (3, 4)
    looked = redis.passages(key.tenant, user, {key.session: seqs})
    if why == "in another task":
        found = await asyncio.create_task(looked, context=Context())
    else:
        found = await looked
    assert len(asked) == 1
    assert len(found) == {"of another": 0, "written": 1}.get(why, 2)


async def test_what_is_erased_is_not_kept_in_mind(redis: RedisStore, key: SessionKey) -> None:
    await known_session(redis, key)
    assert redis._passages.get(key).messages
    await revise(redis, key, removed=("x0.0",))
    assert redis._passages.get(key) is NO_PASSAGES


async def session_with_index(store: RedisStore, key: SessionKey) -> Owner:
    """A session of nobody's, whose index is there; loaded just now."""
    owner = Owner(key.tenant, session=key.session)
    await store.commit(key, chat("x1"))
    assert await store.write(owner, batch(0, [["one"], ["two"]], session=key.session))
    await store.load(key, ASK)
    await store.passages(key.tenant, None, {key.session: (1,)})
    await store.load(key, ASK)
    return owner


async def test_what_its_own_index_says_comes_with_the_session(
    redis: RedisStore, key: SessionKey, asked: list[Command]
) -> None:
    owner = await session_with_index(redis, key)
    asked.clear()
    seen = await redis.lookup(owner, (), 10, session=key.session)
    assert not asked
    assert seen == await redis.lookup(owner, (), 10, session=key.session)
    assert asked and seen.revision == 1 and seen.mark is not None
    assert await redis.write(owner, batch(1, [["three"]], first=2, session=key.session))
    assert (await redis.lookup(owner, (), 10, session=key.session)).revision == 2


@pytest.mark.parametrize("what", ["terms", "a person's", "another's", "no session's", "written"])
async def test_other_looks_at_an_index_are_asked(
    redis: RedisStore, key: SessionKey, asked: list[Command], what: str
) -> None:
    owner = await session_with_index(redis, key)
    if what == "written":
        await redis.commit(key, chat("x2"))
    whose = {
        "a person's": Owner(key.tenant, user=key.session),
        "another's": Owner(key.tenant, session="another"),
    }.get(what, owner)
    session = "" if what == "no session's" else whose.session or key.session
    asked.clear()
    seen = await redis.lookup(whose, [term("one")] if what == "terms" else (), 10, session=session)
    assert asked
    assert bool(seen.revision) == (whose == owner)


async def test_of_a_session_that_has_no_index_the_look_is_asked(
    redis: RedisStore, key: SessionKey, asked: list[Command]
) -> None:
    await redis.commit(key, chat("x1"))
    await redis.passages(key.tenant, None, {key.session: (1,)})
    await redis.load(key, ASK)
    asked.clear()
    owner = Owner(key.tenant, session=key.session)
    assert not (await redis.lookup(owner, (), 10, session=key.session)).revision
    assert asked
