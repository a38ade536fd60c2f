"""A commit that others were faster than: what it means for the session as it is now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import permutations

import pytest
from msgspec.structs import replace

from proxy.memory.history.reading import NEWEST_TURN
from proxy.memory.locks import Locks
from proxy.memory.model import (
    Card,
    Commit,
    Draft,
    LoadOptions,
    Outcome,
    Position,
    SessionKey,
    SessionVersion,
    Snapshot,
    WindowMove,
)
from proxy.memory.reconciliation.rebase import (
    MAX_COMPARED,
    is_outlived,
    rebase_commit,
    replacing_broken_off,
    with_window_moved_back,
)
from proxy.memory.recording.concurrent_commit import TIMEOUT, CommitSettler
from proxy.memory.store import StoreError, StoreTimeout
from proxy.stores.common.steps import SWITCHED_AT_ONCE, commit_steps
from tests.support.faulty import FaultyStore
from tests.support.oracle import archive as oracle_archive
from tests.support.oracle.session import SessionState
from tests.support.store.commits import chat, draft, exchange, record
from tests.support.store.recording import ASK, KEY


def said(id: str, follows: str, *gone: str, seen: str = "x2") -> Commit:
    """An exchange of a question and its answer, which takes back what is ``gone``."""
    commit = chat(id, superseded=gone, planned_for=SessionVersion(seen, 0))
    return replace(commit, exchange=exchange(id, follows=follows))


def session(*commits: Commit) -> SessionState:
    state = SessionState(created_at=0.0, last_active_at=0.0)
    for commit in (said("x1", ""), said("x2", "x1.1"), *commits):
        assert state.commit(replace(commit, planned_for=None)) == "recorded"
    return state


def meant(state: SessionState, commit: Commit) -> Commit:
    lines, exchanges = oracle_archive.lines(state, 0), oracle_archive.exchanges(state, None)[::-1]
    return rebase_commit(commit, state.look(NEWEST_TURN, 0.0), lines, exchanges)


EDIT = ("x2.0", "x2.1")


@pytest.mark.parametrize(
    ("others", "late", "gone", "back"),
    [
        pytest.param([said("x3", "x1.1", *EDIT)], said("x4", "x2.1"), "x3", "x2", id="onward"),
        pytest.param([said("x3", "x2.1")], said("x4", "x1.1", *EDIT), "x2 x3", "", id="edit"),
        pytest.param(
            [said("x3", "x1.1", *EDIT)], said("x4", "x1.1", *EDIT), "x2 x3", "", id="edits"
        ),
        pytest.param(
            [said("x3", "x2.1"), said("x5", "x3.1")],
            said("x4", "x1.1", *EDIT),
            "x2 x3 x5",
            "",
            id="what-follows-what-goes",
        ),
        pytest.param([said("x3", "x1.1")], said("x4", "x1.1", *EDIT), "x2", "", id="beside"),
        pytest.param([said("x3", "x2.1")], said("x4", "x2.1"), "", "", id="both-onward"),
        pytest.param(
            [said("x3", "x2.1"), said("x5", "x3.1")],
            replace(said("x4", "x2.1"), supersedes_siblings=True),
            "x3 x5",
            "",
            id="alone",
        ),
    ],
)
def test_its_branch_is_the_log(
    others: Sequence[Commit], late: Commit, gone: str, back: str
) -> None:
    found = meant(session(*others), late)
    assert set(found.superseded) == {f"{id}.{n}" for id in gone.split() for n in (0, 1)}
    assert set(found.activated) == {f"{id}.{n}" for id in back.split() for n in (0, 1)}


def test_what_nothing_has_taken_the_place_of_stays_away() -> None:
    state = session()
    state.switch(EDIT, "superseded")
    late = said("x4", "x2.1")
    assert meant(state, late) == late


def test_where_the_newest_that_it_saw_is_gone_older_turns_stay() -> None:
    answered_otherwise = said("x4", "x2.0", "x2.1")
    state = session(said("x3", "x2.1"), answered_otherwise)
    late = said("x5", "x3.1", "x4.0", "x4.1", seen="lost")
    assert set(meant(state, late).superseded) == {"x4.0", "x4.1"}


@pytest.mark.parametrize(
    ("start", "window"),
    [(None, None), (1, None), (9, WindowMove(profile="default", start="x2.0", may_move_back=True))],
)
def test_what_comes_back_is_in_the_window(start: int | None, window: WindowMove | None) -> None:
    state = session(said("x3", "x1.1", *EDIT))
    late = said("x4", "x2.1")
    place = None if start is None else Position(start, start)
    found = with_window_moved_back(
        meant(state, late), late.activated, oracle_archive.lines(state, 0), place
    )
    assert found.window == window


def test_of_many_steps_the_first_one_finds_the_session_as_it_was() -> None:
    gone = [f"x1.{n}" for n in range(2 * SWITCHED_AT_ONCE + 1)]
    steps = commit_steps(said("x4", "", *gone))
    assert [step.planned_for for step in steps] == [SessionVersion("x2", 0), None, None]


# Brought by several


def bringing(id: str, words: str, window: WindowMove | None = None) -> Commit:
    """What was said elsewhere, ``u`` a question and ``a`` an answer, and one more answer."""
    roles = {"u": "user", "a": "assistant"}
    drafts = [
        draft(id, n, roles[word[0]], turn=f"{id}.{n}", digest=word, origin="request")
        for n, word in enumerate(words.split())
    ]
    answer = draft(id, len(drafts), "assistant", turn=drafts[-1].card.id)
    commit = record(id, *drafts, answer, planned_for=SessionVersion("x2", 0), window=window)
    return replace(commit, exchange=replace(commit.exchange, follows="x2.1"))


@pytest.mark.parametrize(
    ("words", "count"),
    [
        pytest.param("u3 a3 u4 a4 u6", 4, id="all-of-it"),
        pytest.param("u3 a3 u6", 2, id="the-beginning"),
        pytest.param("u3 a3 u4 a6 u6", 2, id="another-answer"),
        pytest.param("u3 a3 u4 a4 u5", 4, id="the-same-question"),
        pytest.param("u6 a3 u4 a4 u6", 0, id="another-question"),
        pytest.param("u3 u6", 0, id="no-answer"),
    ],
)
def test_what_others_have_brought_meanwhile_is_not_in_the_log_again(words: str, count: int) -> None:
    found = meant(session(bringing("x3", "u3 a3 u4 a4 u5")), bringing("x4", words))
    assert [each.state for each in found.drafts[:count]] == ["superseded"] * count
    assert all(each.state == "active" for each in found.drafts[count:])
    assert found.exchange.follows == (f"x3.{count - 1}" if count else "x2.1")
    assert not found.superseded


def test_calls_that_differ_in_their_ids_alone_are_those_of_others() -> None:
    late = bringing("x4", "u3 a8 u6")
    made, other = (replace(late.drafts[1].card, digest=id, shape="call") for id in ("a3", "a8"))
    first = bringing("x3", "u3 a3 u4")
    first = replace(first, drafts=put(first.drafts, 1, replace(made, id="x3.1")))
    found = meant(session(first), replace(late, drafts=put(late.drafts, 1, other)))
    assert (found.exchange.follows, found.drafts[1].state) == ("x3.1", "superseded")


def put(drafts: Sequence[Draft], at: int, card: Card) -> tuple[Draft, ...]:
    return (*drafts[:at], replace(drafts[at], card=card), *drafts[at + 1 :])


def test_what_others_have_brought_with_more_before_it_is_theirs_too() -> None:
    found = meant(session(bringing("x3", "u3 a3 u4 a4 u5")), bringing("x4", "u4 a4 u6"))
    assert found.exchange.follows == "x3.3"
    assert [each.state for each in found.drafts] == ["superseded"] * 2 + ["active"] * 2


def test_of_many_that_begin_alike_no_more_than_the_oldest_are_compared() -> None:
    state = session(*(bringing(f"x{n}", f"u3 a{n} u4") for n in range(3, 4 + MAX_COMPARED)))
    for n, count in ((2 + MAX_COMPARED, 2), (3 + MAX_COMPARED, 0)):
        found = meant(state, bringing("y", f"u3 a{n} u5"))
        assert [each.state for each in found.drafts].count("superseded") == count


@pytest.mark.parametrize(("start", "moves"), [("x4.0", False), ("x4.2", True), ("x1.0", True)])
def test_the_window_does_not_begin_with_what_is_not_in_the_log(start: str, moves: bool) -> None:
    move = WindowMove(profile="default", start=start)
    found = meant(session(bringing("x3", "u3 a3 u5")), bringing("x4", "u3 a3 u6", window=move))
    assert found.window == (move if moves else None)


def test_what_belongs_to_a_turn_that_was_brought_too_stays_with_it() -> None:
    late = bringing("x4", "u3 a3 u6")
    late = replace(late, drafts=(*late.drafts[:3], replace(late.drafts[3], turn="x4.0")))
    assert meant(session(bringing("x3", "u3 a3 u5")), late) == late


# Asked again


def asking(id: str, begun: float, *, off: bool = False, follows: str = "x2.1") -> Commit:
    """A question, the same each time, and its answer."""
    asked, answer = draft(id, 0, digest="the same"), draft(id, 1, "assistant")
    commit = record(
        id, asked, answer, at=begun, incomplete=off, planned_for=SessionVersion("x2", 0)
    )
    return replace(commit, exchange=replace(commit.exchange, follows=follows))


def newest(commit: Commit) -> Snapshot:
    return session(commit).look(NEWEST_TURN, 0.0)


ANOTHER = draft("x3", 0, digest="another")


@pytest.mark.parametrize(
    ("first", "late", "gone"),
    [
        pytest.param(asking("x3", 1, off=True), asking("x4", 2), "x3.0 x3.1", id="broken-off"),
        pytest.param(asking("x3", 1), asking("x4", 2), "", id="whole"),
        pytest.param(
            asking("x3", 1, off=True, follows="x1.1"), asking("x4", 2), "", id="elsewhere"
        ),
        pytest.param(
            replace(asking("x3", 1, off=True), drafts=(ANOTHER,)), asking("x4", 2), "", id="another"
        ),
        pytest.param(
            asking("x3", 1, off=True),
            replace(asking("x4", 2), drafts=(draft("x4", 0, "assistant"),)),
            "",
            id="asks-nothing",
        ),
    ],
)
def test_what_was_broken_off_is_replaced_by_the_same_asked_again(
    first: Commit, late: Commit, gone: str
) -> None:
    assert replacing_broken_off(late, newest(first)).superseded == tuple(gone.split())


@pytest.mark.parametrize(
    ("first", "late", "none"),
    [
        pytest.param(asking("x4", 2), asking("x3", 1, off=True), True, id="broken-off"),
        pytest.param(asking("x4", 2, off=True), asking("x3", 1, off=True), True, id="both"),
        pytest.param(asking("x4", 2), asking("x3", 1), False, id="whole"),
        pytest.param(asking("x4", 1), asking("x3", 2, off=True), False, id="begun-later"),
        pytest.param(
            asking("x4", 2, follows="x1.1"), asking("x3", 1, off=True), False, id="elsewhere"
        ),
        pytest.param(
            asking("x4", 2),
            replace(asking("x3", 1, off=True), idempotency_key="k"),
            False,
            id="it-has-a-key",
        ),
    ],
)
def test_what_was_broken_off_has_no_place_behind_the_same_asked_again(
    first: Commit, late: Commit, none: bool
) -> None:
    assert is_outlived(late, newest(first)) is none


# Recording


NEVER_READ = StoreError("it is not to be read")


async def of_a_person(store: FaultyStore) -> SessionVersion:
    """What was seen of a session before somebody else went on and took something back."""
    for commit in (said("x1", ""), said("x2", "x1.1")):
        await store.commit(KEY, replace(commit, planned_for=None))
    seen = SessionVersion.of(await store.load(KEY, ASK))
    await store.commit(KEY, replace(said("x3", "x2.1", "x1.0"), planned_for=None))
    return seen


async def test_what_only_goes_on_does_not_read_the_session() -> None:
    store = FaultyStore()
    seen = await of_a_person(store)
    store.fail(NEVER_READ, "lines", "exchanges")
    late = replace(said("x4", "x2.1"), planned_for=seen)
    assert await CommitSettler(store, Locks()).commit(KEY, late) == "recorded"
    log = (await store.load(KEY, ASK)).log
    assert [entry.card.id for entry in log][-2:] == ["x4.0", "x4.1"]


@pytest.mark.parametrize("order", list(permutations(["x3", "x4", "x5"])), ids="-".join)
async def test_of_several_broken_off_the_last_one_stays_in_whatever_order_they_come(
    order: Sequence[str],
) -> None:
    store = FaultyStore()
    for commit in (said("x1", ""), said("x2", "x1.1")):
        await store.commit(KEY, replace(commit, planned_for=None))
    store.fail(NEVER_READ, "lines", "exchanges")
    begun = {"x3": 1.0, "x4": 2.0, "x5": 3.0}
    for id in order:
        await CommitSettler(store, Locks()).commit(KEY, asking(id, begun[id], off=id != "x5"))
    log = (await store.load(KEY, ASK)).log
    assert [entry.card.id for entry in log][-3:] == ["x2.1", "x5.0", "x5.1"]


@pytest.mark.parametrize("hangs", [True, False], ids=["it-takes-long", "a-page-takes-long"])
async def test_what_cannot_be_read_in_time_is_recorded_as_it_is(hangs: bool) -> None:
    store = FaultyStore()
    seen = await of_a_person(store)
    if hangs:
        store.slow.add(KEY)
    else:
        store.fail(StoreTimeout("too slow"), "lines")
    late = replace(said("x4", "x1.1", *EDIT), planned_for=seen)
    patience = 0.01 if hangs else TIMEOUT
    assert await CommitSettler(store, Locks()).commit(KEY, late, patience) == "recorded"
    store.slow.clear()
    log = (await store.load(KEY, ASK)).log
    assert [entry.card.id for entry in log] == ["x1.1", "x3.0", "x3.1", "x4.0", "x4.1"]


async def test_none_waits_for_one_whose_commit_does_not_come_back() -> None:
    store = FaultyStore()
    seen = await of_a_person(store)
    settling, ahead = CommitSettler(store, Locks()), asyncio.Event()
    real = store.commit

    async def commit(key: SessionKey, commit: Commit) -> Outcome:
        if commit.exchange.id == "x4" and commit.planned_for != seen:
            ahead.set()
            await asyncio.Event().wait()
        return await real(key, commit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "commit", commit)
        late = [replace(said(id, "x1.1", *EDIT), planned_for=seen) for id in ("x4", "x5")]
        first = asyncio.create_task(settling.commit(KEY, late[0], 0.01))
        await ahead.wait()
        async with asyncio.timeout(TIMEOUT):
            assert await settling.commit(KEY, late[1], 0.01) == "recorded"
        first.cancel()


async def test_a_session_is_settled_by_one_at_a_time_over_whichever_connection() -> None:
    store, locks = FaultyStore(), Locks[SessionKey]()
    seen = await of_a_person(store)
    settling, held, both = asyncio.Event(), asyncio.Event(), asyncio.Event()
    commit_now, load_now, looks = store.commit, store.load, list[LoadOptions]()

    async def commit(key: SessionKey, commit: Commit) -> Outcome:
        if commit.exchange.id == "x4" and commit.planned_for != seen:
            settling.set()
            await held.wait()
        outcome = await commit_now(key, commit)
        if commit.exchange.id == "x5":
            both.set()
        return outcome

    async def load(key: SessionKey, options: LoadOptions) -> Snapshot:
        looks.append(options)
        return await load_now(key, options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "commit", commit)
        patch.setattr(store, "load", load)
        late = [replace(said(id, "x1.1", *EDIT), planned_for=seen) for id in ("x4", "x5")]
        first = asyncio.create_task(CommitSettler(store, locks).commit(KEY, late[0]))
        await settling.wait()
        second = asyncio.create_task(CommitSettler(store, locks).commit(KEY, late[1]))
        await both.wait()
        await asyncio.sleep(0)
        assert len(looks) == 1
        held.set()
        assert await first == await second == "recorded"
        assert len(looks) == 2
