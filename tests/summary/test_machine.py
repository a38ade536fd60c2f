"""Random sessions and failures anywhere: a summary tells exactly what it covers, each part once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from proxy.background.completion import CompletionError, Failed, NoCredential, Refused
from proxy.memory.model import LOG_START, Draft, Entry, SessionKey, Summary, WindowMove
from proxy.memory.reconciliation.match import open_calls
from proxy.memory.store import StoreError
from tests.support.clock import Clock
from tests.support.oracle.store import InMemoryStore
from tests.support.store.commits import draft, record
from tests.support.talk.summarising import PROFILE, Narrator, Workshop, covered, markers

T = TypeVar("T")

Disturbance = Callable[[], Awaitable[None]]

TROUBLES: list[type[BaseException]] = [
    StoreError,
    Failed,
    Refused,
    NoCredential,
    asyncio.CancelledError,
]
STORE = ("load", "bodies", "put_summary", "mark_stalled")
TOKENS = 40
"""Of each message: two turns make a batch."""


class Road:
    """Counts the steps of a run; at one of them something happens, before or after it."""

    def __init__(self, at: int, after: bool, happens: Disturbance) -> None:
        self._left, self._after, self._happens = at, after, happens

    async def step(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self._left -= 1
        if self._left == 0 and not self._after:
            await self._happens()
        result = await call()
        if self._left == 0 and self._after:
            await self._happens()
        return result


class BumpyStore:
    """A store as far as a summarizer uses it, on a road."""

    def __init__(self, store: InMemoryStore, road: Road) -> None:
        self._store, self._road = store, road

    def __getattr__(self, name: str) -> Any:
        assert name in STORE
        method = getattr(self._store, name)
        return lambda *given: self._road.step(lambda: method(*given))


class BumpyNarrator(Narrator):
    road: Road | None = None

    async def complete(self, assignment: Any) -> Any:
        asked = super().complete
        if self.road is None:
            return await asked(assignment)
        return await self.road.step(lambda: asked(assignment))


class Session(RuleBasedStateMachine):
    messages = Bundle("messages")

    @initialize(mode=st.sampled_from(["summary_buffer", "summary"]))
    def begin(self, mode: str) -> None:
        self.runner = asyncio.Runner()
        self.store, self.exchanges, self.road = InMemoryStore(), 0, None
        key = SessionKey("tenant", "session")
        self.shop = Workshop(self.store, key, Clock(), max_input_tokens=200, mode=mode)
        self.narrator = BumpyNarrator()
        self.shop.narrator = self.narrator
        self.summarizer = self.shop.another()

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def next(self) -> str:
        self.exchanges += 1
        return f"x{self.exchanges}"

    def log(self) -> list[Entry]:
        return list(self.wait(self.shop.look()).log)

    def put(self, *drafts: Draft, **fields: Any) -> None:
        self.wait(self.shop.commit(record(drafts[0].card.exchange, *drafts, **fields)))

    # What happens to the session

    @rule(target=messages, turns=st.integers(1, 4), calls=st.booleans())
    def talk(self, turns: int, calls: bool) -> str:
        for _ in range(turns):
            id = self.next()
            made = (f"c{id}",) if calls else ()
            answer = draft(id, 1, "assistant", calls=made, tokens=TOKENS)
            spare = draft(id, 2, "assistant", state="superseded", choice=1, tokens=TOKENS)
            self.put(draft(id, 0, tokens=TOKENS), answer, spare)
        return id

    @rule(which=st.lists(messages, min_size=1, max_size=6), final=st.booleans())
    def answer_late(self, which: list[str], final: bool) -> None:
        for one in which:
            id, turn = self.next(), f"{one}.0"
            result = draft(id, 0, "tool", turn=turn, answers=f"c{one}", tokens=TOKENS)
            answer = draft(id, 1, "assistant", turn=turn, tokens=TOKENS)
            self.put(result, *([answer] if final else []))

    @rule(count=st.integers(1, 5))
    def rewind(self, count: int) -> None:
        turns = sorted({entry.position.turn for entry in self.log()})[-count:]
        gone = tuple(e.card.id for e in self.log() if e.position.turn in turns)
        self.put(draft(self.next(), 0, tokens=TOKENS), superseded=gone)

    @rule(which=messages)
    def choose_another(self, which: str) -> None:
        id = self.next()
        switched: dict[str, Any] = {"superseded": (f"{which}.1",), "activated": (f"{which}.2",)}
        self.put(draft(id, 0, tokens=TOKENS), **switched)

    @rule(share=st.floats(0, 1), anew=st.booleans())
    def move_window(self, share: float, anew: bool) -> None:
        log = self.log()
        if log:
            start = log[int(share * (len(log) - 1))].card.id
            move = WindowMove(profile=PROFILE, start=start, may_move_back=anew)
            self.put(draft(self.next(), 0, tokens=TOKENS), window=move)

    @rule()
    def edit(self) -> None:
        snapshot = self.wait(self.shop.look())
        summary = snapshot.summary or Summary(text="Once", version=0)
        edited = replace(summary, text=f"{summary.text} indeed", edited=True)
        put = self.store.put_summary(self.shop.key, edited, summary.version, None)
        assert self.wait(put) == snapshot.exists

    @rule()
    def forget(self) -> None:
        self.wait(self.store.drop_summaries(self.shop.key))

    # What the summarizer does

    @rule()
    def summarise(self) -> None:
        """Undisturbed it covers all that it should."""
        self.narrator.road = None
        given_up = self.wait(self.shop.look()).stalled
        assert self.wait(self.shop.run(self.summarizer)) is None
        if not given_up:
            self.nothing_is_left()

    @rule(at=st.integers(1, 8), after=st.booleans(), trouble=st.sampled_from(TROUBLES))
    def fail(self, at: int, after: bool, trouble: type[BaseException]) -> None:
        async def happens() -> None:
            raise trouble("trouble")

        self.disturbed(Road(at, after, happens))

    @rule(at=st.integers(2, 8), after=st.booleans(), share=st.floats(0, 1))
    def lose_a_turn_meanwhile(self, at: int, after: bool, share: float) -> None:
        turns = sorted({entry.position.turn for entry in self.log()})
        if not turns:
            return
        turn = turns[int(share * (len(turns) - 1))]
        gone = tuple(e.card.id for e in self.log() if e.position.turn == turn)
        id = self.next()
        commit = record(id, draft(id, 0, tokens=TOKENS), superseded=gone)
        self.disturbed(Road(at, after, lambda: self.shop.commit(commit)))

    @rule(at=st.integers(2, 8), after=st.booleans())
    def go_on_meanwhile(self, at: int, after: bool) -> None:
        id = self.next()
        move = WindowMove(profile=PROFILE, start=f"{id}.0")
        pair = draft(id, 0, tokens=TOKENS), draft(id, 1, "assistant", tokens=TOKENS)
        commit = record(id, *pair, window=move)
        self.disturbed(Road(at, after, lambda: self.shop.commit(commit)))

    @rule(at=st.integers(1, 6))
    def race(self, at: int) -> None:
        async def other() -> None:
            self.narrator.road = None
            await self.shop.run(self.shop.another())

        self.disturbed(Road(at, after=False, happens=other))

    @rule()
    def give_nonsense(self) -> None:
        self.narrator.answers += ["I'm sorry, I can't do that.", "Human: hello"]
        self.wait(self.shop.run(self.summarizer))
        self.narrator.answers.clear()

    def disturbed(self, road: Road) -> None:
        self.narrator.road = road
        summarizer = self.shop.another(BumpyStore(self.store, road))
        with suppress(CompletionError, StoreError, asyncio.CancelledError):
            self.wait(self.shop.run(summarizer))
        self.narrator.road = None

    # What always holds

    @invariant()
    def the_summary_tells_what_it_covers(self) -> None:
        if not hasattr(self, "shop"):
            return
        snapshot = self.wait(self.shop.look())
        if snapshot.summary is None:
            return
        told, hidden = markers(snapshot.summary.text), [e.card.id for e in covered(snapshot)]
        assert sorted(told) == sorted(hidden)
        seqs = [entry.position.seq for entry in covered(snapshot)]
        assert snapshot.summary.covers_until == max(seqs, default=0)

    def nothing_is_left(self) -> None:
        """Whole turns that have left, and no others, are covered."""
        snapshot = self.wait(self.shop.look())
        hidden = {entry.card.id for entry in covered(snapshot)}
        waits = {entry.position.turn for entry in open_calls(snapshot.log).values()}
        bound = self.first_that_stays(snapshot.log, waits, snapshot.start)
        summary = snapshot.summary
        until = summary.until if summary else LOG_START
        left = [e for e in snapshot.log if e.card.id not in hidden and e.position.turn < bound]
        stays = [e for e in snapshot.log if e.position.turn >= bound and e.position < until]
        late = [e.position.seq for e in stays if e.card.id not in hidden]
        assert not [e for e in left if e.position.seq < min(late, default=2**53)]
        assert not late or all(e.position < until for e in left)

    def first_that_stays(self, log: Any, waits: set[int], start: Any) -> int:
        if not log:
            return 0
        turns = sorted({entry.position.turn for entry in log})
        if self.shop.profiles[PROFILE].summary.mode == "summary":
            newest = {e.position.turn: e.card.role for e in log}
            complete = [t for t in turns if newest[t] == "assistant" and t not in waits]
            return (complete[-1] if complete else 0) + 1
        evicted = start.turn if start else 0
        return min(evicted, turns[-1]) if turns[-1] in waits else evicted


def test_a_summary_tells_exactly_what_it_covers() -> None:
    run_state_machine_as_test(
        Session,
        settings=settings(
            max_examples=100,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
