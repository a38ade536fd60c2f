"""The versions of a session's summary, on every back end."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from proxy.memory.model import MAX_VERSIONS, Amendment, LoadOptions, Position, SessionKey, Summary
from proxy.memory.store import Store
from proxy.stores.open import Backend
from tests.support.clock import Clock
from tests.support.store.commits import chat, draft, record, summary

ALL = LoadOptions(profile="default", whole=True)


async def turns(store: Store, key: SessionKey, count: int = 4) -> None:
    """Turns x1, x2, … of two messages each: seqs 1 and 2, 3 and 4, …"""
    for n in range(1, count + 1):
        await store.commit(key, chat(f"x{n}"))


async def in_force(store: Store, key: SessionKey) -> int:
    """The version that a load, the session and the list of versions agree on; 0 for none."""
    seen = (await store.load(key, ALL)).summary
    described = await store.session(key)
    kept = await store.summaries(key)
    assert described is not None and described.summary == seen == (kept[0] if kept else None)
    assert (await store.load(key, LoadOptions(profile="default"))).summary == seen
    return seen.version if seen else 0


async def test_a_summary_is_seen_as_it_was_put(store: Store, key: SessionKey) -> None:
    await turns(store, key)
    put = Summary(
        text='Kai sagte: "ja" \N{SNOWMAN}\n\x00 5 5 5 {}',
        version=77,
        until=Position(3, 3),
        seen=8,
        covers_until=2,
        tokens=9,
        edited=True,
        model="small model",
        created_at=1000.25,
    )
    assert await store.put_summary(key, put, 0, None)
    assert (await store.load(key, ALL)).summary == replace(put, version=1)
    assert list(await store.summaries(key)) == [replace(put, version=1)]
    assert await in_force(store, key) == 1
    listed = (await store.sessions(key.tenant, None, None, 10)).items
    assert [session.summary for session in listed] == [replace(put, version=1)]


async def test_a_session_without_a_summary_says_so(store: Store, key: SessionKey) -> None:
    await turns(store, key, 1)
    seen = await store.load(key, ALL)
    assert (seen.summary, seen.changes, seen.stalled) == (None, 0, False)
    assert list(await store.summaries(key)) == []
    assert not await store.drop_summaries(key)


async def test_a_session_that_does_not_exist_gets_no_summary(store: Store, key: SessionKey) -> None:
    assert not await store.put_summary(key, summary(3), 0, None)
    await store.mark_stalled(key)
    assert not await store.drop_summaries(key)
    assert list(await store.summaries(key)) == []
    assert await store.session(key) is None
    assert key.tenant not in await store.tenants()


async def test_a_summary_follows_the_one_it_was_made_from(store: Store, key: SessionKey) -> None:
    await turns(store, key)
    assert not await store.put_summary(key, summary(3), 1, None)
    assert await store.put_summary(key, summary(3), 0, None)
    assert not await store.put_summary(key, summary(5), 0, None)
    assert await store.put_summary(key, summary(5), 1, None)
    assert [kept.version for kept in await store.summaries(key)] == [2, 1]
    assert await in_force(store, key) == 2


async def test_of_two_who_summarise_at_once_one_succeeds(store: Store, key: SessionKey) -> None:
    await turns(store, key)
    attempts = (store.put_summary(key, summary(3, f"by {n}"), 0, 0) for n in range(8))
    assert sorted(await asyncio.gather(*attempts)) == [False] * 7 + [True]
    assert len(await store.summaries(key)) == 1


async def test_a_summary_of_what_has_changed_meanwhile_is_refused(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    before = (await store.load(key, ALL)).changes
    await store.commit(key, chat("x5", superseded=("x1.0",)))
    assert not await store.put_summary(key, summary(5), 0, before)
    after = (await store.load(key, ALL)).changes
    assert after == before + 1
    assert await store.put_summary(key, summary(5), 0, after)
    await store.commit(key, chat("x6", superseded=("x5.0",)))
    assert await store.put_summary(key, summary(5), 1, None)


async def test_only_so_many_versions_are_kept(store: Store, key: SessionKey) -> None:
    await turns(store, key)
    for after in range(MAX_VERSIONS + 3):
        assert await store.put_summary(key, summary(3, f"number {after + 1}"), after, 0)
    kept = [each.version for each in await store.summaries(key)]
    assert kept == list(range(MAX_VERSIONS + 3, 3, -1))
    assert await in_force(store, key) == MAX_VERSIONS + 3


@pytest.mark.parametrize(
    ("switched", "left"),
    [
        pytest.param(("x4.1",), 3, id="nothing-covered"),
        pytest.param(("x3.0",), 2, id="covered-by-the-newest"),
        pytest.param(("x3.1", "x2.1"), 1, id="covered-by-two"),
        pytest.param(("x4.0", "x1.0"), 0, id="covered-by-all"),
        pytest.param(("x9.0", "x1.7", "nonsense"), 3, id="unknown-messages"),
    ],
)
async def test_a_commit_that_supersedes_drops_the_versions_that_cover_it(
    store: Store, key: SessionKey, switched: tuple[str, ...], left: int
) -> None:
    await turns(store, key)
    for after, until in enumerate((3, 5, 7)):
        await store.put_summary(key, summary(until, f"until {until}"), after, None)
    assert await store.commit(key, chat("x5", superseded=switched)) == "recorded"
    assert [kept.version for kept in await store.summaries(key)] == [3, 2, 1][3 - left :]
    assert await in_force(store, key) == left
    known = [id for id in switched if id in {f"x{n}.{m}" for n in range(1, 5) for m in (0, 1)}]
    assert (await store.load(key, ALL)).changes == len(known)
    assert await store.put_summary(key, summary(3), left, None)


async def test_what_joined_a_turn_after_the_summary_is_not_covered(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    await store.put_summary(key, summary(5, seen=8), 0, None)
    await store.commit(key, record("x5", draft("x5", 0, "tool", turn="x1.0")))
    await store.commit(key, chat("x6", superseded=("x5.0",)))
    assert await in_force(store, key) == 1
    assert (await store.load(key, ALL)).changes == 1


async def test_a_commit_that_activates_drops_the_versions_that_cover_it(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    await store.commit(key, chat("x5", superseded=("x1.1",)))
    await store.put_summary(key, summary(5), 0, 1)
    await store.commit(key, chat("x6", activated=("x4.0", "x2.0"), superseded=("x1.1",)))
    assert await in_force(store, key) == 1
    assert (await store.load(key, ALL)).changes == 1
    await store.commit(key, chat("x7", activated=("x1.1",)))
    assert await in_force(store, key) == 0
    assert (await store.load(key, ALL)).changes == 2


async def test_a_retry_drops_the_versions_that_cover_the_earlier_attempt(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    await store.commit(key, chat("x5", idempotency_key="k"))
    await store.put_summary(key, summary(9, seen=10), 0, 0)
    await store.put_summary(key, summary(11, seen=10), 1, 0)
    await store.commit(key, chat("x6", 1001.0, idempotency_key="k"))
    assert await in_force(store, key) == 1
    assert (await store.load(key, ALL)).changes == 2


@pytest.mark.parametrize("outcome", ["duplicate", "foreign", "stale", "outrun"])
async def test_a_commit_that_is_refused_leaves_the_summary(
    store: Store, key: SessionKey, outcome: str
) -> None:
    await store.commit(key, chat("x1", user="kai"))
    await store.commit(key, chat("x2", 1002.0, idempotency_key="late"))
    if outcome == "stale":
        await store.commit(key, chat("x3"))
    await store.put_summary(key, summary(3), 0, 0)
    gone = ("x1.0", "x1.1")
    refused = {
        "duplicate": chat("x2", superseded=gone),
        "foreign": chat("x4", user="eve", superseded=gone),
        "stale": chat("x4", 1003.0, idempotency_key="late", superseded=gone),
        "outrun": chat("x4", 1001.0, idempotency_key="late", superseded=gone),
    }
    assert await store.commit(key, refused[outcome]) == outcome
    assert await in_force(store, key) == 1
    assert (await store.load(key, ALL)).changes == 0


async def test_an_amendment_changes_nothing_that_is_summarised(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", reserved=1))
    await store.put_summary(key, summary(4), 0, 0)
    second = draft("x1", 2, "assistant", turn="x1.0", choice=1, state="superseded")
    await store.amend(key, Amendment(exchange="x1", drafts=(second,)))
    assert await in_force(store, key) == 1
    assert (await store.load(key, ALL)).changes == 0


async def test_a_session_is_stalled_until_it_is_summarised(store: Store, key: SessionKey) -> None:
    async def stalled() -> bool:
        return (await store.load(key, LoadOptions(profile="default"))).stalled

    await turns(store, key)
    await store.mark_stalled(key)
    assert await stalled()
    assert not await store.put_summary(key, summary(3), 5, None)
    assert await stalled()
    assert await store.put_summary(key, summary(3), 0, None)
    assert not await stalled()
    await store.mark_stalled(key)
    await store.commit(key, chat("x5", superseded=("x1.0",)))
    assert await in_force(store, key) == 0 and await stalled()
    assert not await store.drop_summaries(key)
    assert not await stalled()


async def test_dropping_forgets_all_versions(store: Store, key: SessionKey) -> None:
    await turns(store, key)
    for after in range(3):
        await store.put_summary(key, summary(3), after, None)
    await store.mark_stalled(key)
    assert await store.drop_summaries(key)
    assert await in_force(store, key) == 0
    assert not (await store.load(key, ALL)).stalled
    assert not await store.drop_summaries(key)
    assert await store.put_summary(key, summary(3), 0, None)


async def test_a_session_that_begins_anew_has_nothing_of_the_one_before(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    await store.put_summary(key, summary(3), 0, None)
    await store.commit(key, chat("x5", superseded=("x4.0",)))
    await store.mark_stalled(key)
    assert await store.delete(key)
    assert list(await store.summaries(key)) == []
    await turns(store, key, 1)
    seen = await store.load(key, ALL)
    assert (seen.summary, seen.changes, seen.stalled) == (None, 0, False)
    assert await in_force(store, key) == 0


async def test_what_was_made_of_a_session_is_not_put_into_a_later_one_of_its_id(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    earlier = await store.load(key, ALL)
    assert await store.delete(key)
    await store.commit(key, chat("x1", 1000.1234567))
    seen = await store.load(key, ALL)

    made = (key, summary(3), 0, seen.changes, None)
    assert not await store.put_summary(*made, earlier.created_at)
    await store.mark_stalled(key, earlier.created_at)
    assert await store.load(key, ALL) == seen
    await store.mark_stalled(key, seen.created_at)
    assert (await store.load(key, ALL)).stalled
    assert await store.put_summary(*made, seen.created_at)
    assert await in_force(store, key) == 1


async def test_a_summary_moves_with_its_session(store: Store, key: SessionKey) -> None:
    await turns(store, key)
    await store.put_summary(key, summary(3), 0, None)
    await store.put_summary(key, summary(5), 1, None)
    await store.commit(key, chat("x5", superseded=("x4.0",)))
    await store.mark_stalled(key)
    before, versions = await store.load(key, ALL), list(await store.summaries(key))
    moved = SessionKey(f"{key.tenant}-new", key.session)
    assert await store.move(key.tenant, moved.tenant) == 1
    assert await store.load(moved, ALL) == before
    assert list(await store.summaries(moved)) == versions
    assert list(await store.summaries(key)) == []


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_a_summary_expires_with_its_session(
    store: Backend, key: SessionKey, clock: Clock
) -> None:
    await store.commit(key, chat("x1", ttl=10))
    await store.put_summary(key, summary(3), 0, None)
    clock.now += 10
    assert list(await store.summaries(key)) == []
    assert not await store.put_summary(key, summary(3), 1, None)
    assert not await store.drop_summaries(key)
    await store.commit(key, chat("x1"))
    assert await in_force(store, key) == 0


async def test_what_was_made_from_a_version_that_was_forgotten_is_not_put(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    assert await store.put_summary(key, summary(3), 0, None)
    seen = await store.load(key, ALL)
    assert await store.drop_summaries(key)
    assert await store.put_summary(key, summary(3, "by hand"), 0, None)
    assert not await store.put_summary(key, summary(5, "too late"), 1, seen.changes)
    assert await in_force(store, key) == 1


async def test_a_summary_is_put_where_the_message_that_it_has_seen_last_is_there(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    await store.commit(key, chat('x"5'))
    made = (key, summary(3, seen=10), 0, None, None, None)
    for lost in ("x5.1", "x4.1", 'x"5.0'):
        assert not await store.put_summary(*made, lost)
    assert not await store.put_summary(key, summary(3, seen=11), 0, None, None, None, 'x"5.1')
    assert await store.put_summary(*made, 'x"5.1')
    assert await in_force(store, key) == 1
