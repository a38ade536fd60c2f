"""Random histories: every back end must say what the oracle says, at every step."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from msgspec.structs import replace

from proxy.memory.archive import Details, LogSize, Revision
from proxy.memory.erasure import Subject
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Amendment,
    Commit,
    Draft,
    Kind,
    LoadOptions,
    Position,
    SessionKey,
    State,
    Summary,
    WindowMove,
    Work,
    WorkRequest,
    exchange_of,
)
from proxy.stores.open import Backend, open_store
from tests.support.clock import Clock
from tests.support.oracle.store import InMemoryStore
from tests.support.store.archives import edited, take_out
from tests.support.store.commits import draft, record
from tests.support.waiting import PATIENCE

T = TypeVar("T")

EXCHANGES = [f"x{n}" for n in range(8)]
MESSAGES = st.builds(
    lambda exchange, index: f"{exchange}.{index}", st.sampled_from(EXCHANGES), st.integers(0, 4)
)
SOME_MESSAGES = st.lists(MESSAGES, max_size=4).map(tuple)
USERS = st.sampled_from([None, None, None, "kai", "eve"])
PROFILES = st.sampled_from(["default", "p"])
KEYS = st.sampled_from([None, None, "k1", "k2"])
TIMES = st.sampled_from([1000.0, 1000.5, 1001.0, 1000.0 + IDEMPOTENCY_SECONDS])
TTLS = st.sampled_from([0, 0, 10**8])
STATES: tuple[State, ...] = ("active", "superseded")
KINDS: st.SearchStrategy[Kind] = st.sampled_from(["summary", "learning"])
MOMENTS = st.integers(0, 6).map(float)
DUES = st.builds(
    WorkRequest,
    kind=KINDS,
    profile=PROFILES,
    due_at=MOMENTS,
    min_requests=st.integers(0, 3),
    due_if_fewer=MOMENTS,
)
SUMMARIES = st.builds(
    Summary,
    text=st.sampled_from(["short", "shorter"]),
    version=st.just(0),
    until=st.builds(Position, turn=st.integers(0, 12), seq=st.integers(0, 12)),
    seen=st.integers(0, 30),
)
LATE = 1e9
PICKS = st.lists(st.integers(0, 9), max_size=3)
DETAILS = st.builds(
    Details,
    title=st.sampled_from([None, "a title"]),
    metadata=st.sampled_from([b"{}", b'{"a":1}']),
    ttl=st.sampled_from([0, 10**8]),
    system=st.sampled_from([None, b"[1]"]),
    system_tokens=st.integers(0, 3),
)
MARKS = st.sampled_from([999.0, 1000.0, 1000.25, 1000.75, 1001.0])
SINCE = st.sampled_from([None, None, None, 1000.0, 1000.5])


@st.composite
def drafts(draw: st.DrawFn, exchange: str, first: int, most: int) -> tuple[Draft, ...]:
    def one(index: int) -> Draft:
        own = f"{exchange}.{index}"
        return draft(
            exchange,
            index,
            draw(st.sampled_from(["user", "assistant", "tool"])),
            turn=draw(st.one_of(st.just(own), st.just(f"{exchange}.{first}"), MESSAGES)),
            wire=draw(st.sampled_from([None, b"wire"])),
            state=draw(st.sampled_from(["active", "active", "superseded"])),
            tokens=draw(st.integers(0, 9)),
            choice=draw(st.integers(0, 1)),
        )

    return tuple(one(first + n) for n in range(draw(st.integers(0, most))))


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    id = draw(st.sampled_from(EXCHANGES))
    move = st.builds(WindowMove, profile=PROFILES, start=MESSAGES, may_move_back=st.booleans())
    return record(
        id,
        *draw(drafts(id, 0, 3)),
        at=draw(TIMES),
        profile=draw(PROFILES),
        started_at=draw(TIMES),
        user=draw(USERS),
        reserved=draw(st.integers(0, 2)),
        superseded=draw(SOME_MESSAGES),
        activated=draw(SOME_MESSAGES),
        system=draw(st.sampled_from([None, b"[1]", b"[2]"])),
        system_tokens=draw(st.integers(0, 3)),
        window=draw(st.none() | move),
        idempotency_key=draw(KEYS),
        ttl=draw(TTLS),
        work_requests=draw(st.lists(DUES, max_size=2).map(tuple)),
    )


@st.composite
def amendments(draw: st.DrawFn) -> Amendment:
    id = draw(st.sampled_from(EXCHANGES))
    usage = draw(st.sampled_from([None, b'{"a":1}', b'{"b":2}']))
    first = draw(st.integers(0, 4))
    return Amendment(exchange=id, usage=usage, drafts=draw(drafts(id, first, 2)))


ASKS = st.builds(
    LoadOptions,
    profile=PROFILES,
    whole=st.booleans(),
    max_messages=st.none() | st.integers(0, 6),
    max_tokens=st.none() | st.integers(0, 20),
    idempotency_key=KEYS,
    max_uncovered_tokens=st.none() | st.integers(0, 30),
)


class Comparison(RuleBasedStateMachine):
    """The back end at ``url`` beside its oracle; two sessions, one tenant of its own."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.clock = Clock(2000.0)
        self.tenant = uuid.uuid4().hex
        self.keys = [SessionKey(self.tenant, name) for name in ("a", "b")]
        self.runner = asyncio.Runner()
        self.store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=self.clock)
        self.oracle = InMemoryStore(self.clock)
        self.subjects = [Subject(self.tenant, session=key.session) for key in self.keys]
        if url.startswith("sqlite"):
            # Elsewhere a person's mark may be seen when the exchange is in: see the contract.
            self.subjects.append(Subject(self.tenant, "kai"))
        self.asks_again = url.startswith("redis+cluster")
        self.claims: list[tuple[Work, Work]] = []
        """The oracle's and the store's."""
        self.wait(self.store.open())

    def wait(self, work: Awaitable[T]) -> T:
        async def waiting() -> T:
            return await work

        return self.runner.run(waiting())

    def teardown(self) -> None:
        for key in self.keys:
            self.wait(self.store.delete(key))
        for subject in self.subjects:
            self.wait(self.store.unmark(subject))
        self.wait(self.store.close())
        self.runner.close()

    @initialize(n=st.integers(0, 1), some=st.lists(commits(), max_size=4))
    def begin(self, n: int, some: Sequence[Commit]) -> None:
        for commit in some:
            self.commit(n, commit)

    @rule(n=st.integers(0, 1), commit=commits())
    def commit(self, n: int, commit: Commit) -> None:
        key = self.keys[n]
        expected = self.wait(self.oracle.commit(key, commit))
        assert self.wait(self.store.commit(key, commit)) == expected
        # In a cluster work is asked for behind the commit, and again behind one that is there: the
        # first attempt may have been cut short between the two.
        for due in commit.work_requests if self.asks_again and expected == "duplicate" else ():
            self.wait(self.oracle.enqueue(key, due))
        self.compare(key)
        self.compare_work()

    @rule(n=st.integers(0, 1), amendment=amendments())
    def amend(self, n: int, amendment: Amendment) -> None:
        key = self.keys[n]
        edited = self.wait(self.oracle.amend(key, amendment))
        assert self.wait(self.store.amend(key, amendment)) == edited
        self.compare(key)

    @rule(n=st.integers(0, 1), options=ASKS)
    def look(self, n: int, options: LoadOptions) -> None:
        key = self.keys[n]
        expected = self.wait(self.oracle.load(key, options))
        seen = self.wait(self.store.load(key, options))
        assert seen == expected
        assert list(seen.bodies) == list(expected.bodies)

    @rule(id=st.sampled_from(EXCHANGES), ids=SOME_MESSAGES)
    def read(self, id: str, ids: tuple[str, ...]) -> None:
        key = self.keys[0]
        expected = self.wait(self.oracle.exchange(key, id))
        assert self.wait(self.store.exchange(key, id)) == expected
        assert self.wait(self.store.bodies(key, ids)) == self.wait(self.oracle.bodies(key, ids))
        assert self.wait(self.store.wires(key, ids)) == self.wait(self.oracle.wires(key, ids))

    @rule(now=st.sampled_from([2000.0, 1000.5 + IDEMPOTENCY_SECONDS]))
    def later(self, now: float) -> None:
        self.clock.now = max(self.clock.now, now)

    @rule(user=USERS, limit=st.integers(1, 3))
    def list(self, user: str | None, limit: int) -> None:
        expected = self.wait(self.oracle.sessions(self.tenant, user, None, limit))
        assert self.wait(self.store.sessions(self.tenant, user, None, limit)) == expected

    @rule(n=st.integers(0, 1))
    def delete(self, n: int) -> None:
        expected = self.wait(self.oracle.delete(self.keys[n]))
        assert self.wait(self.store.delete(self.keys[n])) == expected

    @rule(
        user=USERS,
        seqs=st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sets(st.integers(0, 30))),
    )
    def recall(self, user: str | None, seqs: dict[str, set[int]]) -> None:
        self.recall_as(user, seqs)

    def recall_as(self, user: str | None, seqs: dict[str, set[int]]) -> None:
        expected = self.wait(self.oracle.passages(self.tenant, user, seqs))
        assert self.wait(self.store.passages(self.tenant, user, seqs)) == expected

    @rule(
        n=st.integers(0, 1),
        summary=SUMMARIES,
        after=st.none() | st.integers(0, 3),
        changes=st.none() | st.integers(0, 2),
        since=SINCE,
        began=st.none() | TIMES,
    )
    def summarise(
        self,
        n: int,
        summary: Summary,
        after: int | None,
        changes: int | None,
        since: float | None,
        began: float | None,
    ) -> None:
        key = self.keys[n]
        known = self.wait(self.oracle.summaries(key))
        if after is None:
            after = known[0].version if known else 0
        put = (key, summary, after, changes, since, began)
        expected = self.wait(self.oracle.put_summary(*put))
        assert self.wait(self.store.put_summary(*put)) == expected
        self.compare(key)

    @rule(n=st.integers(0, 1), stall=st.booleans(), began=st.none() | TIMES)
    def unsummarise(self, n: int, stall: bool, began: float | None) -> None:
        key = self.keys[n]
        if stall:
            self.wait(self.oracle.mark_stalled(key, began))
            self.wait(self.store.mark_stalled(key, began))
        else:
            expected = self.wait(self.oracle.drop_summaries(key))
            assert self.wait(self.store.drop_summaries(key)) == expected
        self.compare(key)

    def of(self, n: int, picks: Sequence[int]) -> tuple[str, ...]:
        """Ids of messages that are there, by their number."""
        found = self.wait(self.oracle.lines(self.keys[n], 0, 100)).items
        return tuple(found[pick % len(found)].card.id for pick in picks if found)

    @rule(
        n=st.integers(0, 1),
        removed=PICKS,
        superseded=PICKS,
        activated=PICKS,
        unknown=SOME_MESSAGES,
        details=st.none() | DETAILS,
        was=st.sampled_from([None, None, True, False]),
        same=st.sampled_from([None, None, True, False]),
    )
    def revise(
        self,
        n: int,
        removed: Sequence[int],
        superseded: Sequence[int],
        activated: Sequence[int],
        unknown: tuple[str, ...],
        details: Details | None,
        was: bool | None,
        same: bool | None,
    ) -> None:
        session = self.wait(self.oracle.session(self.keys[n]))
        known = session.details if session else Details()
        size = session.log_size if session else LogSize(0, 0, 0)
        revision = Revision(
            removed=self.of(n, removed),
            superseded=(*self.of(n, superseded), *unknown[:1]),
            activated=(*unknown[1:], *self.of(n, activated)),
            details=details,
            expected_details=None
            if was is None
            else known
            if was
            else replace(known, title="never"),
            log_size=None if same is None else size if same else size._replace(tokens=1_000_000),
        )
        self.change(n, revision)

    @rule(
        n=st.integers(0, 1),
        picks=PICKS,
        tokens=st.integers(0, 9),
        choice=st.integers(0, 1),
        wire=st.sampled_from([None, b"new wire"]),
        knows=st.sampled_from([True, True, True, False]),
        removed=st.sampled_from([(), (), (0,), (1, 2)]),
    )
    def edit(
        self,
        n: int,
        picks: Sequence[int],
        tokens: int,
        choice: int,
        wire: bytes | None,
        knows: bool,
        removed: Sequence[int],
    ) -> None:
        changes = []
        for id in dict.fromkeys(self.of(n, picks)):
            line = self.wait(self.oracle.message(self.keys[n], id))
            was = (line.wire or line.body) if line and knows else b"something else"
            index = int(id.rpartition(".")[2])
            new = edited(
                exchange_of(id), index, replaced_wire=was, wire=wire, tokens=tokens, choice=choice
            )
            changes.append(new)
        self.change(n, Revision(edited=tuple(changes), removed=self.of(n, removed)))

    @rule(n=st.integers(0, 1), nth=st.integers(0, 3))
    def empty(self, n: int, nth: int) -> None:
        """Remove all messages of the nth newest exchange."""
        placed = self.wait(self.oracle.exchanges(self.keys[n], None, 10)).items
        if nth < len(placed):
            self.change(n, Revision(removed=placed[nth].messages))

    def change(self, n: int, revision: Revision) -> None:
        key = self.keys[n]
        expected = self.wait(self.oracle.revise(key, revision))
        assert self.wait(self.store.revise(key, revision)) == expected
        self.compare(key)

    @rule(
        source=st.integers(0, 1),
        n=st.integers(0, 1),
        first=st.booleans(),
        since=st.none() | MARKS,
    )
    def restore(self, source: int, n: int, first: bool, since: float | None) -> None:
        """As a fork, or, deleted ``first``, as an import does it."""
        key = self.keys[n]
        if self.wait(self.oracle.session(self.keys[source])) is None:
            return
        archived = self.wait(take_out(self.oracle, self.keys[source]))
        assert self.wait(take_out(self.store, self.keys[source])) == archived
        if first:
            self.delete(n)
        expected = self.wait(self.oracle.restore(key, archived, since))
        assert self.wait(self.store.restore(key, archived, since)) == expected
        self.compare(key)

    @rule(nth=st.integers(0, 2), until=st.none() | MARKS)
    def mark(self, nth: int, until: float | None) -> None:
        subject = self.subjects[nth % len(self.subjects)]
        for store in (self.oracle, self.store):
            self.wait(store.unmark(subject) if until is None else store.mark([subject], until))

    @rule(n=st.integers(0, 1), after=st.integers(0, 20), limit=st.integers(1, 5))
    def page(self, n: int, after: int, limit: int) -> None:
        key = self.keys[n]
        rows = self.wait(self.oracle.lines(key, after, limit))
        assert self.wait(self.store.lines(key, after, limit)) == rows
        # A page begins where one before it has ended: with an exchange.
        ends = [None, *(x.first for x in self.wait(self.oracle.exchanges(key, None, 100)).items)]
        before = ends[after % len(ends)]
        placed = self.wait(self.oracle.exchanges(key, before, limit))
        assert self.wait(self.store.exchanges(key, before, limit)) == placed

    @rule(n=st.integers(0, 1), due=DUES)
    def ask_for_work(self, n: int, due: WorkRequest) -> None:
        self.wait(self.oracle.enqueue(self.keys[n], due))
        self.wait(self.store.enqueue(self.keys[n], due))
        self.compare_work()

    @rule(n=st.integers(0, 1), kind=KINDS, now=MOMENTS, until=MOMENTS)
    def claim(self, n: int, kind: Kind, now: float, until: float) -> None:
        key = self.keys[n]
        work = Work(tenant=key.tenant, session=key.session, kind=kind, profile="", due=0.0)
        expected = self.wait(self.oracle.claim(work, now, now + until))
        seen = self.wait(self.store.claim(work, now, now + until))
        assert (seen is None) == (expected is None)
        if seen is not None and expected is not None:
            assert seen.lease and replace(seen, lease=expected.lease) == expected
            self.claims.append((expected, seen))
        self.compare_work()

    @rule(at=MOMENTS, nth=st.integers(0, 5), what=st.sampled_from(["extend", "finish", "put off"]))
    def settle(self, at: float, nth: int, what: str) -> None:
        for store, work in self.claim_of_each(nth):
            if what == "finish":
                self.wait(store.finish(work, at))
            elif what == "put off":
                self.wait(store.postpone(work, at, failed=nth % 2 == 0))
        if what == "extend":
            extended = [self.wait(s.extend(work, at)) for s, work in self.claim_of_each(nth)]
            assert len(set(extended)) < 2
        self.compare_work()

    def claim_of_each(self, nth: int) -> Sequence[tuple[Backend, Work]]:
        """The nth last claim, if there is one."""
        if nth >= len(self.claims):
            return ()
        return tuple(zip((self.oracle, self.store), self.claims[-1 - nth], strict=True))

    def compare_work(self) -> None:
        seen, expected = (
            {
                (work.session, work.kind): work
                for work in self.wait(store.waiting(LATE, 100_000))
                if work.tenant == self.tenant
            }
            for store in (self.store, self.oracle)
        )
        assert seen == expected

    def compare(self, key: SessionKey) -> None:
        self.look_at(key, LoadOptions(profile="default", whole=True))
        expected = self.wait(self.oracle.messages(key, STATES, 0, 100))
        assert self.wait(self.store.messages(key, STATES, 0, 100)) == expected
        assert self.wait(self.store.session(key)) == self.wait(self.oracle.session(key))
        rows = self.wait(self.oracle.lines(key, 0, 100))
        assert self.wait(self.store.lines(key, 0, 100)) == rows
        placed = self.wait(self.oracle.exchanges(key, None, 100))
        assert self.wait(self.store.exchanges(key, None, 100)) == placed
        kept = self.wait(self.oracle.summaries(key))
        assert list(self.wait(self.store.summaries(key))) == list(kept)

    def look_at(self, key: SessionKey, options: LoadOptions) -> None:
        assert self.wait(self.store.load(key, options)) == self.wait(self.oracle.load(key, options))


class SeveralProcesses(Comparison):
    """Two that take turns on the same store; each asks the same again and again."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.other = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=self.clock)
        self.wait(self.other.open())

    def teardown(self) -> None:
        self.wait(self.other.close())
        super().teardown()

    @rule()
    def turn(self) -> None:
        self.store, self.other = self.other, self.store

    @rule(seqs=st.dictionaries(st.sampled_from(["a", "b"]), st.sets(st.integers(0, 6))))
    def recall_again(self, seqs: dict[str, set[int]]) -> None:
        self.recall_as(None, seqs)
        self.recall_as(None, seqs)

    @rule(n=st.integers(0, 1))
    def look_again(self, n: int) -> None:
        self.look_at(self.keys[n], AGAIN)

    def compare(self, key: SessionKey) -> None:
        super().compare(key)
        self.look_at(key, AGAIN)
        self.recall_as(None, {each.session: set(range(8)) for each in self.keys})


AGAIN = LoadOptions(profile="default", max_messages=100)


@pytest.mark.timeout(900)  # a thousand steps, each awaited on a server
@pytest.mark.parametrize("url", ["sqlite", "redis", "redis-cluster"], indirect=True)
def test_a_back_end_does_what_the_oracle_does(url: str) -> None:
    class Machine(Comparison):
        def __init__(self) -> None:
            super().__init__(url)

    run(Machine)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("url", ["sqlite", "redis"], indirect=True)
def test_several_processes_see_what_each_has_written(url: str) -> None:
    class Machine(SeveralProcesses):
        def __init__(self) -> None:
            super().__init__(url)

    run(Machine)


def run(machine: type[Comparison]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
