"""The job of keeping a session's summary: what waits is folded in, batch after batch.

Each batch is stored at once, so that nothing is lost when the process ends, and only if nothing
that it covers has changed meanwhile; otherwise it is begun anew from what is there then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from proxy.background.completion import (
    Completer,
    CompletionError,
    Denied,
    Refused,
    try_again,
)
from proxy.memory.model import Ask, SessionKey, Snapshot, Summary, Work
from proxy.memory.prompt.window import Window
from proxy.memory.store import Memory, Summaries
from proxy.settings import ProfileSettings
from proxy.settings.written import SummarySettings
from proxy.summary.attempts import Drafts, GivenUp, Unfinished
from proxy.summary.lines import Count, Decode, TalkLine, lines_of, under_days
from proxy.summary.waiting import (
    SummaryBatch,
    Turn,
    covered_by,
    first_batch,
    is_due,
    moved_on,
    newest_seen,
    reach,
    up_to,
    waiting_turns,
    within,
)
from proxy.summary.writer import Commission, Writer

CONFLICTS = 3
"""How often a session is begun anew because it has changed while the model wrote."""

SOON = 10.0
"""Seconds after which a session is looked at again that kept changing."""

Step = Literal["done", "conflict", "nothing"]


class Sessions(Memory, Summaries, Protocol):
    """A store, as far as summaries need it."""


class _Sight(msgspec.Struct, frozen=True):
    """A session as it was seen at ``since`` (Unix seconds) or later, and what waits in it."""

    since: float
    key: SessionKey
    ask: Ask
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
        self._unfinished = Unfinished(clock)
        self._writer = Writer(completer, count, self._unfinished)
        self._decode, self._count, self._clock = decode, count, clock
        self._given_up, self._drafts = GivenUp(), Drafts(clock)

    def __repr__(self) -> str:
        return f"<Summarizer {self._given_up!r}>"

    def ready(self, work: Work) -> bool:
        profile = self._profile(work)
        return profile is None or self._writer.ready(Commission(work.tenant, profile.summary))

    async def run(self, work: Work) -> float | None:
        """See Job.

        Turns of which nothing comes leave the session stalled, and are tried again with the next.
        """
        profile = self._profile(work)
        if profile is None:
            return None
        settings, window = profile.summary, self._window_of(profile)
        conflicts = goal = 0
        while conflicts < CONFLICTS:
            sight = await self._look(work, window)
            waiting = waiting_turns(sight.snapshot, settings)
            when = self._when(sight.snapshot, waiting, settings)
            if when is not None and when <= self._clock():
                goal = max(turn.number for turn in waiting)
            now = up_to(goal, waiting)
            if not now:
                return when
            step = await self._step(replace(sight, waiting=now), settings)
            if step == "nothing":
                return None
            conflicts += step == "conflict"
        return self._clock() + SOON

    def _profile(self, work: Work) -> ProfileSettings | None:
        """None where nothing is to be summarised any more."""
        profile = self._profile_of(work.profile)
        return profile if profile is not None and profile.summary.enabled else None

    def _when(
        self, snapshot: Snapshot, waiting: Sequence[Turn], settings: SummarySettings
    ) -> float | None:
        """The time (Unix seconds) for what waits; None: not before there is more."""
        if not waiting:
            return None
        if is_due(waiting, settings):
            return self._clock()
        active = snapshot.last.created_at if snapshot.last else 0.0
        return active + settings.after_seconds if settings.after_seconds else None

    async def rebuild(self, work: Work) -> float | None:
        """Write the summary from nothing: what is in force stays so until that is done.

        Raises CompletionError, StoreError.  A person's words that come meanwhile stay.
        """
        profile = self._profile(work)
        if profile is None:
            return None
        settings, window = profile.summary, self._window_of(profile)
        replaced: Summary | None = None
        for _ in range(CONFLICTS):
            sight = await self._look(work, window)
            if sight.base is None or (sight.base.edited and replaced not in (None, sight.base)):
                return None
            replaced = sight.base
            summary = await self._anew(sight, settings)
            self._drafts.forget(sight.key)
            if summary is None or await self._put(sight, summary, anew=True):
                return None
        return self._clock() + SOON

    async def _anew(self, sight: _Sight, settings: SummarySettings) -> Summary | None:
        """A summary of all that waits where none is in force; None if the model does not write one.

        What an earlier attempt has written before it failed is gone on with.
        """
        whose = sight.key, sight.ask.profile, sight.snapshot
        summary = self._drafts.find(*whose)
        while True:
            snapshot = replace(sight.snapshot, summary=summary)
            waiting = waiting_turns(snapshot, settings)
            step = replace(sight, snapshot=snapshot, waiting=waiting)
            batch = await self._batch(step, settings.max_input_tokens)
            if not batch.parts:
                return summary
            summary = await self._next(step, batch, settings)
            if summary is None:
                return None
            self._drafts.keep(*whose, summary)

    async def _look(self, work: Work, window: Window) -> _Sight:
        since, key = self._clock(), SessionKey(work.tenant, work.session)
        ask = Ask(profile=work.profile, whole=True, max_messages=0)  # no bodies but the window's
        return _Sight(since, key, ask, moved_on(await self._store.load(key, ask), window), ())

    async def _step(self, sight: _Sight, settings: SummarySettings) -> Step:
        """Fold the first batch of what waits into the summary.  Raises CompletionError, StoreError.

        "nothing" came of it, now or the last time: the session is stalled, as where it raises, and
        its window goes on without.
        """
        given_up = self._given_up.knows(sight.key, sight.version, sight.waiting)
        if given_up and sight.snapshot.stalled:
            return "nothing"
        batch = await self._batch(sight, settings.max_input_tokens)
        if not batch.parts:
            return "nothing"
        try:
            summary = await self._next(sight, batch, settings)
        except CompletionError as error:
            await self._stall(sight, error)
            raise
        if summary is None:
            await self._stall(sight, None)
            return "nothing"
        return "done" if await self._put(sight, summary) else "conflict"

    async def _batch(self, sight: _Sight, max_tokens: int) -> SummaryBatch:
        """The first of what waits as lines; a message that is gone meanwhile has none."""
        turns, key = within(sight.waiting, max_tokens), sight.key
        ids = [entry.card.id for turn in turns for entry in turn.entries]
        bodies = await self._store.bodies(key, ids)

        def read() -> SummaryBatch:
            said = ((turn.began, self._lines(turn, bodies)) for turn in turns)
            return first_batch(list(under_days(said)), max_tokens, self._count)

        return await asyncio.to_thread(read)

    def _lines(self, turn: Turn, bodies: Mapping[str, bytes]) -> list[TalkLine]:
        found = [entry.card for entry in turn.entries if entry.card.id in bodies]
        return [line for card in found for line in lines_of(card, bodies[card.id], self._decode)]

    async def _next(
        self, sight: _Sight, batch: SummaryBatch, settings: SummarySettings
    ) -> Summary | None:
        """The summary with a batch of what waits; None where the model does not write one.

        Raises CompletionError, StoreError.
        """
        last, base = sight.snapshot.last, sight.base
        model = (last.asked or last.model) if last else None
        commission = Commission(sight.key.tenant, settings, model)
        text = base.text if base else ""
        written = await self._writer.write(sight.key, commission, text, batch.parts)
        if written is None:
            return None
        return replace(
            reach(sight.snapshot, sight.waiting[: batch.turns]),
            text=written.text,
            tokens=written.tokens,
            edited=False,
            model=written.model,
            created_at=self._clock(),
        )

    async def _stall(self, sight: _Sight, failure: CompletionError | None) -> None:
        """The model did not write what was asked for, or it could not be asked."""
        refused = isinstance(failure, Refused)
        if refused or failure is None:
            self._given_up.note(sight.key, sight.version, sight.waiting, refused=refused)
        await self._store.stall(sight.key, sight.snapshot.began)

    async def _put(self, sight: _Sight, summary: Summary, *, anew: bool = False) -> bool:
        """Store it; False if what it was made from has changed.

        ``anew``: it was made from no version, so that another one may be in force meanwhile; but
        not a person's words, which are not overwritten.
        """
        newest = newest_seen(summary, sight.snapshot)
        for _ in range(CONFLICTS):
            seen = sight.snapshot
            as_seen = (sight.version, seen.changes, sight.since, seen.began, newest)
            if await self._store.put_summary(sight.key, summary, *as_seen):
                self._unfinished.forget(sight.key)
                return True
            fresh = await self._store.load(sight.key, sight.ask)
            same = covered_by(summary, fresh) == covered_by(summary, seen)
            if not same or fresh.began != seen.began:
                return False
            others = fresh.summary != seen.summary
            if others and not (anew and fresh.summary and not fresh.summary.edited):
                return False
            sight = replace(sight, snapshot=fresh)
        return False


class Rebuilder:
    """See :class:`proxy.background.runner.Job`; the kind is "rebuild".

    Nobody asks for it again: what is denied is tried again after ``wait`` seconds.
    """

    def __init__(self, summarizer: Summarizer, wait: float) -> None:
        self._summarizer, self._wait = summarizer, wait

    def __repr__(self) -> str:
        return f"<Rebuilder of {self._summarizer!r}>"

    def ready(self, work: Work) -> bool:
        return self._summarizer.ready(work)

    async def run(self, work: Work) -> float | None:
        try:
            return await self._summarizer.rebuild(work)
        except Denied as denied:
            try_again(denied, work.attempts, self._wait)
            raise
