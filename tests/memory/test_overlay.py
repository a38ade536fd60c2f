"""An overlay shows what the store will show once the commit has been carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.memory.model import (
    Commit,
    Draft,
    Entry,
    LoadOptions,
    Position,
    SessionKey,
    Snapshot,
    Summary,
    WindowMove,
    message_id,
)
from proxy.memory.prompt.window import visible_entries
from proxy.memory.recording.overlay import overlay
from tests.support.oracle.store import InMemoryStore
from tests.support.store.commits import chat, draft, record

KEY = SessionKey("tenant", "session")
PROFILE = "default"
ALL = LoadOptions(profile=PROFILE, whole=True, idempotency_key="again")


@dataclass(frozen=True)
class View:
    """A snapshot without the numbers that only a store can give."""

    facts: tuple[Any, ...]
    log: list[str]
    turns: list[int]
    shown: list[str]
    alternates: Mapping[str, set[str]]


def seen(snapshot: Snapshot) -> View:
    facts = (
        (snapshot.exists, snapshot.owner, snapshot.system, snapshot.system_tokens)
        + (snapshot.last, snapshot.attempt)
        + (snapshot.messages, snapshot.tokens)
        + (snapshot.summary, snapshot.changes)
    )
    firsts = list(dict.fromkeys(entry.position.turn for entry in snapshot.log))
    shown = visible_entries(snapshot.log, snapshot.start) if snapshot.start else ()
    return View(
        facts=facts,
        log=ids(snapshot.log),
        turns=[firsts.index(entry.position.turn) for entry in snapshot.log],
        shown=ids(shown),
        alternates={x: set(ids(group)) for x, group in snapshot.alternates.items()},
    )


def ids(entries: Any) -> list[str]:
    return [entry.card.id for entry in entries]


def loaded(*commits: Commit, summary: Summary | None = None, after: int = 0) -> Snapshot:
    """What the store shows after these commits, of which the first ``after`` are summarised."""

    async def run() -> Snapshot:
        store = InMemoryStore(lambda: 1000.0)
        for number, commit in enumerate(commits, 1):
            await store.commit(KEY, commit)
            if summary is not None and number == after:
                await store.put_summary(KEY, summary, 0, None)
        return await store.load(KEY, ALL)

    return asyncio.run(run())


def laid_over(*commits: Commit, on: Snapshot) -> Snapshot:
    for commit in commits:
        on = overlay(on, commit, ALL)
    return on


Draw = Callable[[st.SearchStrategy[Any]], Any]


def _drafts(draw: Draw, exchange: str, log: tuple[Entry, ...]) -> tuple[Draft, ...]:
    """Messages of the request and, mostly, choices of a reply, in an old or a new turn."""
    joins = draw(st.sampled_from([message_id(exchange, 0), *ids(log)]))
    asked = [draft(exchange, n, turn=joins) for n in range(draw(st.integers(0, 2)))]
    choices = draw(st.integers(0, 3))
    turn = joins if asked or joins in ids(log) else message_id(exchange, 0)
    replies = [
        draft(
            exchange,
            len(asked) + n,
            "assistant",
            turn=turn,
            choice=n,
            state="superseded" if n else "active",
        )
        for n in range(choices)
    ]
    return (*asked, *replies)


def _commit(draw: Draw, number: int, now: Snapshot) -> Commit:
    """A commit as a planner could make it that sees ``now``."""
    exchange = f"x{number}"
    idle = [e.card.id for group in now.alternates.values() for e in group]
    active = ids(now.log)
    gone = set(draw(st.sets(st.sampled_from(active)) if active else st.just(set())))
    again = draw(st.booleans())
    if again and now.attempt is not None:
        gone |= {e.card.id for e in now.log if e.card.exchange == now.attempt.id}
    back = draw(st.sets(st.sampled_from(idle), max_size=1)) if idle else set()
    log = tuple(e for e in now.log if e.card.id not in gone)
    drafts = _drafts(draw, exchange, log)
    starts = [*ids(log), *(d.card.id for d in drafts)]
    move = draw(st.sampled_from([None, *starts]))
    system = draw(st.sampled_from([None, b'["one"]', b'["two"]']))
    made = record(
        exchange,
        *drafts,
        at=1000.0 - number / 1000,
        started_at=float(number),
        user=draw(st.sampled_from([None, "kai", "kai", "eve"])),
        superseded=tuple(sorted(gone)),
        activated=tuple(sorted(back - gone)),
        system=system,
        system_tokens=4 if system else 0,
        window=WindowMove(profile=PROFILE, start=move, may_move_back=draw(st.booleans()))
        if move
        else None,
        idempotency_key="again" if again else None,
    )
    return sized(made)


def sized(commit: Commit) -> Commit:
    exchange = msgspec.structs.replace(commit.exchange, size=len(commit.drafts))
    return msgspec.structs.replace(commit, exchange=exchange)


@st.composite
def histories(draw: Draw) -> list[Commit]:
    commits: list[Commit] = []
    for number in range(draw(st.integers(1, 6))):
        commits.append(_commit(draw, number, loaded(*commits)))
    return commits


@st.composite
def summaries(draw: Draw, now: Snapshot) -> Summary:
    """A summary as far as some message that is seen, or beyond all of them."""
    places = [entry.position for entry in now.log]
    until = draw(st.sampled_from([*places, Position(now.end.turn, now.end.seq + 1)]))
    seen = draw(st.sampled_from([*(place.seq for place in places), now.end.seq]))
    return Summary(text="short", version=1, until=until, seen=seen)


@settings(max_examples=60, deadline=None)
@given(commits=histories(), data=st.data())
def test_an_overlay_shows_what_the_store_will_show(commits: list[Commit], data: Any) -> None:
    already = data.draw(st.integers(0, len(commits)), label="carried out")
    summary = data.draw(st.none() | summaries(loaded(*commits[:already])), label="summary")
    stored = loaded(*commits[:already], summary=summary, after=already)
    overlaid = laid_over(*commits[already:], on=stored)
    truth = loaded(*commits, summary=summary, after=already)
    assert seen(overlaid) == seen(truth)
    there = {draft.card.id for commit in commits[:already] for draft in commit.drafts}
    for id, body in truth.bodies.items():  # what was idle can be fetched, what is spooled cannot
        assert overlaid.bodies.get(id, body if id in there else b"") == body


@settings(max_examples=60, deadline=None)
@given(commits=histories())
def test_laying_over_what_the_store_has_changes_nothing(commits: list[Commit]) -> None:
    truth = loaded(*commits)
    assert laid_over(commits[-1], on=truth) == truth


def test_new_messages_come_behind_all_that_is_seen_idle_ones_included() -> None:
    choices = (draft("x1", 1, "assistant"), draft("x1", 2, "assistant", choice=1))
    first = record("x1", draft("x1", 0), choices[0], draft_idle(choices[1]))
    snapshot = loaded(first)
    later = laid_over(chat("x2"), on=snapshot)
    places = [e.position.seq for e in later.log]
    idle = [e.position.seq for group in later.alternates.values() for e in group]
    assert len({*places, *idle}) == len(places) + len(idle)
    assert max(idle) < places[-2]


def three_turns(*later: Commit) -> Snapshot:
    """Three turns of two messages, of which the first was summarised; then what is later."""
    summary = Summary(text="short", version=1, until=Position(3, 3), seen=6)
    return loaded(chat("x1"), chat("x2"), chat("x3"), *later, summary=summary, after=3)


def test_a_summary_goes_with_what_it_covers() -> None:
    stored = three_turns()
    kept = laid_over(chat("x4", superseded=("x2.0", "x2.1")), on=stored)
    assert kept.summary == stored.summary is not None and kept.changes == 2
    gone = laid_over(chat("x5", superseded=("x1.1", "x2.0")), on=kept)
    assert gone.summary is None and gone.changes == 3


def test_what_joins_a_summarised_turn_is_not_covered() -> None:
    """Not even where the summary has seen more messages than are in sight."""
    stored = three_turns(record("x4", superseded=("x3.0", "x3.1")))
    overlaid = laid_over(record("x5", draft("x5", 0, "tool", turn="x1.0")), on=stored)
    assert overlaid.summary is not None
    joined = next(entry for entry in overlaid.log if entry.card.id == "x5.0")
    assert joined.position.turn == 1 and not overlaid.summary.covers(joined.position)


def draft_idle(given: Draft) -> Draft:
    return Draft(card=given.card, turn=given.turn, body=given.body, state="superseded")


def test_another_user_s_commit_is_not_shown() -> None:
    snapshot = loaded(chat("x1", user="kai"))
    assert laid_over(chat("x2", user="eve"), on=snapshot) == snapshot


def test_a_commit_that_the_store_would_refuse_by_its_key_is_not_shown() -> None:
    first = chat("x1", started_at=5.0, idempotency_key="again")
    outrun = chat("x0", started_at=1.0, idempotency_key="again")
    assert laid_over(outrun, on=loaded(first)) == loaded(first)
    followed = loaded(first, chat("x2"))
    stale = chat("x3", started_at=9.0, idempotency_key="again")
    assert laid_over(stale, on=followed) == followed
