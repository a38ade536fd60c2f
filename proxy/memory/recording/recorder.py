"""Loads sessions and records exchanges, also while the store fails.

A failure of memory is never a failure of the chat: if a load fails, the exchange has no memory; if
a commit fails, it goes to the spool and is replayed, in order, when the store is back.  While a
session has spooled exchanges, its commits go to the spool too and its loads overlay them, so that
the order is kept and every request sees the one before.
If the spool cannot take an exchange, the store is tried, unless it is known to be down.

A store is down if it does not answer a cheap request; then no request uses it for a moment.  A
session that fails because of its own size or state is paused alone.

Writes are tasks of the recorder, so that a client that disconnects does not cancel them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.limit import TimeLimit, read_within
from proxy.memory.model import Amendment, Commit, LoadOptions, Outcome, SessionKey, Snapshot
from proxy.memory.planner import LONG_LOG, PlannedRequest, is_sufficient, needs_whole_log
from proxy.memory.prompt.compose import PromptRules
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.amend import ExtendedAnswer
from proxy.memory.recording.availability import FailingSessions, Probe, session_hash
from proxy.memory.recording.backlog import Backlog, Tally
from proxy.memory.recording.commit import Deferred
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.replay import ReplayContext
from proxy.memory.recording.spool import SpoolEntry, SpoolError
from proxy.memory.store import StoreError, StoreTimeout

logger = logging.getLogger(__name__)

T = TypeVar("T")

CommitResult = Literal["spooled", "lost"] | Outcome
"""The result of a commit; with the first two the exchange is not in the store (yet)."""

PROBE_SHARE = 0.25
"""Share of the load timeout after which the store is checked with a cheap request."""

PLANNING = 10.0
"""The timeout of planning in seconds; only very long conversations need more than milliseconds."""

NEAR_MESSAGES = 8
"""The newest messages, which are searched first for an answer that a client continues."""

ANSWERS_PER_READ = 64
"""Answers whose bodies are read at once while searching for one."""

MAX_ANSWERS_READ = 2048
"""The most answers whose bodies are read while searching for one."""

LARGE_COMMIT = 1000
"""Messages of a commit above which it delays other writes: such commits are made one at a time, and
a timeout of one does not pause the store."""

REPLAY_EVERY = 0.25
"""Seconds between checks of the spool."""

REVIEW_EVERY = 600.0
"""Seconds between reviews of the quarantined entries."""


class PreparedRequest(msgspec.Struct, frozen=True, gc=False):
    """The session and the plan for a request.

    ``will_spool``: as far as known, its exchange will go to the spool.
    """

    planned: PlannedRequest
    will_spool: bool

    @property
    def snapshot(self) -> Snapshot:
        return self.planned.snapshot


class Recorder:
    """Handles all failures of the store; see the module."""

    def __init__(
        self,
        live: ReplayContext,
        backlog: Backlog,
        listeners: Listeners,
        load_timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._planner, self._settling = live.store, live.planner, live.settling
        self._backlog, self._pauses, self._listeners = backlog, backlog.pauses, listeners
        self._probe = Probe(
            self._store.peek, self._store.server_of, load_timeout * (1 - PROBE_SHARE)
        )
        self._failing, self._incomplete = FailingSessions(clock), FailingSessions(clock)
        self._load_timeout, self._clock = load_timeout, clock
        self._reviewed = -REVIEW_EVERY
        self._tasks: set[asyncio.Task[Any]] = set()
        self._one_large = asyncio.Lock()

    @property
    def tally(self) -> Tally:
        return self._backlog.tally

    @property
    def is_losing(self) -> bool:
        """Whether an exchange was lost recently, as neither store nor spool took it."""
        return self._backlog.has_lost_recently

    @property
    def failing_sessions(self) -> int:
        """The number of sessions that lately could not be loaded whole or replayed in time."""
        return len(self._failing) + len(self._incomplete) + self._backlog.slow

    def __repr__(self) -> str:
        return f"<Recorder [writing: {len(self._tasks)}, {self.tally}]>"

    async def open(self) -> None:
        """Open the spool and begin to replay it.

        A spool that cannot be opened is retried; meanwhile readiness reports it, and each lost
        exchange is counted.
        """
        try:
            for store, count in (await self._backlog.open()).items():
                text = "entries in the spool that wait for another store, %s: %d"
                logger.warning(text, store, count)
        except SpoolError as failure:
            text = "what the store does not take is lost until spool.path can be written: %s"
            logger.error(text, failure)
        self._start_task(self._replay_for_ever(), "spool replay")

    async def close(self, timeout: float) -> None:
        """Finish what is being written and flush the spool, within ``timeout`` seconds."""
        replayer = [task for task in self._tasks if task.get_name() == "spool replay"]
        for task in replayer:
            task.cancel()
        await asyncio.gather(*replayer, return_exceptions=True)
        try:
            async with asyncio.timeout(timeout):
                await self._wait_for_writes()
                await self.replay()
        except (TimeoutError, StoreError, SpoolError):
            pass  # what is left stays in the spool, and is replayed at the next start
        for task in self._tasks:
            task.cancel()  # it goes to the spool instead
        await self._wait_for_writes()
        await self._backlog.close()

    async def _wait_for_writes(self) -> None:
        """Wait for all writes; cancelling this cancels none of them."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    # Loading

    async def load_answers_until(
        self, key: SessionKey, enough: Callable[[Snapshot], bool]
    ) -> Snapshot:
        """The newest messages if they are ``enough``, else the whole log, with the bodies of its
        answers, the newest first, until they are ``enough``.

        Within the load timeout.  Raises StoreError.
        """
        if self._pauses.load_failure(key) or self._failing.pause_cause(key):
            raise StoreError("the store is left alone for a moment")
        try:
            async with TimeLimit(self._load_timeout):
                if not self._backlog.has_waiting(key):
                    near = await self._store.load(key, LoadOptions("", max_messages=NEAR_MESSAGES))
                    if enough(near):
                        return near
                return await self._load_answers(key, enough)
        except TimeoutError:
            raise await self._diagnose(key, StoreTimeout("no answer in time")) from None

    async def wires(self, key: SessionKey, ids: Collection[str]) -> Mapping[str, bytes]:
        """The original JSON by message id, where it differs from the body that requests carry;
        spooled messages are not included.  Within the load timeout.  Raises StoreError."""
        if failure := self._pauses.load_failure(key):
            raise failure
        return await read_within(self._store.wires(key, ids), self._load_timeout)

    async def load_attempt(self, key: SessionKey, idempotency_key: str) -> Snapshot:
        """The whole log, with the exchange recorded under this key.  Raises StoreError."""
        options = LoadOptions("", whole=True, max_messages=0, idempotency_key=idempotency_key)
        return await read_within(self._store.load(key, options), self._load_timeout)

    async def _load_answers(self, key: SessionKey, enough: Callable[[Snapshot], bool]) -> Snapshot:
        options = LoadOptions("", whole=True, max_messages=0)
        snapshot, entries = await self._backlog.load(key, options)
        snapshot = await self._backlog.with_waiting(key, snapshot, entries, options)
        answers = [e.card.id for e in reversed(snapshot.log) if e.card.role == "assistant"]
        for at in range(0, min(len(answers), MAX_ANSWERS_READ), ANSWERS_PER_READ):
            if enough(snapshot):
                break
            ids = [id for id in answers[at : at + ANSWERS_PER_READ] if id not in snapshot.bodies]
            more = await self._store.bodies(key, ids) if ids else {}
            snapshot = replace(snapshot, bodies={**snapshot.bodies, **more})
        return snapshot

    async def prepare(
        self,
        key: SessionKey,
        options: LoadOptions,
        m: Sequence[ChatMessage],
        intent: Intent,
        rules: PromptRules,
    ) -> PreparedRequest:
        """Load, within the load timeout, and plan.  Raises StoreError: the chat goes on without."""
        if failure := self._pauses.load_failure(key) or self._failing.pause_cause(key):
            raise failure
        waiting = self._backlog.has_waiting(key)
        began: list[asyncio.Task[bool]] = []
        asked = asyncio.get_running_loop().call_later(
            self._load_timeout * PROBE_SHARE, lambda: began.append(self._probe.begin(key))
        )
        try:
            planned = await self._planned(key, options, m, intent, rules, waiting)
        except StoreError as error:
            raise await self._diagnose(key, error, *began) from None
        except Exception as error:  # the boundary to what a store has: the chat goes on
            failure = StoreError("what the store has of the session cannot be used")
            failure.__cause__ = error
            raise await self._diagnose(key, failure, *began) from error
        finally:
            asked.cancel()
        self._failing.mark_recovered(key)
        if planned.snapshot.missing_messages:
            self._note_damage(key, planned.snapshot.missing_messages)
        will_spool = waiting or self._pauses.commits_paused(key)
        return PreparedRequest(planned, will_spool)

    async def _planned(
        self,
        key: SessionKey,
        options: LoadOptions,
        m: Sequence[ChatMessage],
        intent: Intent,
        rules: PromptRules,
        waiting: bool,
    ) -> PlannedRequest:
        entries: list[SpoolEntry] = []
        if waiting:
            options = replace(options, whole=True)
            loading = self._backlog.load(key, options)
            snapshot, entries = await read_within(loading, self._load_timeout)
        else:
            near = self._load_sufficient(key, options, m, intent)
            snapshot = await read_within(near, self._load_timeout)
        if not entries and len(snapshot.log) + len(m) <= LONG_LOG:  # needs no thread
            return await self._planner.plan(key, snapshot, m, intent, rules)
        try:
            async with asyncio.timeout(PLANNING):
                snapshot = await self._backlog.with_waiting(key, snapshot, entries, options)
                return await self._planner.plan(key, snapshot, m, intent, rules)
        except TimeoutError as error:
            raise StoreTimeout(f"planning took longer than {PLANNING:g} s") from error

    async def _load_sufficient(
        self, key: SessionKey, options: LoadOptions, m: Sequence[ChatMessage], intent: Intent
    ) -> Snapshot:
        if needs_whole_log(m, intent):
            options = replace(options, whole=True)
        snapshot = await self._store.load(key, options)
        if not is_sufficient(snapshot, m, intent):
            snapshot = await self._store.load(key, replace(options, whole=True))
        return snapshot

    async def _diagnose(
        self, key: SessionKey, failure: StoreError, began: asyncio.Task[bool] | None = None
    ) -> StoreError:
        """Pause the session or its part of the store, whichever failed; returns the failure."""
        if not await self._probe.answers(key, began):
            logger.warning("memory is not available: %s", failure)
            self._pauses.pause_all(key, failure)
            return failure
        cause = None if isinstance(failure, StoreTimeout) else failure.__cause__
        text = "the memory of session %s is not available: %s"
        logger.warning(text, session_hash(key), failure, exc_info=cause)
        self._failing.mark_failed(key, failure)
        self._listeners.on_session_failure()
        return failure

    def _note_damage(self, key: SessionKey, lost: int) -> None:
        """Log, once in a while, that ``lost`` messages of a session are missing in the store."""
        if self._incomplete.pause_cause(key) is None:
            logger.warning(
                "%d messages of session %s are gone from the store", lost, session_hash(key)
            )
            self._incomplete.mark_failed(key, StoreError(f"{lost} messages are gone"))
            self._listeners.on_session_failure()

    # Recording

    def is_spooling(self, key: SessionKey) -> bool:
        """Whether an exchange of this session would go to the spool now."""
        return self._pauses.commits_paused(key) or self._backlog.has_waiting(key)

    async def record(self, key: SessionKey, commit: Commit) -> CommitResult:
        """Put an exchange into history, or into the spool.  Does not raise; cannot be cancelled."""
        return await asyncio.shield(self._start_task(self._record(key, commit), "commit"))

    async def defer(self, key: SessionKey, deferred: Deferred) -> CommitResult:
        """Spool an exchange that found no snapshot.  Does not raise; cannot be cancelled."""
        exchange = deferred.meta.exchange.id
        spooled = self._backlog.put(key, exchange, "deferred", deferred)
        return await asyncio.shield(self._start_task(spooled, "commit"))

    async def amend(self, key: SessionKey, amendment: Amendment) -> CommitResult:
        """Add to an exchange.  Does not raise; cannot be cancelled."""
        return await asyncio.shield(self._start_task(self._amend(key, amendment), "amendment"))

    async def defer_extended_answer(self, key: SessionKey, more: ExtendedAnswer) -> CommitResult:
        """Spool the final answer of a deferred exchange.  Does not raise; cannot be cancelled."""
        spooled = self._backlog.put(key, more.exchange.id, "more", more)
        return await asyncio.shield(self._start_task(spooled, "amendment"))

    async def _record(self, key: SessionKey, commit: Commit) -> CommitResult:
        large = len(commit.drafts) > LARGE_COMMIT
        work = partial(self._commit_large if large else self._settling.commit, key, commit)
        outcome = await self._write_now(key, work, large=large)
        if outcome == "recorded":
            self._listeners.on_recorded(key)
            self._listeners.on_due(commit.work_requests)
        if outcome is None:
            return await self._backlog.put(key, commit.exchange.id, "commit", commit)
        return outcome

    async def _commit_large(self, key: SessionKey, commit: Commit) -> Outcome:
        async with self._one_large:
            return await self._settling.commit(key, commit)

    async def _amend(self, key: SessionKey, amendment: Amendment) -> CommitResult:
        async def amended() -> CommitResult:
            seq = await self._store.amend(key, amendment)
            if seq is not None:
                self._listeners.on_edited(key, (seq,))
            return "recorded"

        outcome = await self._write_now(key, amended)
        return outcome or await self._backlog.put(key, amendment.exchange, "amendment", amendment)

    async def _write_now(
        self, key: SessionKey, write: Callable[[], Awaitable[CommitResult]], *, large: bool = False
    ) -> CommitResult | None:
        """Write to the store, unless it is known to fail or earlier writes of the session wait."""
        if self.is_spooling(key):
            return None
        try:
            return await write()
        except StoreError as failure:
            logger.warning("an exchange goes to the spool: %s", failure)
            if isinstance(failure, StoreTimeout) and not large:
                self._pauses.pause_commits(key)
        except asyncio.CancelledError:
            logger.warning("an exchange goes to the spool: there is no more time for the store")
        except Exception:  # the boundary to the store: whatever is wrong with it, the chat goes on
            logger.exception("an exchange goes to the spool")
        return None

    def _start_task(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Replay

    async def _replay_for_ever(self) -> None:
        while True:
            with suppress(StoreError, SpoolError):  # still down: the entries stay where they are
                await self._backlog.reopen()
                await self.replay()
                await self._review()
            await asyncio.sleep(REPLAY_EVERY)

    async def _review(self) -> None:
        now = self._clock()
        if now - self._reviewed >= REVIEW_EVERY:
            await self._backlog.review()
            self._reviewed = now

    async def replay(self) -> None:
        """Replay the whole spool, in order.  Raises StoreError if the store is down."""
        before = self.tally.replayed
        while await self._backlog.replay():
            pass
        if self.tally.replayed > before:
            fields = {"exchanges": self.tally.replayed - before}
            logger.info("the store has all that waited in the spool", extra={"fields": fields})
