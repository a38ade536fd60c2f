"""The summary job: folds waiting turns into a session's summary, batch by batch.

Each batch is stored at once, so that nothing is lost when the process ends; and only if nothing
that it covers has changed meanwhile, else it is read and written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from proxy.background.completion import Completer, CompletionError, Denied, Refused, retry_denied
from proxy.memory.model import LoadOptions, SessionKey, Snapshot, Summary, Work
from proxy.memory.prompt.window import Window
from proxy.memory.store import Memory, Summaries
from proxy.settings import ProfileSettings
from proxy.settings.learned import SummarySettings
from proxy.summary.attempts import FailedTurns, RebuildDrafts, UnstoredSummaries
from proxy.summary.lines import Count, Decode, TranscriptLine, lines_of, with_day_lines
from proxy.summary.uncovered_turns import (
    SummaryBatch,
    Turn,
    after_eviction,
    covered_by,
    extended_to,
    first_batch,
    is_due,
    newest_seen,
    take_tokens,
    take_up_to,
    waiting_turns,
)
from proxy.summary.writer import SummaryRequest, Writer

CONFLICTS = 3
"""How often a session is read again because it changed while the model wrote."""

RETRY_AFTER_CONFLICTS = 10.0
"""Seconds until the next run for a session that kept changing."""

Step = Literal["done", "conflict", "nothing"]


class Sessions(Memory, Summaries, Protocol):
    """A store, as far as summaries need it."""


class _SessionView(msgspec.Struct, frozen=True):
    """A session as it was loaded at ``since`` (Unix seconds) or later, and its waiting turns."""

    since: float
    key: SessionKey
    options: LoadOptions
    snapshot: Snapshot
    waiting: Sequence[Turn]

    @property
    def base(self) -> Summary | None:
        return self.snapshot.summary

    @property
    def version(self) -> int:
        return self.base.version if self.base else 0


class Summarizer:
    """See :class:`proxy.background.runner.Job`; the kind is "summary".

    ``profile_of`` gives a profile by its name, "" the default one, ``window_of`` its window.
    ``decode`` gives the value of a message's JSON, ``count`` the tokens of a text; both are called
    on other threads too.  ``clock`` gives Unix seconds.
    """

    def __init__(
        self,
        store: Sessions,
        completer: Completer,
        profile_of: Callable[[str], ProfileSettings | None],
        window_of: Callable[[ProfileSettings], Window],
        decode: Decode,
        count: Count,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._profile_of, self._window_of = store, profile_of, window_of
        self._unfinished = UnstoredSummaries(clock)
        self._writer = Writer(completer, count, self._unfinished)
        self._decode, self._count, self._clock = decode, count, clock
        self._failed_turns, self._drafts = FailedTurns(), RebuildDrafts(clock)

    def __repr__(self) -> str:
        return f"<Summarizer {self._failed_turns!r}>"

    def forget(self, key: SessionKey) -> None:
        """Drop all that is written about a session and not stored: it has its content."""
        self._unfinished.forget(key)
        self._drafts.forget(key)

    def is_ready(self, work: Work) -> bool:
        profile = self._profile(work)
        return profile is None or self._writer.is_ready(
            SummaryRequest(work.tenant, profile.summary)
        )

    async def run(self, work: Work) -> float | None:
        """See Job.

        Turns that fail leave the session stalled, and are tried again when there are more.
        """
        profile = self._profile(work)
        if profile is None:
            return None
        settings, window = profile.summary, self._window_of(profile)
        conflicts = goal = 0
        while conflicts < CONFLICTS:
            view = await self._load_view(work, window)
            waiting = waiting_turns(view.snapshot, settings)
            when = self._when(view.snapshot, waiting, settings)
            if when is not None and when <= self._clock():
                goal = max(turn.number for turn in waiting)
            now = take_up_to(goal, waiting)
            if not now:
                return when
            step = await self._step(replace(view, waiting=now), settings)
            if step == "nothing":
                return None
            conflicts += step == "conflict"
        return self._clock() + RETRY_AFTER_CONFLICTS

    def _profile(self, work: Work) -> ProfileSettings | None:
        """The profile, None if it does not exist or has summaries disabled."""
        profile = self._profile_of(work.profile)
        return profile if profile is not None and profile.summary.enabled else None

    def _when(
        self, snapshot: Snapshot, waiting: Sequence[Turn], settings: SummarySettings
    ) -> float | None:
        """When to summarise the waiting turns (Unix seconds); None if not before there are more."""
        if not waiting:
            return None
        if is_due(waiting, settings):
            return self._clock()
        active = snapshot.last.created_at if snapshot.last else 0.0
        return active + settings.after_seconds if settings.after_seconds else None

    async def rebuild(self, work: Work) -> float | None:
        """Write the summary again from scratch; the present one stays in force until that is done.

        A summary that a person writes meanwhile is not overwritten.  Raises CompletionError and
        StoreError.
        """
        profile = self._profile(work)
        if profile is None:
            return None
        settings, window = profile.summary, self._window_of(profile)
        replaced: Summary | None = None
        for _ in range(CONFLICTS):
            view = await self._load_view(work, window)
            if view.base is None or (view.base.edited and replaced not in (None, view.base)):
                return None
            replaced = view.base
            summary = await self._write_from_scratch(view, settings)
            self._drafts.forget(view.key)
            if summary is None or await self._put(view, summary, anew=True):
                return None
        return self._clock() + RETRY_AFTER_CONFLICTS

    async def _write_from_scratch(
        self, view: _SessionView, settings: SummarySettings
    ) -> Summary | None:
        """A summary of all waiting turns from scratch; None if the model does not write one.

        It continues the draft of an earlier attempt, if there is one.
        """
        whose = view.key, view.options.profile, view.snapshot
        summary = self._drafts.find(*whose)
        while True:
            snapshot = replace(view.snapshot, summary=summary)
            waiting = waiting_turns(snapshot, settings)
            step = replace(view, snapshot=snapshot, waiting=waiting)
            batch = await self._batch(step, settings.max_input_tokens)
            if not batch.parts:
                return summary
            summary = await self._next(step, batch, settings)
            if summary is None:
                return None
            self._drafts.put(*whose, summary)

    async def _load_view(self, work: Work, window: Window) -> _SessionView:
        since, key = self._clock(), work.key
        # No bodies but the window's.
        options = LoadOptions(profile=work.profile, whole=True, max_messages=0)
        return _SessionView(
            since, key, options, after_eviction(await self._store.load(key, options), window), ()
        )

    async def _step(self, view: _SessionView, settings: SummarySettings) -> Step:
        """Fold the first batch of waiting turns into the summary.

        "nothing": it failed now or the last time, and the session is stalled, as if it raises: its
        window moves on without a summary.  Raises CompletionError and StoreError.
        """
        has_failed = self._failed_turns.has_failed(view.key, view.version, view.waiting)
        if has_failed and view.snapshot.stalled:
            return "nothing"
        batch = await self._batch(view, settings.max_input_tokens)
        if not batch.parts:
            return "nothing"
        try:
            summary = await self._next(view, batch, settings)
        except CompletionError as error:
            await self._mark_stalled(view, error)
            raise
        if summary is None:
            await self._mark_stalled(view, None)
            return "nothing"
        return "done" if await self._put(view, summary) else "conflict"

    async def _batch(self, view: _SessionView, max_tokens: int) -> SummaryBatch:
        """The first waiting turns as lines, without messages that were deleted meanwhile."""
        turns, key = take_tokens(view.waiting, max_tokens), view.key
        ids = [entry.card.id for turn in turns for entry in turn.entries]
        bodies = await self._store.bodies(key, ids)

        def read() -> SummaryBatch:
            said = ((turn.began, self._lines(turn, bodies)) for turn in turns)
            return first_batch(list(with_day_lines(said)), max_tokens, self._count)

        return await asyncio.to_thread(read)

    def _lines(self, turn: Turn, bodies: Mapping[str, bytes]) -> list[TranscriptLine]:
        found = [entry.card for entry in turn.entries if entry.card.id in bodies]
        return [line for card in found for line in lines_of(card, bodies[card.id], self._decode)]

    async def _next(
        self, view: _SessionView, batch: SummaryBatch, settings: SummarySettings
    ) -> Summary | None:
        """The summary with a batch folded in; None if the model does not write one.  Raises
        CompletionError and StoreError."""
        last, base = view.snapshot.last, view.base
        model = (last.requested_model or last.model) if last else None
        request = SummaryRequest(view.key.tenant, settings, model)
        text = base.text if base else ""
        written = await self._writer.write(view.key, request, text, batch.parts)
        if written is None:
            return None
        return replace(
            extended_to(view.snapshot, view.waiting[: batch.turns]),
            text=written.text,
            tokens=written.tokens,
            edited=False,
            model=written.model,
            created_at=self._clock(),
        )

    async def _mark_stalled(self, view: _SessionView, failure: CompletionError | None) -> None:
        """Stall the session after a failure; None if the model did not write a summary."""
        refused = isinstance(failure, Refused)
        if refused or failure is None:
            self._failed_turns.add(view.key, view.version, view.waiting, refused=refused)
        await self._store.mark_stalled(view.key, view.snapshot.created_at)

    async def _put(self, view: _SessionView, summary: Summary, *, anew: bool = False) -> bool:
        """Store a summary; False if the messages that it covers have changed.

        ``anew``: it was written from scratch, so that it may replace a version stored meanwhile,
        unless a person wrote that.
        """
        newest = newest_seen(summary, view.snapshot)
        for _ in range(CONFLICTS):
            seen = view.snapshot
            as_seen = (view.version, seen.changes, view.since, seen.created_at, newest)
            if await self._store.put_summary(view.key, summary, *as_seen):
                self._unfinished.forget(view.key)
                return True
            fresh = await self._store.load(view.key, view.options)
            same = covered_by(summary, fresh) == covered_by(summary, seen)
            if not same or fresh.created_at != seen.created_at:
                return False
            others = fresh.summary != seen.summary
            if others and not (anew and fresh.summary and not fresh.summary.edited):
                return False
            view = replace(view, snapshot=fresh)
        return False


class Rebuilder:
    """See :class:`proxy.background.runner.Job`; the kind is "rebuild".

    It is queued only once, so after a denial it is tried again in ``wait`` seconds.
    """

    def __init__(self, summarizer: Summarizer, wait: float) -> None:
        self._summarizer, self._wait = summarizer, wait

    def __repr__(self) -> str:
        return f"<Rebuilder of {self._summarizer!r}>"

    def is_ready(self, work: Work) -> bool:
        return self._summarizer.is_ready(work)

    async def run(self, work: Work) -> float | None:
        try:
            return await self._summarizer.rebuild(work)
        except Denied as denied:
            retry_denied(denied, work.attempts, self._wait)
            raise
