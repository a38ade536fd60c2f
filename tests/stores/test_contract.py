"""What a commit and an amendment do, on every back end."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import astuple

from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Amendment,
    LoadOptions,
    Position,
    SessionKey,
    SessionVersion,
    Snapshot,
    WindowMove,
)
from proxy.memory.store import Store
from tests.support.clock import Clock
from tests.support.store.archives import edited, revise
from tests.support.store.commits import TOKENS, chat, draft, record

ALL = LoadOptions(profile="default", whole=True)


def ids(snapshot: Snapshot) -> list[str]:
    return [entry.card.id for entry in snapshot.log]


def seqs(snapshot: Snapshot) -> list[int]:
    return [entry.position.seq for entry in snapshot.log]


async def test_an_unknown_session_is_the_empty_snapshot(store: Store, key: SessionKey) -> None:
    assert await store.load(key, ALL) == Snapshot()
    assert await store.session(key) is None


async def test_a_commit_is_seen_by_the_next_load(store: Store, key: SessionKey) -> None:
    commit = chat("x1", user="kai", system=b'[{"role":"system"}]', system_tokens=3)
    assert await store.commit(key, commit) == "recorded"
    seen = await store.load(key, ALL)
    assert seen.exists and seen.owner == "kai"
    assert (seen.system, seen.system_tokens) == (b'[{"role":"system"}]', 3)
    assert [entry.card for entry in seen.log] == [draft.card for draft in commit.drafts]
    assert [entry.position for entry in seen.log] == [Position(1, 1), Position(1, 2)]
    assert seen.bodies == {draft.card.id: draft.body for draft in commit.drafts}
    assert seen.last == msgspec.structs.replace(commit.exchange, size=2)
    assert (seen.messages, seen.tokens) == (2, 2 * TOKENS)


async def test_the_same_exchange_twice_is_recorded_once(store: Store, key: SessionKey) -> None:
    assert await store.commit(key, chat("x1")) == "recorded"
    before = await store.load(key, ALL)
    again = chat("x1", tokens=99, user="eve", system=b"[1]", ttl=5)
    assert await store.commit(key, again) == "duplicate"
    assert await store.load(key, ALL) == before


async def test_parallel_commits_are_contiguous_and_all_there(store: Store, key: SessionKey) -> None:
    commits = [chat(f"x{n}", reserved=n % 3) for n in range(20)]
    outcomes = await asyncio.gather(*(store.commit(key, commit) for commit in commits * 2))
    assert sorted(outcomes) == ["duplicate"] * 20 + ["recorded"] * 20
    log = (await store.load(key, ALL)).log
    places = {entry.card.id: entry.position for entry in log}
    assert len(places) == 40
    for commit in commits:
        first, second = (places[draft.card.id] for draft in commit.drafts)
        assert second.seq == first.seq + 1 and second.turn == first.turn == first.seq


async def test_a_session_belongs_to_its_first_user(store: Store, key: SessionKey) -> None:
    assert await store.commit(key, chat("x1")) == "recorded"
    assert await store.commit(key, chat("x2", user="kai")) == "recorded"
    before = await store.load(key, ALL)
    assert await store.commit(key, chat("x3", user="eve", superseded=("x1.0",))) == "foreign"
    assert await store.load(key, ALL) == before
    assert await store.commit(key, chat("x4")) == "recorded"
    assert (await store.load(key, ALL)).owner == "kai"


async def test_superseding_and_activating_are_idempotent_and_know_what_they_know(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", reserved=1))
    await store.commit(key, chat("x2"))
    unknown = ("x1.2", "x1.3", "x1.01", "x9.0", "x1.-1", "x1.", ".", "", "x1.999999999999999999")
    await store.commit(key, chat("x3", superseded=("x2.0", "x2.1", "x2.1", *unknown)))
    seen = await store.load(key, ALL)
    assert ids(seen) == ["x1.0", "x1.1", "x3.0", "x3.1"]
    assert (seen.messages, seen.tokens) == (4, 4 * TOKENS)
    await store.commit(key, chat("x4", superseded=("x2.0",), activated=("x2.1", "x1.0", *unknown)))
    seen = await store.load(key, ALL)
    assert ids(seen) == ["x1.0", "x1.1", "x2.1", "x3.0", "x3.1", "x4.0", "x4.1"]
    assert seqs(seen) == [1, 2, 5, 6, 7, 8, 9]
    assert (seen.messages, seen.tokens) == (7, 7 * TOKENS)


async def test_what_is_superseded_and_activated_at_once_is_active(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    await store.commit(key, chat("x2", superseded=("x1.0", "x1.1"), activated=("x1.1",)))
    assert ids(await store.load(key, ALL)) == ["x1.1", "x2.0", "x2.1"]


async def test_a_message_joins_the_turn_it_names(store: Store, key: SessionKey) -> None:
    await store.commit(key, chat("x1"))
    await store.commit(key, chat("x2"))
    late = draft("x3", 0, "tool", turn="x1.1")
    joined = draft("x3", 1, "assistant", turn="x3.0")
    own = draft("x3", 2, "user", turn="x3.2")
    unknown = draft("x3", 3, "user", turn="nobody.7")
    later = draft("x3", 4, "user", turn="x3.5")
    last = draft("x3", 5, "assistant", turn="x3.4")
    await store.commit(key, record("x3", late, joined, own, unknown, later, last))
    seen = await store.load(key, ALL)
    places = {entry.card.id: astuple(entry.position) for entry in seen.log}
    assert ids(seen)[:4] == ["x1.0", "x1.1", "x3.0", "x3.1"]
    assert places["x3.0"] == (1, 5) and places["x3.1"] == (1, 6)
    assert places["x3.2"] == (7, 7) and places["x3.3"] == (8, 8)
    assert places["x3.4"] == (9, 9) and places["x3.5"] == (9, 10)


async def test_the_system_message_stays_until_another_comes(store: Store, key: SessionKey) -> None:
    await store.commit(key, chat("x1", system=b"[1]", system_tokens=1))
    await store.commit(key, chat("x2"))
    assert (await store.load(key, ALL)).system == b"[1]"
    await store.commit(key, chat("x3", system=b"[2]", system_tokens=2))
    seen = await store.load(key, ALL)
    assert (seen.system, seen.system_tokens) == (b"[2]", 2)


async def test_an_exchange_without_messages_makes_a_session(store: Store, key: SessionKey) -> None:
    assert await store.commit(key, record("x1", reserved=2)) == "recorded"
    seen = await store.load(key, ALL)
    assert seen.exists and seen.log == () and seen.messages == 0
    assert seen.last is not None and seen.last.size == 2


async def test_a_retry_replaces_the_earlier_attempt(store: Store, key: SessionKey) -> None:
    await store.commit(key, chat("x1", 1000.0))
    await store.commit(key, chat("x2", 1001.0, idempotency_key="k"))
    retry = chat("x3", 1002.0, idempotency_key="k", superseded=("x2.0",))
    assert await store.commit(key, retry) == "recorded"
    seen = await store.load(key, LoadOptions(profile="default", whole=True, idempotency_key="k"))
    assert ids(seen) == ["x1.0", "x1.1", "x3.0", "x3.1"]
    assert seen.attempt is not None and seen.attempt.id == "x3"
    assert (seen.messages, seen.tokens) == (4, 4 * TOKENS)


@pytest.mark.parametrize(
    ("started", "outcome"),
    [
        pytest.param(1000.9, "outrun", id="earlier"),
        pytest.param(1001.0, "recorded", id="at-the-same-time"),
        pytest.param(1001.1, "recorded", id="later"),
    ],
)
async def test_of_two_attempts_the_one_started_last_stays(
    store: Store, key: SessionKey, started: float, outcome: str
) -> None:
    await store.commit(key, chat("x1", 1001.0, idempotency_key="k"))
    late = chat("x2", 1005.0, started_at=started, idempotency_key="k")
    before = await store.load(key, ALL)
    assert await store.commit(key, late) == outcome
    after = await store.load(key, ALL)
    assert ids(after) == (["x2.0", "x2.1"] if outcome == "recorded" else ids(before))
    assert (after == before) == (outcome == "outrun")


SWITCHING = {"superseded": ("x1.1",)}


@pytest.mark.parametrize(
    ("meanwhile", "late", "outcome"),
    [
        pytest.param((), SWITCHING, "recorded", id="nothing"),
        pytest.param(("x2.1",), {}, "outdated", id="a-switch"),
        pytest.param(("x1.9",), {}, "recorded", id="something-more"),
        pytest.param(("x1.9",), SWITCHING, "outdated", id="something-more-and-it-switches"),
        pytest.param(
            ("x1.9",),
            {"supersedes_siblings": True},
            "outdated",
            id="something-more-and-it-is-alone",
        ),
    ],
)
async def test_what_others_have_changed_is_not_committed_to(
    store: Store, key: SessionKey, meanwhile: tuple[str, ...], late: dict[str, Any], outcome: str
) -> None:
    await store.commit(key, chat("x1"))
    await store.commit(key, chat("x2"))
    seen = SessionVersion.of(await store.load(key, ALL))
    if meanwhile:
        await store.commit(key, chat("x3", superseded=meanwhile))
    before = await store.load(key, ALL)
    assert await store.commit(key, chat("x4", planned_for=seen, **late)) == outcome
    assert (await store.load(key, ALL) == before) == (outcome == "outdated")


@pytest.mark.parametrize(
    ("newest", "late", "outcome"),
    [
        pytest.param(None, True, "recorded", id="nothing-more"),
        pytest.param(False, False, "recorded", id="something-more"),
        pytest.param(True, False, "outdated", id="something-more-that-was-broken-off"),
        pytest.param(False, True, "outdated", id="something-more-and-it-was-broken-off"),
    ],
)
async def test_what_was_broken_off_is_not_committed_beside_what_has_not_seen_it(
    store: Store, key: SessionKey, newest: bool | None, late: bool, outcome: str
) -> None:
    await store.commit(key, chat("x1", incomplete=True))
    seen = SessionVersion.of(await store.load(key, ALL))
    if newest is not None:
        await store.commit(key, chat("x2", incomplete=newest, model="m" * 20_000))
    before = await store.load(key, ALL)
    assert await store.commit(key, chat("x3", planned_for=seen, incomplete=late)) == outcome
    assert (await store.load(key, ALL) == before) == (outcome == "outdated")


async def test_nor_in_a_session_that_was_not_there(store: Store, key: SessionKey) -> None:
    seen = SessionVersion.of(await store.load(key, ALL))
    assert await store.commit(key, chat("x1", planned_for=seen, incomplete=True)) == "recorded"
    assert await store.commit(key, chat("x2", planned_for=seen)) == "outdated"


async def test_a_retry_is_stale_once_another_exchange_has_followed(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", idempotency_key="k"))
    await store.commit(key, chat("x2"))
    before = await store.load(key, ALL)
    assert await store.commit(key, chat("x3", 2000.0, idempotency_key="k")) == "stale"
    assert await store.commit(key, chat("x1", 2000.0, idempotency_key="k")) == "duplicate"
    assert await store.load(key, ALL) == before


async def test_an_idempotency_key_is_forgotten_after_a_day(
    store: Store, key: SessionKey, clock: Clock
) -> None:
    await store.commit(key, chat("x1", 1000.0, idempotency_key="k"))
    await store.commit(key, chat("x2", 1001.0))
    options = LoadOptions(profile="default", idempotency_key="k")
    attempt = (await store.load(key, options)).attempt
    assert attempt is not None and attempt.id == "x1"
    clock.now = 1000.0 + IDEMPOTENCY_SECONDS
    assert (await store.load(key, options)).attempt is None
    late = chat("x3", 1000.0 + IDEMPOTENCY_SECONDS, idempotency_key="k")
    assert await store.commit(key, late) == "recorded"
    assert len((await store.load(key, ALL)).log) == 6
    attempt = (await store.load(key, options)).attempt
    assert attempt is not None and attempt.id == "x3"


async def test_a_window_moves_forwards_only_unless_found_anew(
    store: Store, key: SessionKey
) -> None:
    def at(start: str, anew: bool = False) -> WindowMove:
        return WindowMove(profile="default", start=start, may_move_back=anew)

    async def start() -> Position | None:
        return (await store.load(key, ALL)).start

    await store.commit(key, chat("x1"))
    assert await start() is None
    await store.commit(key, chat("x2", window=at("x2.0")))
    assert await start() == Position(3, 3)
    await store.commit(key, chat("x3", window=at("x1.0")))
    assert await start() == Position(3, 3)
    await store.commit(key, chat("x4", window=at("x9.0", anew=True)))
    assert await start() == Position(3, 3)
    await store.commit(key, chat("x5", window=at("x1.0", anew=True), superseded=("x1.0",)))
    assert await start() == Position(1, 1)
    assert (await store.load(key, LoadOptions(profile="other"))).start is None


async def test_an_amendment_fills_reserved_places_once(store: Store, key: SessionKey) -> None:
    await store.commit(key, chat("x1", reserved=2))
    await store.commit(key, chat("x2"))
    second = draft("x1", 2, "assistant", turn="x1.0", choice=1, state="superseded")
    third = draft("x1", 3, "assistant", turn="x1.0", choice=2)
    outside = draft("x1", 4, "assistant", turn="x1.0", choice=3)
    taken = draft("x1", 1, "assistant", turn="x1.0", tokens=77)
    usage = b'{"total_tokens":5}'
    amendment = Amendment(exchange="x1", usage=usage, drafts=(second, third, outside, taken))
    await store.amend(key, amendment)
    seen = await store.load(key, ALL)
    assert ids(seen) == ["x1.0", "x1.1", "x1.3", "x2.0", "x2.1"]
    assert seqs(seen) == [1, 2, 4, 5, 6]
    assert (seen.messages, seen.tokens) == (5, 5 * TOKENS)
    assert [entry.card.id for entry in seen.alternates["x1"]] == ["x1.2"]
    found = await store.exchange(key, "x1")
    assert found is not None and found[0].usage == usage
    assert list(found[1]) == ["x1.0", "x1.1", "x1.2", "x1.3"]
    await store.amend(key, amendment)
    other = Amendment(exchange="x1", usage=b"{}")
    await store.amend(key, other)
    assert await store.exchange(key, "x1") == found
    assert await store.load(key, ALL) == seen


async def test_amending_what_is_unknown_does_nothing(store: Store, key: SessionKey) -> None:
    amendment = Amendment(exchange="x7", drafts=(draft("x7", 0),))
    await store.amend(key, amendment)
    assert await store.load(key, ALL) == Snapshot()
    await store.commit(key, chat("x1"))
    before = await store.load(key, ALL)
    await store.amend(key, amendment)
    assert await store.load(key, ALL) == before


async def test_an_answer_that_went_on_is_put_in_its_place_once(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1", reserved=1))
    await store.commit(key, chat("x2"))
    was = draft("x1", 1, "assistant").body
    whole = edited("x1", 1, "assistant", replaced_wire=was, wire=b'{"all":1}', tokens=TOKENS + 5)
    other = draft("x1", 2, "assistant", turn="x1.0", choice=1, state="superseded")
    amendment = Amendment(exchange="x1", usage=b"{}", drafts=(other,), edited=whole)
    assert await store.amend(key, amendment) == 2
    seen = await store.load(key, ALL)
    assert ids(seen) == ["x1.0", "x1.1", "x2.0", "x2.1"]
    assert (seen.log[1].card, seen.bodies["x1.1"]) == (whole.card, whole.body)
    assert (seen.messages, seen.tokens, seen.changes) == (4, 4 * TOKENS + 5, 1)
    assert [entry.card.id for entry in seen.alternates["x1"]] == ["x1.2"]
    line = await store.message(key, "x1.1")
    assert line is not None and line.wire == whole.wire
    assert await store.amend(key, amendment) is None
    assert await store.load(key, ALL) == seen


async def test_an_answer_that_is_superseded_meanwhile_says_all_in_history(
    store: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    await store.commit(key, chat("x2", superseded=("x1.1",)))
    was = draft("x1", 1, "assistant").body
    whole = edited("x1", 1, "assistant", replaced_wire=was)
    before = await store.load(key, ALL)
    assert await store.amend(key, Amendment(exchange="x1", edited=whole)) == 2
    line = await store.message(key, "x1.1")
    assert line is not None and (line.body, line.state) == (whole.body, "superseded")
    after = await store.load(key, ALL)
    assert (after.log, after.tokens) == (before.log, before.tokens)


async def test_what_came_late_does_not_undo_what_people_have_changed(
    store: Store, key: SessionKey
) -> None:
    for id in ("x1", "x2"):
        await store.commit(key, chat(id))
    was, theirs = draft("x1", 1, "assistant").body, draft("x2", 1, "assistant").body
    await revise(store, key, edited=(edited("x1", 1, "assistant", replaced_wire=was),))
    seen = await store.load(key, ALL)
    late = edited("x1", 1, "assistant", replaced_wire=was, tokens=77)
    gone = edited("x1", 7, "assistant", replaced_wire=was)
    foreign = edited("x2", 1, "assistant", replaced_wire=theirs)
    for each in (late, gone, foreign):
        assert await store.amend(key, Amendment(exchange="x1", edited=each)) is None
    assert await store.load(key, ALL) == seen
