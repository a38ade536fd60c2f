"""The queue of work, on every back end.

It is one for all tenants, and servers are shared by tests: each looks at its tenant's work alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.memory.model import SessionKey, Work, WorkRequest
from proxy.memory.store import Store
from proxy.stores.open import open_store
from proxy.stores.redis import work as redis_work
from tests.support.store.commits import chat
from tests.support.waiting import PATIENCE

LEASE = 60.0
EVERYTHING = 100_000
"""More pieces of work than all tests leave behind."""


def due(at: float = 100.0, **fields: Any) -> WorkRequest:
    known: dict[str, Any] = {"kind": "summary", "profile": "default"}
    return WorkRequest(due_at=at, **(known | fields))


async def waiting(store: Store, tenant: str, now: float) -> Sequence[Work]:
    return [work for work in await store.waiting(now, EVERYTHING) if work.tenant == tenant]


async def claimed(store: Store, key: SessionKey, now: float = 100.0) -> Work:
    """The only piece of the tenant that is due, once it is held."""
    (work,) = await waiting(store, key.tenant, now)
    held = await store.claim(work, now, now + LEASE)
    assert held is not None
    return held


async def test_work_waits_until_it_is_due(store: Store, key: SessionKey) -> None:
    await store.enqueue(key, due(100.5, profile="p"))
    assert await waiting(store, key.tenant, 100.25) == []
    expected = Work(tenant=key.tenant, session=key.session, kind="summary", profile="p", due=100.5)
    assert await waiting(store, key.tenant, 100.5) == [expected]
    assert await waiting(store, key.tenant, 1000.0) == [expected]


async def test_the_longest_overdue_comes_first(store: Store, tenant: str) -> None:
    names = ["c", "a", "d", "b"]
    for at, name in enumerate(names):
        await store.enqueue(SessionKey(tenant, name), due(-1e9 - at))
    assert [work.session for work in await waiting(store, tenant, 0.0)] == names[::-1]
    first = await store.waiting(0.0, 2)
    assert [work.session for work in first] == ["b", "d"]
    for name in names:
        await store.delete(SessionKey(tenant, name))


@pytest.mark.parametrize("at_once", [2, 4096])
async def test_tenants_can_be_passed_over(
    store: Store, tenant: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_work, "SKIPPED_AT_ONCE", at_once)
    keys = [SessionKey(tenant, str(number)) for number in range(7)]
    keys += [SessionKey(f"{tenant}:%/", "1"), SessionKey(f"{tenant}-last", "1")]
    for at, key in enumerate(keys):
        await store.enqueue(key, due(-1e9 + at))
    found = await store.waiting(0.0, 1, {tenant})
    assert [work.tenant for work in found] == [f"{tenant}:%/"]
    found = await store.waiting(0.0, 2, [tenant, "nobody", f"{tenant}:%/"])
    assert found[0].tenant == f"{tenant}-last" and len(found) <= 2
    for key in keys:
        await store.delete(key)


async def test_nothing_waits_where_nothing_was_asked_for(store: Store, tenant: str) -> None:
    assert await waiting(store, tenant, 1e12) == []
    assert list(await store.waiting(-1e12, 10)) == []


async def test_a_session_has_one_piece_of_each_kind(store: Store, key: SessionKey) -> None:
    other = SessionKey(key.tenant, "other")
    for _ in range(3):
        await store.enqueue(key, due(1.0))
    await store.enqueue(key, due(2.0, kind="learning"))
    await store.enqueue(other, due(3.0))
    found = [(w.session, w.kind, w.requests) for w in await waiting(store, key.tenant, 100.0)]
    assert found == [("session", "summary", 3), ("session", "learning", 1), ("other", "summary", 1)]


async def test_work_is_due_later_until_it_was_asked_for_often(
    store: Store, key: SessionKey
) -> None:
    async def when() -> float:
        (work,) = await waiting(store, key.tenant, 1e6)
        return work.due

    await store.enqueue(key, due(10.0, min_requests=3, due_if_fewer=500.0))
    assert await when() == 500.0
    await store.enqueue(key, due(11.0, min_requests=3, due_if_fewer=501.0, profile="q"))
    assert await when() == 501.0
    await store.enqueue(key, due(12.0, min_requests=3, due_if_fewer=502.0, profile="p"))
    (work,) = await waiting(store, key.tenant, 12.0)
    assert (work.due, work.requests, work.profile) == (12.0, 3, "p")


async def test_who_claims_work_holds_it(store: Store, key: SessionKey) -> None:
    await store.enqueue(key, due(100.0))
    (work,) = await waiting(store, key.tenant, 100.0)
    held = await store.claim(work, 100.0, 160.0)
    assert held is not None and held.lease != "" == work.lease
    assert held == replace(work, due=160.0, lease=held.lease)
    assert await waiting(store, key.tenant, 159.0) == []
    assert await store.claim(work, 159.0, 200.0) is None


async def test_of_those_who_claim_at_once_one_holds_it(
    store: Store, key: SessionKey, url: str
) -> None:
    other: Store = store
    if url != "memory://":
        other = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await other.open()
    await store.enqueue(key, due(100.0))
    (work,) = await waiting(store, key.tenant, 100.0)
    claims = await asyncio.gather(
        *(claimer.claim(work, 100.0, 160.0) for _ in range(8) for claimer in (store, other))
    )
    held = [claim for claim in claims if claim is not None]
    assert len(held) == 1
    assert await store.extend(held[0], 200.0) and await other.extend(held[0], 201.0)
    await other.close()


async def test_what_is_gone_or_not_due_cannot_be_claimed(store: Store, key: SessionKey) -> None:
    await store.enqueue(key, due(100.0))
    (work,) = await waiting(store, key.tenant, 100.0)
    assert await store.claim(work, 99.0, 160.0) is None
    assert await store.claim(replace(work, session="unknown"), 100.0, 160.0) is None
    assert await store.claim(replace(work, kind="learning"), 100.0, 160.0) is None
    await store.enqueue(key, due(101.0))
    assert await store.claim(work, 100.0, 160.0) is None


async def test_a_claim_knows_what_has_become_of_the_work(store: Store, key: SessionKey) -> None:
    await store.enqueue(key, due(100.0))
    (work,) = await waiting(store, key.tenant, 100.0)
    await store.enqueue(key, due(101.0, profile="newer"))
    held = await store.claim(work, 101.0, 160.0)
    assert held is not None and (held.requests, held.profile) == (2, "newer")


async def test_a_lease_that_has_run_out_can_be_claimed(store: Store, key: SessionKey) -> None:
    await store.enqueue(key, due(100.0))
    killed = await claimed(store, key)
    (work,) = await waiting(store, key.tenant, 160.0)
    assert (work.lease, work.due) == ("", 160.0)
    held = await store.claim(work, 160.0, 220.0)
    assert held is not None and held.lease != killed.lease
    assert not await store.extend(killed, 500.0)
    await store.postpone(killed, 500.0, failed=True)
    await store.finish(killed, 500.0)
    assert await store.extend(held, 230.0)
    await store.finish(held, 500.0)
    assert await waiting(store, key.tenant, 1e6) == []


async def test_who_holds_work_can_hold_it_longer(store: Store, key: SessionKey) -> None:
    await store.enqueue(key, due(100.0))
    held = await claimed(store, key)
    assert await store.extend(held, 300.0)
    assert await waiting(store, key.tenant, 299.0) == []
    assert len(await waiting(store, key.tenant, 300.0)) == 1
    await store.finish(held, 500.0)
    assert not await store.extend(held, 400.0)


async def test_what_nobody_holds_is_not_extended_finished_or_put_off(
    store: Store, key: SessionKey
) -> None:
    await store.enqueue(key, due(100.0))
    (work,) = await waiting(store, key.tenant, 100.0)
    assert not await store.extend(work, 500.0)
    await store.finish(work, 500.0)
    await store.postpone(work, 500.0, failed=True)
    assert await waiting(store, key.tenant, 100.0) == [work]


async def test_finished_work_is_forgotten(store: Store, key: SessionKey) -> None:
    await store.enqueue(key, due(100.0))
    await store.finish(await claimed(store, key), 500.0)
    assert await waiting(store, key.tenant, 1e6) == []
    await store.enqueue(key, due(700.0))
    (work,) = await waiting(store, key.tenant, 1e6)
    assert (work.due, work.requests, work.attempts) == (700.0, 1, 0)


async def test_work_that_was_asked_for_meanwhile_is_due_again(
    store: Store, key: SessionKey
) -> None:
    await store.enqueue(key, due(100.0))
    held = await claimed(store, key)
    for at in (110.0, 120.0):
        await store.enqueue(key, due(at, profile="newer"))
    assert await waiting(store, key.tenant, 159.0) == []
    assert await store.extend(held, 300.0)
    await store.finish(held, 200.0)
    (work,) = await waiting(store, key.tenant, 200.0)
    assert (work.due, work.requests, work.profile) == (200.0, 2, "newer")
    await store.finish(await claimed(store, key, 200.0), 900.0)
    assert await waiting(store, key.tenant, 1e6) == []


@pytest.mark.parametrize(("failed", "attempts"), [(True, 1), (False, 0)])
async def test_work_can_be_put_off(
    store: Store, key: SessionKey, failed: bool, attempts: int
) -> None:
    await store.enqueue(key, due(100.0))
    await store.postpone(await claimed(store, key), 130.0, failed=failed)
    assert await waiting(store, key.tenant, 129.0) == []
    (work,) = await waiting(store, key.tenant, 130.0)
    assert (work.due, work.requests, work.attempts) == (130.0, 1, attempts)
    held = await claimed(store, key, 130.0)
    assert held.attempts == attempts
    await store.postpone(held, 131.0, failed=True)
    assert (await claimed(store, key, 131.0)).attempts == attempts + 1


async def test_what_has_failed_keeps_its_time_until_it_succeeds(
    store: Store, key: SessionKey
) -> None:
    await store.enqueue(key, due(100.0))
    await store.postpone(await claimed(store, key), 500.0, failed=True)
    await store.enqueue(key, due(110.0))
    assert await waiting(store, key.tenant, 499.0) == []
    held = await claimed(store, key, 500.0)
    assert (held.requests, held.attempts) == (2, 1)
    await store.enqueue(key, due(510.0))
    await store.finish(held, 520.0)
    (work,) = await waiting(store, key.tenant, 520.0)
    assert (work.requests, work.attempts) == (1, 0)
    await store.enqueue(key, due(530.0))
    assert await waiting(store, key.tenant, 529.0) == []


async def test_what_was_put_off_without_failing_moves_when_it_is_asked_for(
    store: Store, key: SessionKey
) -> None:
    await store.enqueue(key, due(100.0))
    await store.postpone(await claimed(store, key), 500.0, failed=False)
    await store.enqueue(key, due(110.0))
    (work,) = await waiting(store, key.tenant, 110.0)
    assert work.requests == 2


async def test_a_commit_asks_for_work(store: Store, key: SessionKey) -> None:
    dues = (due(100.0), due(50.0, kind="learning", profile="p", min_requests=2, due_if_fewer=200.0))
    assert await store.commit(key, chat("x1", user="kai", work_requests=dues)) == "recorded"
    found = {(w.kind, w.due, w.requests) for w in await waiting(store, key.tenant, 1e6)}
    assert found == {("summary", 100.0, 1), ("learning", 200.0, 1)}
    assert (
        await store.commit(key, chat("x2", work_requests=dues, superseded=("x1.0",))) == "recorded"
    )
    found = {(w.kind, w.due, w.requests) for w in await waiting(store, key.tenant, 1e6)}
    assert found == {("summary", 100.0, 2), ("learning", 50.0, 2)}
    for user in (None, "kai"):
        listed = await store.sessions(key.tenant, user, None, 10)
        assert [session.id for session in listed.items] == [key.session]
    assert await store.commit(key, chat("x3")) == "recorded"
    assert {w.requests for w in await waiting(store, key.tenant, 1e6)} == {2}


@pytest.mark.parametrize("url", ["memory", "sqlite", "redis", "redis-sentinel"], indirect=True)
async def test_a_commit_that_is_refused_asks_for_nothing(store: Store, key: SessionKey) -> None:
    assert await store.commit(key, chat("x1", user="kai")) == "recorded"
    assert await store.commit(key, chat("x1", user="kai", work_requests=(due(),))) == "duplicate"
    assert await store.commit(key, chat("x2", user="eve", work_requests=(due(),))) == "foreign"
    assert await waiting(store, key.tenant, 1e6) == []


async def test_the_work_on_a_session_goes_with_it(store: Store, key: SessionKey) -> None:
    neighbour = SessionKey(key.tenant, "neighbour")
    for of in (key, neighbour):
        await store.commit(of, chat("x1", work_requests=(due(), due(kind="learning"))))
    held = next(w for w in await waiting(store, key.tenant, 100.0) if w.session == key.session)
    claim = await store.claim(held, 100.0, 160.0)
    assert claim is not None
    assert await store.delete(key)
    left = await waiting(store, key.tenant, 1e6)
    assert {work.session for work in left} == {"neighbour"} and len(left) == 2
    assert not await store.extend(claim, 500.0)
    await store.finish(claim, 500.0)
    await store.enqueue(key, due(300.0))
    assert len(await waiting(store, key.tenant, 1e6)) == 3


async def test_which_sessions_ask_for_work_is_told_whether_it_is_due_or_held(
    store: Store, tenant: str
) -> None:
    names = ["held", "due", "later", "other", "none"]
    await store.enqueue(SessionKey(tenant, "held"), due(50.0, kind="learning", profile="p"))
    (work,) = await waiting(store, tenant, 100.0)
    assert await store.claim(work, 100.0, 160.0) is not None
    await store.enqueue(SessionKey(tenant, "due"), due(kind="learning", profile=""))
    await store.enqueue(SessionKey(tenant, "later"), due(1e6, kind="learning", profile="a b"))
    await store.enqueue(SessionKey(tenant, "other"), due(kind="summary"))
    asked = await store.requested_profiles(tenant, names, "learning")
    assert asked == {"held": "p", "due": "", "later": "a b"}
    assert await store.requested_profiles(tenant, ["none"], "learning") == {}
    assert await store.requested_profiles(tenant, [], "learning") == {}
    assert await store.requested_profiles(f"{tenant}x", names, "learning") == {}


async def test_work_does_not_stay_with_a_tenant_whose_sessions_move(
    store: Store, key: SessionKey
) -> None:
    new = f"{key.tenant}-new"
    await store.commit(key, chat("x1", work_requests=(due(),)))
    await store.commit(SessionKey(new, "theirs"), chat("x1", work_requests=(due(),)))
    assert await store.move(key.tenant, new) == 1
    assert await waiting(store, key.tenant, 1e6) == []
    assert [work.session for work in await waiting(store, new, 1e6)] == ["theirs"]


async def test_work_of_any_name_comes_back_as_it_went(store: Store, tenant: str) -> None:
    keys = [
        SessionKey(f"{tenant}{odd}", id)
        for odd in (":{x} %", "-ä")
        for id in ("a:b", "%7Ba%7D", "{+work}", "'; DROP TABLE work; --")
    ]
    for key in keys:
        await store.commit(key, chat("x1", work_requests=(due(profile="a-profile_1"),)))
    found = [w for w in await store.waiting(1e6, EVERYTHING) if w.tenant.startswith(tenant)]
    assert {(w.tenant, w.session) for w in found} == set(keys)
    assert {w.profile for w in found} == {"a-profile_1"}
    for work in found:
        held = await store.claim(work, 1e6, 2e6)
        assert held is not None
        await store.finish(held, 0.0)
