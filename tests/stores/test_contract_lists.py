"""Sessions and messages as people list, delete and move them, on every back end."""

from __future__ import annotations

import string

import pytest

from proxy.memory.archive import Details, Session
from proxy.memory.model import LoadOptions, Position, SessionKey, Snapshot, State, WindowMove
from proxy.memory.store import Store
from tests.support.store.commits import TOKENS, chat, draft, record

ALL = LoadOptions(profile="default", whole=True)
ACTIVE: tuple[State, ...] = ("active",)
IDLE: tuple[State, ...] = ("superseded",)
NASTY = (
    "{a}",
    "{a",
    "a}b{c}",
    "a:b",
    "a:sessions",
    "%7Ba%7D",
    "*?[^]\\",
    '"quoted"',
    "'; DROP TABLE sessions; --",
    "".join(map(chr, range(0x21, 0x7F))),
    string.ascii_letters[:1] * 256,
)


async def names(store: Store, tenant: str, user: str | None = None) -> list[str]:
    page = await store.sessions(tenant, user, None, 100)
    assert page.after is None
    return [session.id for session in page.items]


async def test_a_session_is_described_exactly(store: Store, key: SessionKey) -> None:
    move = WindowMove(profile="p", start="x2.0")
    await store.commit(
        key, chat("x1", 1000.25, user="kai", ttl=600, system=b"[1]", system_tokens=3)
    )
    await store.commit(key, chat("x2", 1001.5, profile="p", window=move))
    expected = Session(
        id="session",
        user="kai",
        messages=4,
        tokens=4 * TOKENS,
        window_start=3,
        created_at=1000.25,
        last_active_at=1001.5,
        details=Details(ttl=600, system=b"[1]", system_tokens=3),
        end=4,
        last="x2",
        windows={"p": Position(3, 3)},
    )
    assert await store.session(key) == expected
    assert (await store.sessions(key.tenant, None, None, 10)).items == (expected,)
    await store.commit(key, chat("x3", 999.0))
    described = await store.session(key)
    assert described is not None
    assert (described.window_start, described.last_active_at) == (0, 1001.5)
    assert (described.last, described.end) == ("x3", 6)


async def test_sessions_are_listed_by_their_newest_activity(store: Store, tenant: str) -> None:
    for n, at in enumerate((1003.0, 1001.0, 1004.0, 1002.0, 1002.0)):
        await store.commit(SessionKey(tenant, f"s{n}"), chat("x1", at, user=f"u{n % 2}"))
    assert await names(store, tenant) == ["s2", "s0", "s4", "s3", "s1"]
    assert await names(store, tenant, "u0") == ["s2", "s0", "s4"]
    assert await names(store, tenant, "u1") == ["s3", "s1"]
    assert await names(store, tenant, "u2") == [] == await names(store, tenant + "-other")
    await store.commit(SessionKey(tenant, "s1"), chat("x2", 1005.0))
    await store.commit(SessionKey(tenant, "s2"), chat("x2", 900.0))
    assert await names(store, tenant) == ["s1", "s2", "s0", "s4", "s3"]
    assert await names(store, tenant, "u1") == ["s1", "s3"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_of_sessions_hold_each_once_though_new_ones_come(
    store: Store, tenant: str, limit: int
) -> None:
    for n in range(7):
        await store.commit(SessionKey(tenant, f"s{n}"), chat("x1", 1000.0 + n // 3, user="kai"))
    for user in (None, "kai"):
        seen: list[str] = []
        after: str | None = None
        while True:
            page = await store.sessions(tenant, user, after, limit)
            assert len(page.items) <= limit
            seen += [session.id for session in page.items]
            newer = SessionKey(tenant, f"new{len(seen)}{user}")
            await store.commit(newer, chat("x1", 2000.0))
            after = page.after
            if after is None:
                break
        assert [name for name in seen if name.startswith("s")] == [f"s{n}" for n in range(7)][::-1]


@pytest.mark.parametrize("user", [None, "kai"])
@pytest.mark.parametrize("gone", ["deleted", "active again"])
async def test_a_page_begins_behind_a_session_that_has_gone_from_there(
    store: Store, tenant: str, gone: str, user: str | None
) -> None:
    for n in range(9):
        await store.commit(SessionKey(tenant, f"s{n}"), chat("x1", 1000.0, user="kai"))
    page = await store.sessions(tenant, user, None, 3)
    assert [session.id for session in page.items] == ["s8", "s7", "s6"]
    last = SessionKey(tenant, "s6")
    if gone == "deleted":
        await store.delete(last)
    else:
        await store.commit(last, chat("x2", 2000.0, user="kai"))
    rest = await store.sessions(tenant, user, page.after, 9)
    assert [session.id for session in rest.items] == [f"s{n}" for n in range(6)][::-1]


@pytest.mark.parametrize("cursor", ["", "x", ":x", "one:x", "nan:x", "inf:x", "-inf:x", "1e999:x"])
async def test_a_cursor_of_no_list_is_refused(store: Store, tenant: str, cursor: str) -> None:
    for user in (None, "kai"):
        with pytest.raises(ValueError):
            await store.sessions(tenant, user, cursor, 10)


async def test_a_foreign_user_does_not_get_the_session_into_a_list(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", user="kai"))
    assert await store.commit(key, chat("x2", user="eve")) == "foreign"
    assert await names(store, key.tenant, "eve") == []
    assert await names(store, key.tenant, "kai") == ["session"]


async def test_a_session_that_gets_an_owner_later_is_in_the_owners_list(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    await store.commit(key, chat("x2", user="kai"))
    assert await names(store, key.tenant, "kai") == ["session"]


async def test_messages_are_listed_by_seq_with_their_states(store: Store, key: SessionKey) -> None:
    await store.commit(key, chat("x1"))
    extra = draft("x2", 0, turn="x1.0", wire=b'{"reasoning":1}')
    await store.commit(key, record("x2", extra, superseded=("x1.1",), reserved=3))
    await store.commit(key, chat("x3"))
    page = await store.messages(key, ("active", "superseded"), 0, 100)
    assert page.after is None
    assert [(row.seq, row.card.id, row.state) for row in page.items] == [
        (1, "x1.0", "active"),
        (2, "x1.1", "superseded"),
        (3, "x2.0", "active"),
        (7, "x3.0", "active"),
        (8, "x3.1", "active"),
    ]
    assert page.items[2].wire == b'{"reasoning":1}'
    assert page.items[0].wire == chat("x1").drafts[0].body
    first = await store.messages(key, ACTIVE, 0, 2)
    assert [row.seq for row in first.items] == [1, 3] and first.after == "3"
    rest = await store.messages(key, ACTIVE, int(first.after), 2)
    assert [row.seq for row in rest.items] == [7, 8] and rest.after is None
    idle = await store.messages(key, IDLE, 0, 2)
    assert [row.seq for row in idle.items] == [2] and idle.after is None
    assert (await store.messages(key, (), 0, 2)).items == ()


async def test_an_exchange_is_found_with_the_messages_it_has(store: Store, key: SessionKey) -> None:
    await store.commit(key, chat("x1", reserved=2, model="m", incomplete=True))
    found = await store.exchange(key, "x1")
    assert found is not None
    exchange, messages = found
    assert (exchange.model, exchange.incomplete, exchange.size) == ("m", True, 4)
    assert list(messages) == ["x1.0", "x1.1"]
    assert await store.exchange(key, "x2") is None
    assert await store.exchange(SessionKey(key.tenant, "other"), "x1") is None


async def test_a_deleted_session_is_gone_and_may_begin_anew(store: Store, key: SessionKey) -> None:
    assert await store.delete(key) is False
    await store.commit(key, chat("x1", user="kai", idempotency_key="k", reserved=1))
    neighbour = SessionKey(key.tenant, "neighbour")
    await store.commit(neighbour, chat("x1", user="kai"))
    assert await store.delete(key) is True
    assert await store.delete(key) is False
    assert await store.load(key, ALL) == Snapshot()
    assert (await store.messages(key, ACTIVE, 0, 9)).items == ()
    assert await names(store, key.tenant) == ["neighbour"] == await names(store, key.tenant, "kai")
    assert await store.commit(key, chat("x1", user="eve")) == "recorded"
    seen = await store.load(key, ALL)
    assert seen.owner == "eve" and [entry.position.seq for entry in seen.log] == [1, 2]


async def test_sessions_of_any_id_never_touch_each_other(store: Store, tenant: str) -> None:
    tenants = (tenant, f"{tenant}:{{x}}", f"{tenant}%")
    keys = [SessionKey(of, id) for of in tenants for id in NASTY]
    for n, key in enumerate(keys):
        assert await store.commit(key, chat("x1", 1000.0 + n, tokens=n, user=key.session))
    for n, key in enumerate(keys):
        seen = await store.load(key, ALL)
        assert (seen.owner, seen.tokens) == (key.session, 2 * n)
    for of in tenants:
        assert await names(store, of) == list(NASTY)[::-1]
        for id in NASTY:
            assert await names(store, of, id) == [id]
    assert await store.delete(keys[0]) is True
    assert await store.load(keys[0], ALL) == Snapshot()
    for key in keys[1:]:
        assert (await store.load(key, ALL)).exists


async def test_all_sessions_of_a_tenant_move_but_those_that_are_taken(
    store: Store, tenant: str
) -> None:
    new = f"{tenant}-new"
    for n in range(3):
        move = WindowMove(profile="default", start=f"x{n}.1")
        commit = chat(f"x{n}", 1000.0 + n, user="kai", ttl=600 * n, idempotency_key="k")
        await store.commit(SessionKey(tenant, f"s{n}"), commit)
        await store.commit(SessionKey(tenant, f"s{n}"), chat("y", 1000.0 + n, window=move))
    await store.commit(SessionKey(new, "s1"), chat("taken", 999.0, user="eve"))
    before = [await store.load(SessionKey(tenant, f"s{n}"), ALL) for n in range(3)]
    assert await store.move(tenant, new) == 2
    assert await names(store, tenant) == ["s1"]
    assert await names(store, new) == ["s2", "s0", "s1"]
    assert await names(store, new, "kai") == ["s2", "s0"]
    after = [await store.load(SessionKey(new, f"s{n}"), ALL) for n in range(3)]
    assert (after[0], after[2]) == (before[0], before[2])
    assert (await store.load(SessionKey(tenant, "s1"), ALL)) == before[1]
    described = await store.session(SessionKey(new, "s2"))
    assert described is not None and described.details.ttl == 1200
    assert await store.commit(SessionKey(new, "s0"), chat("z", user="kai")) == "recorded"
    assert await store.move(tenant, new) == 0
    assert await store.move(tenant, tenant) == 0


async def test_a_move_tells_how_many_have_moved(store: Store, tenant: str) -> None:
    new, told = f"{tenant}-new", list[tuple[int, int]]()
    for session in ("s1", "s2"):
        await store.commit(SessionKey(tenant, session), chat("x"))
    assert await store.move(tenant, new, lambda *at: told.append(at)) == 2
    assert told[-1] == (2, 2)


async def test_every_tenant_with_sessions_is_found(store: Store, tenant: str) -> None:
    names = [tenant, f"{tenant}:with {{odd}} letters*", f"{tenant}-ä"]
    for name in names:
        for session in ("s1", "s2"):
            await store.commit(SessionKey(name, session), chat("x1", user="kai"))
    found = await store.tenants()
    assert [name for name in found if name.startswith(tenant)] == sorted(names)
    for session in ("s1", "s2"):
        await store.delete(SessionKey(tenant, session))
    assert tenant not in await store.tenants()
