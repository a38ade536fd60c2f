"""Sessions that are taken out and put back, on every back end."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from proxy.memory.archive import Details, PlacedExchange, Session, SessionArchive, StoredMessage
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    MAX_VERSIONS,
    Amendment,
    LoadOptions,
    Position,
    SessionKey,
    Snapshot,
    WindowMove,
)
from proxy.memory.store import Store
from proxy.stores.open import Backend
from tests.support.clock import Clock
from tests.support.store.archives import edited, exchanges, lines, revise, take_out
from tests.support.store.commits import TOKENS, card, chat, draft, exchange, record, summary

ALL = LoadOptions(profile="default", whole=True, idempotency_key="k")
BOUNDED = LoadOptions(profile="p", max_tokens=3 * TOKENS)


@pytest.fixture
def other(key: SessionKey) -> SessionKey:
    return SessionKey(f"{key.tenant}-other", "another session")


async def eventful(store: Store, key: SessionKey) -> None:
    """A session with holes, branches, choices, late answers, an edit, windows and summaries."""
    move = WindowMove(profile="default", start="x2.0")
    late = draft("x3", 0, "tool", turn="x1.0", wire=b'{"extra":"\xc3\xa4"}')
    choices = [draft("x4", n, "assistant", choice=n - 1, state="superseded") for n in (2, 3)]
    await store.commit(key, chat("x1", 1000.25, user="kai", system=b"[1]", system_tokens=3))
    await store.commit(key, chat("x2", 1001.0, reserved=3, window=move, idempotency_key="k"))
    await store.commit(key, record("x3", late, at=1002.0, superseded=("x2.0", "x2.1")))
    await store.commit(key, record("x4", *chat("x4").drafts, *choices, at=1003.0, profile="p"))
    await store.commit(key, chat("x5", 1004.0, reserved=2, model="m", incomplete=True))
    await store.amend(key, Amendment(exchange="x4", usage=b'{"total_tokens":5}'))
    was = (await lines(store, key))[1].body
    new = edited("x1", 1, "assistant", replaced_wire=was, wire=b"as it came")
    details = Details(title="t\u00eftle", metadata=b'{"a":1}', system=b"[1]", system_tokens=3)
    assert await revise(store, key, edited=(new,), details=details)
    assert await revise(store, key, removed=("x4.0",))
    moves = [WindowMove(profile=name, start="x4.1") for name in ("p", 'odd "{}" \u2603')]
    for n, each in enumerate(moves):
        await store.commit(key, chat(f"y{n}", 1005.0, profile=each.profile, window=each))
    for after, until in enumerate((3, 3, 8)):
        assert await store.put_summary(key, summary(until, f"until {until}", seen=9), after, None)


async def seen_of(store: Store, key: SessionKey) -> tuple[object, ...]:
    """All that a session shows, but for what counts its changes and its idempotency keys."""
    session = await store.session(key)
    assert session is not None
    snapshots = [await store.load(key, options) for options in (ALL, BOUNDED)]
    return (
        replace(session, id=""),
        [replace(snapshot, changes=0, attempt=None) for snapshot in snapshots],
        [list(snapshot.bodies) for snapshot in snapshots],
        await lines(store, key),
        await store.messages(key, ("active", "superseded"), 0, 100),
        await exchanges(store, key),
        list(await store.summaries(key)),
    )


async def test_a_session_is_put_back_as_it_was(
    store: Store, key: SessionKey, other: SessionKey
) -> None:
    await eventful(store, key)
    archived, before = await take_out(store, key), await seen_of(store, key)
    assert await store.restore(other, archived)
    assert await seen_of(store, other) == before == await seen_of(store, key)
    assert await store.delete(key)
    assert await store.restore(key, archived)
    assert await seen_of(store, key) == before
    assert await take_out(store, key) == archived


async def test_a_session_that_was_put_back_goes_on_as_the_first_would(
    store: Store, key: SessionKey, other: SessionKey
) -> None:
    await eventful(store, key)
    await store.restore(other, await take_out(store, key))
    choice = draft("x5", 2, "assistant", choice=1, state="superseded")
    move = WindowMove(profile="default", start="x5.0")
    for each in (key, other):
        await store.amend(each, Amendment(exchange="x5", usage=b"{}", drafts=(choice,)))
        again = chat("z1", superseded=("x1.1", "y0.1"), activated=("x2.0",), window=move)
        assert await store.commit(each, again) == "recorded"
        assert await store.commit(each, chat("x1")) == "duplicate"
        assert await store.commit(each, chat("z2", user="eve")) == "foreign"
        assert await revise(store, each, removed=("z1.0", "z1.1", "x4.1"))
    assert await seen_of(store, other) == await seen_of(store, key)
    assert (await lines(store, other))[-1].position == (await lines(store, key))[-1].position


async def test_idempotency_keys_are_not_put_back(
    store: Store, key: SessionKey, other: SessionKey, clock: Clock
) -> None:
    clock.now = 1000.0 + IDEMPOTENCY_SECONDS / 2
    await store.commit(key, chat("x1", idempotency_key="k"))
    assert await store.restore(other, await take_out(store, key))
    assert (await store.load(other, ALL)).attempt is None
    assert await store.commit(other, chat("x2", idempotency_key="k")) == "recorded"
    assert (await store.load(other, ALL)).messages == 4


async def test_a_session_that_is_there_stays_as_it_is(
    store: Store, key: SessionKey, other: SessionKey
) -> None:
    await eventful(store, key)
    await store.commit(other, chat("x1", user="eve"))
    archived, before = await take_out(store, key), await seen_of(store, other)
    assert not await store.restore(other, archived)
    assert not await store.restore(key, archived)
    assert await seen_of(store, other) == before
    attempts = (store.restore(SessionKey(key.tenant, "new"), archived) for _ in range(5))
    assert sorted(await asyncio.gather(*attempts)) == [False] * 4 + [True]


async def test_a_session_that_was_put_back_is_in_the_lists(
    store: Store, key: SessionKey, other: SessionKey
) -> None:
    await eventful(store, key)
    await store.restore(other, await take_out(store, key))
    await store.commit(SessionKey(other.tenant, "newer"), chat("x1", 2000.0, user="kai"))
    await store.commit(SessionKey(other.tenant, "older"), chat("x1", 1.0))
    for user, expected in ((None, ["newer", other.session, "older"]), ("eve", [])):
        page = await store.sessions(other.tenant, user, None, 9)
        assert [session.id for session in page.items] == expected
    page = await store.sessions(other.tenant, "kai", None, 9)
    assert [session.id for session in page.items] == ["newer", other.session]
    assert page.items[1] == await store.session(other)
    assert other.tenant in await store.tenants()
    assert await store.delete(other)
    assert len((await store.sessions(other.tenant, "kai", None, 9)).items) == 1


async def test_the_counts_are_those_of_the_messages_and_nothing_is_trusted_that_can_be_seen(
    store: Store, key: SessionKey
) -> None:
    """As it comes from a file that somebody has written by hand."""
    messages = (
        StoredMessage(Position(4, 4), card("x1", 0), "active", b"{}"),
        StoredMessage(Position(4, 5), card("x1", 1, "assistant"), "superseded", b"{}"),
        StoredMessage(Position(4, 9), card("x2", 2), "active", b"{}"),
    )
    session = Session("", None, 77, 777, 99, 1.5, 2.5, Details(), summary(1), 2, "unknown")
    placed = (
        PlacedExchange(4, exchange("x1", size=2), ("x1.0", "x1.1")),
        PlacedExchange(7, exchange("x2", size=5), ("x2.2",)),
    )
    assert await store.restore(key, SessionArchive(session, messages, placed))
    seen = await store.session(key)
    assert seen == Session(
        "session", None, 2, 2 * TOKENS, 0, 1.5, 2.5, Details(), None, end=11, last="x2"
    )
    assert [x.card.id for x in (await store.load(key, ALL)).log] == ["x1.0", "x2.2"]
    await store.commit(key, chat("x3"))
    assert (await lines(store, key))[-1].position == Position(12, 13)


async def test_an_empty_session_is_put_back_empty(store: Store, key: SessionKey) -> None:
    session = Session("", "kai", 0, 0, 0, 1.5, 2.5, Details(title="t"), end=7)
    assert await store.restore(key, SessionArchive(session, (), ()))
    assert await store.session(key) == replace(session, id="session")
    assert await store.load(key, ALL) == Snapshot(exists=True, owner="kai", created_at=1.5)
    await store.commit(key, chat("x1"))
    assert [x.position.seq for x in await lines(store, key)] == [8, 9]


async def test_versions_of_the_summary_keep_their_numbers(
    store: Store, key: SessionKey, other: SessionKey
) -> None:
    for n in range(1, 5):
        await store.commit(key, chat(f"x{n}"))
    for after in range(MAX_VERSIONS + 2):
        await store.put_summary(key, summary(3, f"{after + 1}"), after, None)
    await store.put_summary(key, summary(7, "newest"), MAX_VERSIONS + 2, None)
    await revise(store, key, superseded=("x3.0",))
    archived = await take_out(store, key)
    assert archived.summaries[0].version == MAX_VERSIONS + 2
    assert await store.restore(other, archived)
    assert await store.summaries(other) == await store.summaries(key)
    assert not await store.put_summary(other, summary(3), 1, 0)
    assert await store.put_summary(other, summary(3), MAX_VERSIONS + 2, 0)
    assert len(await store.summaries(other)) == MAX_VERSIONS


async def test_a_session_of_thousands_of_messages_is_put_back(
    store: Store, key: SessionKey, other: SessionKey
) -> None:
    many = [draft("x1", n, turn="x1.0", tokens=1) for n in range(1200)]
    await store.commit(key, record("x1", *many))
    for n in range(1500):
        await store.commit(key, chat(f"y{n}"))
    archived = await take_out(store, key)
    assert len(archived.lines) == 4200
    assert await store.restore(other, archived)
    assert await take_out(store, other) == replace(
        archived, session=replace(archived.session, id=other.session)
    )


async def test_work_is_not_asked_for_and_no_mark_stands_in_the_way(
    store: Backend, key: SessionKey, other: SessionKey
) -> None:
    await eventful(store, key)
    archived = await take_out(store, key)
    assert await store.restore(other, archived)
    waiting = await store.waiting(1e9, 1000)
    assert other.tenant not in {work.tenant for work in waiting}


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)  # Redis has its own clock
async def test_its_ttl_counts_from_when_it_is_put_back(
    store: Store, key: SessionKey, clock: Clock
) -> None:
    await store.commit(key, chat("x1", ttl=100))
    archived = await take_out(store, key)
    clock.now += 100
    assert await store.session(key) is None
    assert await store.restore(key, archived)
    clock.now += 99
    assert await store.session(key) == archived.session
    clock.now += 1
    assert await store.session(key) is None
