"""Sessions as people read and change them by hand, on every back end."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from proxy.memory.archive import Details, StoredMessage
from proxy.memory.erasure import Subject
from proxy.memory.model import (
    Amendment,
    Entry,
    LoadOptions,
    Position,
    SessionKey,
    Snapshot,
    State,
    WindowMove,
)
from proxy.memory.store import Store
from proxy.stores.redis import archive as redis_archive
from proxy.stores.redis import lists as redis_lists
from proxy.stores.sqlite import rows as sqlite_rows
from tests.support.clock import Clock
from tests.support.store.archives import edited, exchanges, lines, revise
from tests.support.store.commits import TOKENS, chat, draft, record, summary

ALL = LoadOptions(profile="default", whole=True)
STATES: tuple[State, ...] = ("active", "superseded")


def ids(snapshot: Snapshot) -> list[str]:
    return [entry.card.id for entry in snapshot.log]


def body(exchange: str, index: int) -> bytes:
    return chat(exchange).drafts[index].body


def window(start: str, profile: str = "default") -> WindowMove:
    return WindowMove(profile=profile, start=start)


async def details(store: Store, key: SessionKey) -> Details:
    session = await store.session(key)
    assert session is not None
    return session.details


async def turns(store: Store, key: SessionKey, count: int = 4) -> None:
    """Turns x1, x2, … of two messages each: seqs 1 and 2, 3 and 4, …"""
    for n in range(1, count + 1):
        await store.commit(key, chat(f"x{n}", 1000.0 + n))


# Reading


async def test_a_message_is_found_with_all_that_is_kept_of_it(
    store: Store, key: SessionKey
) -> None:
    late = draft("x2", 0, "tool", turn="x1.0", wire=b'{"extra":1}')
    await store.commit(key, chat("x1"))
    await store.commit(key, record("x2", late, superseded=("x1.1",), reserved=1))
    question, answer = chat("x1").drafts
    assert await store.message(key, "x1.0") == StoredMessage(
        Position(1, 1), question.card, "active", question.body
    )
    assert await store.message(key, "x1.1") == StoredMessage(
        Position(1, 2), answer.card, "superseded", answer.body
    )
    assert await store.message(key, "x2.0") == StoredMessage(
        Position(1, 3), late.card, "active", late.body, b'{"extra":1}'
    )
    for unknown in ("x2.1", "x2.2", "x1.00", "x3.0", "x1", "", "."):
        assert await store.message(key, unknown) is None
    assert await store.message(SessionKey(key.tenant, "other"), "x1.0") is None


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
async def test_lines_are_read_page_by_page_in_every_state(
    store: Store, key: SessionKey, limit: int
) -> None:
    await store.commit(key, chat("x1", reserved=2))
    await store.commit(key, record("x2", draft("x2", 0, turn="x1.0", wire=b"w")))
    await store.commit(key, chat("x3", superseded=("x1.0", "x1.1")))
    seen = await lines(store, key, limit)
    assert [(x.position, x.card.id, x.state) for x in seen] == [
        (Position(1, 1), "x1.0", "superseded"),
        (Position(1, 2), "x1.1", "superseded"),
        (Position(1, 5), "x2.0", "active"),
        (Position(6, 6), "x3.0", "active"),
        (Position(6, 7), "x3.1", "active"),
    ]
    assert [x.wire for x in seen] == [None, None, b"w", None, None]
    assert list(seen) == [await store.message(key, x.card.id) for x in seen]
    behind = await store.lines(key, 5, 9)
    assert behind.after is None and behind.items == seen[3:]
    assert (await store.lines(SessionKey(key.tenant, "other"), 0, 9)).items == ()


@pytest.mark.parametrize(("most", "size"), [(1, 2), (1_500_000, 2), (2_500_000, 3), (10**7, 4)])
async def test_a_page_of_long_messages_ends_early_but_not_before_the_second(
    store: Store, key: SessionKey, most: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_rows, redis_archive):
        monkeypatch.setattr(module, "PAGE_BYTES", most)
    for n in range(5):
        await store.commit(key, record(f"x{n}", draft(f"x{n}", 0, wire=b"w" * 1_000_001)))
    seen: list[int] = []
    after: str | None = "0"
    while after is not None:
        page = await store.messages(key, STATES, int(after), 4)
        lines = await store.lines(key, int(after), 4)
        assert [x.seq for x in page.items] == [x.position.seq for x in lines.items]
        assert page.after == lines.after
        assert len(page.items) == min(size, 5 - len(seen))
        seen += [message.seq for message in page.items]
        after = page.after
    assert seen == [1, 2, 3, 4, 5]


async def test_a_page_of_large_sessions_ends_early(
    store: Store, key: SessionKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_rows, redis_lists):
        monkeypatch.setattr(module, "PAGE_BYTES", 1_000_000)
    monkeypatch.setattr(redis_lists, "FIRST_BATCH", 1)
    system = b'["' + b"s" * 600_000 + b'"]'
    for n in range(6):
        each = SessionKey(key.tenant, f"s{n}")
        await store.commit(each, chat("x1", 1000.0 + n, system=system))
    found: list[str] = []
    after: str | None = None
    while not found or after is not None:
        page = await store.sessions(key.tenant, None, after, 100)
        assert len(page.items) in (2, 3) or len(found) == 6 > len(page.items)
        found += [session.id for session in page.items]
        after = page.after
    assert found == [f"s{n}" for n in reversed(range(6))]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_exchanges_are_read_newest_first_with_the_messages_they_have(
    store: Store, key: SessionKey, limit: int
) -> None:
    await store.commit(key, chat("x1", reserved=2))
    await store.commit(key, record("without-messages", reserved=3))
    await store.commit(key, record("of-no-size"))
    await store.commit(key, chat("x2", superseded=("x1.0", "x1.1")))
    await store.commit(key, record("x3", draft("x3", 0), reserved=1))
    choice = draft("x1", 3, "assistant", turn="x1.0", choice=1)
    await store.amend(key, Amendment(exchange="x1", usage=b'{"a":1}', drafts=(choice,)))
    seen = await exchanges(store, key, limit)
    assert [(x.first, x.messages) for x in seen] == [
        (10, ("x3.0",)),
        (8, ("x2.0", "x2.1")),
        (1, ("x1.0", "x1.1", "x1.3")),
    ]
    for placed in seen:
        found = await store.exchange(key, placed.exchange.id)
        assert found is not None
        assert (placed.exchange, list(placed.messages)) == (found[0], list(found[1]))
    assert seen[-1].exchange.usage == b'{"a":1}'
    assert (await store.exchanges(key, 1, 9)).items == ()
    assert (await store.exchanges(SessionKey(key.tenant, "other"), None, 9)).items == ()


async def test_exchanges_are_found_behind_many_places_that_are_empty(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    await store.commit(key, record("x2", draft("x2", 0), reserved=3000))
    await store.commit(key, chat("x3"))
    await store.commit(key, record("x4", reserved=3000))
    await revise(store, key, removed=("x3.0", "x3.1"))
    first = await store.exchanges(key, None, 1)
    assert [(x.first, x.exchange.id) for x in first.items] == [(3, "x2")] and first.after == "3"
    rest = await store.exchanges(key, 3, 1)
    assert [(x.first, x.exchange.id) for x in rest.items] == [(1, "x1")] and rest.after is None


async def test_a_session_tells_the_windows_of_all_profiles(store: Store, key: SessionKey) -> None:
    odd = 'p "1": {x}\N{SNOWMAN}'
    await store.commit(key, chat("x1", window=window("x1.0")))
    await store.commit(key, chat("x2", profile=odd, window=window("x2.1", odd)))
    session = await store.session(key)
    assert session is not None
    assert session.windows == {"default": Position(1, 1), odd: Position(3, 4)}
    assert session.window_start == 4
    assert (await store.sessions(key.tenant, None, None, 9)).items == (session,)


# Details


async def test_details_take_the_place_of_those_that_were_read(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", 1000.0, system=b"[1]", system_tokens=3))
    was = await details(store, key)
    assert was == Details(system=b"[1]", system_tokens=3)
    new = replace(was, title='"Tïtle"\n\N{SNOWMAN}', metadata=b'{"a":{"b":[1,null]}}', ttl=600)
    assert await revise(store, key, details=new, expected_details=was)
    session = await store.session(key)
    assert session is not None and session.details == new
    assert (session.last_active_at, session.messages, session.end) == (1000.0, 2, 2)
    assert (await store.load(key, ALL)).changes == 0
    assert not await revise(store, key, details=replace(new, title="lost"), expected_details=was)
    assert await details(store, key) == new
    await store.commit(key, chat("x2", ttl=9))
    assert await details(store, key) == new
    await store.commit(key, chat("x3", system=b"[2]", system_tokens=4))
    assert await details(store, key) == replace(new, system=b"[2]", system_tokens=4)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"title": "another"}, id="title"),
        pytest.param({"title": ""}, id="empty-title"),
        pytest.param({"metadata": b'{"b":1}'}, id="metadata"),
        pytest.param({"ttl": 5}, id="ttl"),
        pytest.param({"system": b"[2]"}, id="system"),
        pytest.param({"system": None}, id="no-system"),
        pytest.param({"system_tokens": 4}, id="system-tokens"),
    ],
)
async def test_details_that_differ_from_what_was_read_stay(
    store: Store, key: SessionKey, other: dict[str, object]
) -> None:
    await store.commit(key, chat("x1", system=b"[1]", system_tokens=3))
    known = Details(system=b"[1]", system_tokens=3)
    was = replace(known, **other)
    new = replace(known, title="new")
    assert not await revise(store, key, details=new, expected_details=was, removed=("x1.0",))
    assert not await revise(store, key, expected_details=was, superseded=("x1.0",))
    assert await details(store, key) == known
    assert ids(await store.load(key, ALL)) == ["x1.0", "x1.1"]
    assert await revise(store, key, details=new)
    assert await details(store, key) == new


async def test_the_system_message_and_the_title_can_be_forgotten(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", system=b"[1]", system_tokens=3))
    await revise(store, key, details=Details(title="t", system=b"[1]", system_tokens=3))
    assert await revise(store, key, details=Details())
    assert await details(store, key) == Details()
    seen = await store.load(key, ALL)
    assert (seen.system, seen.system_tokens) == (None, 0)


async def test_of_two_who_change_details_at_once_one_succeeds(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    attempts = (
        revise(store, key, details=Details(title=f"by {n}"), expected_details=Details())
        for n in range(8)
    )
    assert sorted(await asyncio.gather(*attempts)) == [False] * 7 + [True]


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)  # Redis has its own clock
async def test_a_new_ttl_counts_from_now_and_other_changes_do_not_slide_it(
    store: Store, key: SessionKey, clock: Clock
) -> None:
    await store.commit(key, chat("x1", ttl=100))
    clock.now += 60
    assert await revise(store, key, details=Details(ttl=100, title="t"), superseded=("x1.1",))
    clock.now += 39
    assert await store.session(key) is not None
    assert await revise(store, key, details=Details(ttl=50))
    clock.now += 49
    assert await store.session(key) is not None
    assert await revise(store, key, details=Details(ttl=0))
    clock.now += 10**6
    assert await store.session(key) is not None
    assert await revise(store, key, details=Details(ttl=10))
    clock.now += 10
    assert await store.session(key) is None
    assert not await revise(store, key, details=Details(title="late"))


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)  # Redis has its own clock
async def test_a_session_that_has_expired_is_not_there_for_anybody(
    store: Store, key: SessionKey, clock: Clock
) -> None:
    await store.commit(key, chat("x1", user="kai", ttl=100))
    clock.now += 100
    assert await store.message(key, "x1.0") is None
    assert await lines(store, key) == () == await exchanges(store, key)
    for change in ({"removed": ("x1.0",)}, {"superseded": ("x1.0",)}, {"details": Details()}):
        assert not await revise(store, key, **change)
    await store.mark([Subject(key.tenant, "kai")], 1000.0)
    assert await store.commit(key, chat("x2")) == "recorded"
    assert ids(await store.load(key, ALL)) == ["x2.0", "x2.1"]


# Editing


async def test_an_edited_message_takes_the_place_of_the_one_that_was_read(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", window=window("x1.0")))
    await store.commit(key, chat("x2"))
    new = edited("x1", 1, "assistant", replaced_wire=body("x1", 1), wire=b'{"reasoning":1}')
    assert await revise(store, key, edited=(new,))
    assert await store.message(key, "x1.1") == StoredMessage(
        Position(1, 2), new.card, "active", new.body, b'{"reasoning":1}'
    )
    seen = await store.load(key, ALL)
    assert ids(seen) == ["x1.0", "x1.1", "x2.0", "x2.1"]
    assert seen.log[1] == Entry(Position(1, 2), new.card)
    assert seen.bodies["x1.1"] == new.body
    assert (seen.messages, seen.tokens, seen.changes) == (4, 3 * TOKENS + 3, 1)
    assert seen.start == Position(1, 1)
    assert await store.bodies(key, ["x1.1"]) == {"x1.1": new.body}
    page = await store.messages(key, STATES, 1, 1)
    assert page.items[0].wire == b'{"reasoning":1}'
    passages = await store.passages(key.tenant, None, {key.session: [2]})
    assert passages[key.session, 2].wire == new.body
    again = edited("x1", 1, "assistant", replaced_wire=b'{"reasoning":1}', tokens=7)
    assert await revise(store, key, edited=(again,))
    line = await store.message(key, "x1.1")
    assert line is not None and line.wire is None
    assert (await store.load(key, ALL)).tokens == 3 * TOKENS + 7


async def test_an_edit_of_what_is_not_as_it_was_changes_nothing_at_all(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    before = await store.load(key, ALL), await store.session(key), await lines(store, key)
    good = edited("x1", 0, replaced_wire=body("x1", 0))
    for bad in (
        edited("x1", 1, "assistant", replaced_wire=b"something else"),
        edited("x1", 2, replaced_wire=b""),
        edited("x7", 0, replaced_wire=body("x7", 0)),
    ):
        assert not await revise(store, key, edited=(good, bad))
        assert not await revise(
            store, key, edited=(bad,), removed=("x1.0",), details=Details(title="t")
        )
    assert before == (await store.load(key, ALL), await store.session(key), await lines(store, key))


async def test_what_is_for_one_log_alone_is_not_done_in_another(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    session = await store.session(key)
    assert session is not None
    size = session.log_size
    wanted = [
        revise(store, key, superseded=(f"x{n}.0", f"x{n}.1"), log_size=size) for n in range(1, 5)
    ]
    assert sorted(await asyncio.gather(*wanted)) == [False, False, False, True]
    now = await store.session(key)
    assert now is not None and now.messages == session.messages - 2
    assert not await revise(store, key, activated=("x1.0",), log_size=size)
    assert await revise(store, key, removed=("x2.0",), log_size=now.log_size)
    await store.commit(key, chat("x9"))
    assert not await revise(store, key, details=Details(title="t"), log_size=now.log_size)


async def test_an_edit_of_a_superseded_message_leaves_it_superseded(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    await store.commit(key, chat("x5", superseded=("x1.1",)))
    await store.put_summary(key, summary(3), 0, None)
    new = edited("x1", 1, "assistant", replaced_wire=body("x1", 1))
    assert await revise(store, key, edited=(new,))
    line = await store.message(key, "x1.1")
    assert line is not None and (line.state, line.card) == ("superseded", new.card)
    seen = await store.load(key, ALL)
    assert (seen.messages, seen.tokens) == (9, 9 * TOKENS)
    assert (seen.changes, seen.summary) == (2, None)
    await store.commit(key, chat("x6", activated=("x1.1",)))
    assert (await store.load(key, ALL)).tokens == 11 * TOKENS + 3


async def test_of_two_who_edit_a_message_at_once_one_succeeds(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    was = body("x1", 0)
    attempts = (
        revise(store, key, edited=(edited("x1", 0, replaced_wire=was, wire=b"%d" % n),))
        for n in range(8)
    )
    assert sorted(await asyncio.gather(*attempts)) == [False] * 7 + [True]
    assert (await store.load(key, ALL)).changes == 1


# Superseding and activating


async def test_a_branch_goes_and_another_comes_back_in_one_revision(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key, 3)
    await store.commit(key, chat("y2", superseded=("x2.0", "x2.1", "x3.0", "x3.1")))
    await store.commit(key, chat("y3", window=window("y2.0")))
    await store.commit(key, chat("y4", profile="p", window=window("y3.0", "p")))
    before = await store.load(key, ALL)
    assert await revise(
        store,
        key,
        superseded=("y2.0", "y2.1", "y3.0", "y3.1", "y4.0", "y4.1", "nonsense", "y9.0"),
        activated=("x2.0", "x2.1", "x1.0", "x9.9"),
    )
    seen = await store.load(key, ALL)
    assert ids(seen) == ["x1.0", "x1.1", "x2.0", "x2.1"]
    assert (seen.messages, seen.tokens) == (4, 4 * TOKENS)
    assert seen.changes == before.changes + 8
    assert seen.start is None and seen.last == before.last
    session = await store.session(key)
    assert session is not None
    assert (session.windows, session.window_start, session.last) == ({}, 0, "y4")
    assert session.last_active_at == 1003.0


async def test_what_is_superseded_and_activated_in_one_revision_is_active(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key, 1)
    assert await revise(store, key, superseded=("x1.0",), activated=("x1.0",))
    assert ids(await store.load(key, ALL)) == ["x1.0", "x1.1"]


async def test_a_revision_that_finds_nothing_to_do_changes_nothing(
    store: Store, key: SessionKey
) -> None:
    assert not await revise(store, key)
    await store.commit(key, chat("x1", window=window("x1.0")))
    await store.put_summary(key, summary(3), 0, None)
    before = await store.load(key, ALL), await store.session(key)
    unknown = ("x1.2", "x1.01", "x9.0", "x1.-1", "x1.", ".", "", "x1.999999999999999999")
    assert await revise(
        store, key, removed=unknown, superseded=unknown, activated=("x1.0", *unknown)
    )
    assert (await store.load(key, ALL), await store.session(key)) == before


async def test_thousands_of_messages_go_and_come_back_at_once(
    store: Store, key: SessionKey
) -> None:
    count = 3000
    many = tuple(draft("x1", n, turn="x1.0", tokens=1) for n in range(count))
    await store.commit(key, record("x1", *many))
    all_ids = tuple(each.card.id for each in many)
    assert await revise(store, key, superseded=all_ids[1:])
    assert (await store.load(key, ALL)).tokens == 1
    assert await revise(store, key, activated=all_ids)
    assert (await store.load(key, ALL)).tokens == count
    assert await revise(store, key, removed=all_ids[2:])
    assert ids(await store.load(key, ALL)) == ["x1.0", "x1.1"]


# Removing


async def test_a_removed_message_is_nowhere_any_more(store: Store, key: SessionKey) -> None:
    await turns(store, key, 2)
    assert await revise(store, key, removed=("x1.1", "x1.1"))
    assert await store.message(key, "x1.1") is None
    assert await store.bodies(key, ["x1.1"]) == {}
    assert await store.passages(key.tenant, None, {key.session: [2]}) == {}
    assert [x.card.id for x in await lines(store, key)] == ["x1.0", "x2.0", "x2.1"]
    page = await store.messages(key, STATES, 0, 9)
    assert [x.seq for x in page.items] == [1, 3, 4]
    assert [x.messages for x in await exchanges(store, key)] == [("x2.0", "x2.1"), ("x1.0",)]
    found = await store.exchange(key, "x1")
    assert found is not None and list(found[1]) == ["x1.0"]
    seen = await store.load(key, ALL)
    assert ids(seen) == ["x1.0", "x2.0", "x2.1"] == list(seen.bodies)
    assert (seen.messages, seen.tokens, seen.changes) == (3, 3 * TOKENS, 1)
    session = await store.session(key)
    assert session is not None and (session.messages, session.end) == (3, 4)
    await store.commit(key, chat("x3"))
    assert [x.position.seq for x in await lines(store, key)] == [1, 3, 4, 5, 6]


async def test_a_turn_stays_one_though_the_message_that_it_began_with_is_removed(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key, 2)
    assert await revise(store, key, removed=("x1.0",))
    joined = draft("x3", 0, "tool", turn="x1.1")
    alone = draft("x3", 1, "tool", turn="x1.0")
    await store.commit(key, record("x3", joined, alone))
    log = (await store.load(key, ALL)).log
    assert [(entry.card.id, entry.position) for entry in log] == [
        ("x1.1", Position(1, 2)),
        ("x3.0", Position(1, 5)),
        ("x2.0", Position(3, 3)),
        ("x2.1", Position(3, 4)),
        ("x3.1", Position(6, 6)),
    ]


async def test_removing_forgets_all_windows_and_a_removed_message_moves_none(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key, 2)
    await store.commit(key, chat("x3", window=window("x2.0")))
    await store.commit(key, chat("x4", profile="p", window=window("x1.1", "p")))
    assert await revise(store, key, removed=("x2.0",))
    session = await store.session(key)
    assert session is not None and session.windows == {}
    await store.commit(key, chat("x5", window=window("x2.0")))
    assert (await store.load(key, ALL)).start is None
    await store.commit(key, chat("x6", window=window("x2.1")))
    assert (await store.load(key, ALL)).start == Position(3, 4)


async def test_removing_a_superseded_message_leaves_the_counts(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key, 2)
    await store.commit(key, chat("x3", superseded=("x1.0",)))
    assert await revise(store, key, removed=("x1.0",))
    seen = await store.load(key, ALL)
    assert (seen.messages, seen.tokens, seen.changes) == (5, 5 * TOKENS, 2)
    await store.commit(key, chat("x4", activated=("x1.0",)))
    assert "x1.0" not in ids(await store.load(key, ALL))


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param({"removed": ("x4.1",)}, 3, id="removed-behind"),
        pytest.param({"removed": ("x3.0",)}, 2, id="removed-under-the-newest"),
        pytest.param({"superseded": ("x2.1",)}, 1, id="superseded"),
        pytest.param({"removed": ("x4.0",), "superseded": ("x1.0",)}, 0, id="under-all"),
        pytest.param({"activated": ("x1.0",), "removed": ("x9.0",)}, 3, id="nothing"),
    ],
)
async def test_a_revision_drops_the_versions_that_cover_what_it_changes(
    store: Store, key: SessionKey, change: dict[str, tuple[str, ...]], left: int
) -> None:
    await turns(store, key)
    for after, until in enumerate((3, 5, 7)):
        await store.put_summary(key, summary(until), after, None)
    assert await revise(store, key, **change)
    assert [kept.version for kept in await store.summaries(key)] == [3, 2, 1][3 - left :]
    seen = await store.load(key, ALL)
    assert (seen.summary.version if seen.summary else 0) == left
    described = await store.session(key)
    assert described is not None and described.summary == seen.summary


async def test_an_edit_drops_the_versions_that_cover_its_place(
    store: Store, key: SessionKey
) -> None:
    await turns(store, key)
    for after, until in enumerate((3, 5, 7)):
        await store.put_summary(key, summary(until), after, None)
    assert await revise(store, key, edited=(edited("x2", 0, replaced_wire=body("x2", 0)),))
    assert [kept.version for kept in await store.summaries(key)] == [1]


# Exchanges that are emptied


async def test_an_exchange_without_messages_left_is_gone_with_its_key(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", 1000.0))
    await store.commit(key, chat("x2", 1001.0, idempotency_key="k", reserved=1, profile="p"))
    assert await revise(store, key, removed=("x2.0",))
    assert await store.exchange(key, "x2") is not None
    assert await revise(store, key, removed=("x2.1",))
    assert await store.exchange(key, "x2") is None
    assert [x.exchange.id for x in await exchanges(store, key)] == ["x1"]
    seen = await store.load(key, LoadOptions(profile="default", whole=True, idempotency_key="k"))
    assert seen.attempt is None and ids(seen) == ["x1.0", "x1.1"]
    assert seen.last is not None and seen.last.id == "x1"
    session = await store.session(key)
    assert session is not None and (session.last, session.end) == ("x1", 5)
    late = Amendment(exchange="x2", drafts=(draft("x2", 2, "assistant", choice=1),))
    await store.amend(key, late)
    assert await store.load(key, ALL) == seen


async def test_a_retry_of_an_exchange_that_is_gone_is_recorded_as_a_new_one(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", 1000.0))
    await store.commit(key, chat("x2", 1005.0, idempotency_key="k"))
    await revise(store, key, removed=("x2.0", "x2.1"))
    retry = chat("x3", 1003.0, idempotency_key="k")
    assert await store.commit(key, retry) == "recorded"
    seen = await store.load(key, LoadOptions(profile="default", whole=True, idempotency_key="k"))
    assert ids(seen) == ["x1.0", "x1.1", "x3.0", "x3.1"]
    assert [entry.position.seq for entry in seen.log] == [1, 2, 5, 6]
    assert seen.attempt is not None and seen.attempt.id == "x3" and seen.changes == 2
    assert seen.last is not None and seen.last.id == "x3"


async def test_the_newest_exchange_is_then_the_newest_that_has_messages(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", profile="p", window=window("x1.1", "p")))
    await store.commit(key, record("x2", reserved=2))
    await store.commit(key, chat("x3"))
    await store.commit(key, chat("x4"))
    await revise(store, key, removed=("x3.0", "x3.1"))
    session = await store.session(key)
    assert session is not None and session.last == "x4"
    await revise(store, key, removed=("x4.0", "x4.1"))
    session = await store.session(key)
    assert session is not None and session.last == "x1"
    assert await store.exchange(key, "x2") is not None


@pytest.mark.parametrize("whole", [True, False])
async def test_a_session_stays_though_all_its_messages_are_removed(
    store: Store, key: SessionKey, whole: bool
) -> None:
    await store.commit(key, chat("x1", user="kai", window=window("x1.0"), idempotency_key="k"))
    assert await revise(store, key, removed=("x1.0", "x1.1"), details=Details(title="empty"))
    options = LoadOptions(
        profile="default", whole=whole, max_messages=0, idempotency_key="k", max_uncovered_tokens=0
    )
    seen = await store.load(key, options)
    session = await store.session(key)
    assert session is not None
    began = session.created_at
    assert seen == Snapshot(exists=True, owner="kai", whole=whole, changes=2, created_at=began)
    assert (session.messages, session.tokens, session.last, session.end) == (0, 0, None, 2)
    assert (await store.sessions(key.tenant, "kai", None, 9)).items == (session,)
    assert await store.commit(key, chat("x2", user="eve")) == "foreign"
    assert await store.commit(key, chat("x2", idempotency_key="k")) == "recorded"
    assert [x.position for x in await lines(store, key)] == [Position(3, 3), Position(3, 4)]


async def test_choices_are_alternates_only_while_there_are_several(
    store: Store, key: SessionKey
) -> None:
    others = [draft("x1", n, "assistant", choice=n - 1, state="superseded") for n in (2, 3)]
    await store.commit(key, record("x1", *chat("x1").drafts, *others))
    await store.commit(key, chat("x2"))
    alternates = (await store.load(key, ALL)).alternates
    assert [entry.card.id for entry in alternates["x1"]] == ["x1.2", "x1.3"]
    assert await revise(store, key, removed=("x1.2",), superseded=("x1.1",))
    alternates = (await store.load(key, ALL)).alternates
    assert [entry.card.id for entry in alternates["x1"]] == ["x1.1", "x1.3"]
    assert await revise(store, key, removed=("x1.3",))
    assert (await store.load(key, ALL)).alternates == {}


async def test_what_is_removed_in_one_session_stays_in_its_neighbour(
    store: Store, key: SessionKey
) -> None:
    other = SessionKey(key.tenant, "other")
    for each in (key, other):
        await store.commit(each, chat("x1"))
    assert await revise(store, key, removed=("x1.0", "x1.1"))
    assert ids(await store.load(other, ALL)) == ["x1.0", "x1.1"]
    assert [x.messages for x in await exchanges(store, other)] == [("x1.0", "x1.1")]
