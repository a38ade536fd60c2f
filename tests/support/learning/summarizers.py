"""Summarisers at work on a session, who get on only as far as a test lets them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from proxy.background.completion import Assignment, Completed, CompletionError
from proxy.gateway.context import window_of
from proxy.memory.model import LoadOptions, SessionKey, Work
from proxy.settings import ProfileSettings
from proxy.stores.open import Backend
from proxy.summary.summarizer import Summarizer
from proxy.summary.uncovered_turns import after_eviction, waiting_turns
from tests.support.clock import Clock
from tests.support.talk.chronicle import names_in, read_name, words
from tests.support.upstream.scribing import EVER

KEY = SessionKey("tenant", "session")
WORK = Work(tenant="tenant", session="session", kind="summary", profile="", due=0.0)
WHOLE = LoadOptions(profile="", whole=True)

Answer = BaseException | str | None
Run = asyncio.Task[float | None]


class Author:
    """A model that says nothing until it is told what, None: a summary."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def is_ready(self, assignment: Assignment) -> bool:
        return True

    async def complete(self, assignment: Assignment) -> Completed:
        self.asked.set()
        answer = await self.answer
        if isinstance(answer, BaseException):
            raise answer
        return Completed(answer or f"Told: {' '.join(names_in(assignment.text))}", "small")


class Summarizers:
    """Summarisers at work on a session, each with an author of its own."""

    def __init__(self, store: Backend, profile: ProfileSettings, clock: Clock) -> None:
        self.store, self.profile, self.clock = store, profile, clock
        self.open: list[tuple[Author, Run]] = []

    def _summarizer(self, author: Author) -> Summarizer:
        store, profile = self.store, self.profile
        return Summarizer(
            store, author, lambda name: profile, window_of, read_name, words, self.clock
        )

    async def begin(self) -> None:
        """One more process looks; it is asked something soon, or finds nothing to do."""
        author = Author()
        run = asyncio.create_task(self._summarizer(author).run(WORK))
        asked = asyncio.create_task(author.asked.wait())
        await asyncio.wait({run, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        self.open.append((author, run))

    async def end(self, which: int, answer: Answer) -> None:
        """Its author answers this from now on."""
        author, run = self.open.pop(which)
        author.answer.set_result(answer)
        with suppress(CompletionError):
            await run

    async def kill(self, which: int) -> None:
        _, run = self.open.pop(which)
        run.cancel()
        await asyncio.wait({run})

    async def work(self) -> None:
        """Do all that is asked for."""
        while found := await self.store.waiting(EVER, 10):
            held = await self.store.claim(found[0], EVER, EVER + 1)
            assert held is not None
            author = Author()
            author.answer.set_result(None)
            again = await self._summarizer(author).run(held)
            if again is None:
                await self.store.finish(held, EVER)
            else:
                await self.store.postpone(held, again, failed=False)

    async def waits(self) -> list[str]:
        """What should be covered and is not."""
        snapshot = after_eviction(await self.store.load(KEY, WHOLE), window_of(self.profile))
        turns = waiting_turns(snapshot, self.profile.summary)
        return [entry.card.digest for turn in turns for entry in turn.entries]
