"""A session whose messages can be told apart, and a model that tells which of them it has seen.

Every message of ``tests.support.store.commits`` says its own id, so a summary that lists the ids
which it was shown says what it covers, how often and in which order.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from proxy.background.completion import Assignment, Completed
from proxy.chat import jsontext
from proxy.memory.model import (
    Commit,
    Entry,
    LoadOptions,
    SessionKey,
    Snapshot,
    Summary,
    WindowMove,
    Work,
)
from proxy.memory.prompt.window import Window
from proxy.memory.store import Store
from proxy.settings import ProfileSettings
from proxy.summary.summarizer import Summarizer
from tests.support.clock import Clock
from tests.support.store.commits import chat

PROFILE = "default"
WHOLE = LoadOptions(profile=PROFILE, whole=True)
TEMPLATE = "Told: {summary}\n=====\n{new_lines}"

Answer = str | Completed | BaseException | Callable[[Assignment], str]

_MARKER = re.compile(r"\bx\w*\.\d+")


def words(text: str) -> int:
    """Tokens of these tests."""
    return len(text.split())


def markers(text: str) -> list[str]:
    """The ids of the messages that a text tells of, in its order."""
    return _MARKER.findall(text)


def new_lines(assignment: Assignment) -> str:
    return assignment.text.partition("\n=====\n")[2]


def profile(**summary: Any) -> ProfileSettings:
    known = {"enabled": True, "max_tokens": 100_000, "prompt": TEMPLATE, "model": "small"}
    return ProfileSettings.model_validate({"summary": known | summary})


def never_full(profile: ProfileSettings) -> Window:
    """A window that evicts nothing by itself: what it has evicted, commits say."""
    return Window()


class Narrator:
    """A Completer that answers with the next of ``answers``, then with all the ids it is shown.

    ``meanwhile`` runs once, while the model writes.
    """

    def __init__(self) -> None:
        self.answers: deque[Answer] = deque()
        self.asked: list[Assignment] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.known = True

    def is_ready(self, assignment: Assignment) -> bool:
        return self.known

    async def complete(self, assignment: Assignment) -> Completed:
        self.asked.append(assignment)
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            await happens()
        answer = self.answers.popleft() if self.answers else narrate
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Completed):
            return answer
        text = answer if isinstance(answer, str) else answer(assignment)
        return Completed(text, f"{assignment.model}-1")

    @property
    def seen(self) -> list[str]:
        """The ids that were new to it, over all requests."""
        return [id for assignment in self.asked for id in markers(new_lines(assignment))]


def narrate(assignment: Assignment) -> str:
    return f"It was told {' '.join(markers(assignment.text))}"


class Workshop:
    """A summarizer, its model, and the session it works on."""

    def __init__(self, store: Store, key: SessionKey, clock: Clock, **summary: Any) -> None:
        self.store, self.key, self.clock = store, key, clock
        self.narrator = Narrator()
        self.profiles: dict[str, ProfileSettings] = {PROFILE: profile(**summary)}
        self.summarizer = self.another()

    def another(self, store: Any = None) -> Summarizer:
        """One more, as in another process."""
        decode = jsontext.decode
        chosen = store or self.store
        return Summarizer(
            chosen, self.narrator, self.profiles.get, never_full, decode, words, self.clock
        )

    @property
    def work(self) -> Work:
        tenant, session = self.key
        return Work(tenant=tenant, session=session, kind="summary", profile=PROFILE, due=0.0)

    async def run(self, summarizer: Summarizer | None = None) -> float | None:
        return await (summarizer or self.summarizer).run(self.work)

    async def commit(self, commit: Commit) -> None:
        assert await self.store.commit(self.key, commit) == "recorded"

    async def talk(self, first: int, last: int, **fields: Any) -> None:
        """The turns ``x{first}`` to ``x{last}``, of two messages each."""
        for n in range(first, last + 1):
            await self.commit(chat(f"x{n}", **fields))

    async def talk_behind(self, first: int, last: int, **fields: Any) -> None:
        """The same, and one more exchange ``xe{last}``, where the window begins."""
        await self.talk(first, last, **fields)
        start = f"xe{last}.0"
        await self.commit(chat(f"xe{last}", window=WindowMove(profile=PROFILE, start=start)))

    async def look(self) -> Snapshot:
        return await self.store.load(self.key, WHOLE)

    async def summary(self) -> Summary | None:
        return (await self.look()).summary

    async def told(self) -> list[str]:
        """The ids that the summary in force tells of; checks that it covers exactly these."""
        snapshot = await self.look()
        told = markers(snapshot.summary.text) if snapshot.summary else []
        assert sorted(told) == sorted(entry.card.id for entry in covered(snapshot))
        return told


def covered(snapshot: Snapshot) -> list[Entry]:
    summary = snapshot.summary
    return [e for e in snapshot.log if summary is not None and summary.covers(e.position)]


def ids(first: int, last: int) -> list[str]:
    """The messages of the turns ``x{first}`` to ``x{last}``."""
    return [f"x{n}.{index}" for n in range(first, last + 1) for index in (0, 1)]
