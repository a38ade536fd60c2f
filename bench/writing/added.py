"""What all that a model writes adds to a chat request: one proxy, profiles with it, one without.

All have the same conversation, each in a session of its own: what is said is said under one profile
after the other, in turns which is first.  After each request there is a rest, in which the
background works: what it takes from requests meanwhile is the business of ``rate``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Literal

from bench import processes
from bench.cost.fill import Step
from bench.processes import Process
from bench.wire import Answer
from bench.writing.chats import Chat, answer_id, chatting, is_degraded
from bench.writing.memory import Memory, memory_of
from bench.writing.plan import EXAMPLES, Plan
from bench.writing.profiles import ALL, Profile, configured, roomy
from bench.writing.words import Speaker

PAUSE = 0.1
"""Seconds after each request: the scripted writers have answered long before."""

ON, OFF = "on", "off"

Part = Literal["total", "before", "commit"]


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of a request, of what was done ``before`` the upstream was called, of the commit."""

    total: float
    before: float
    commit: float


@dataclass(slots=True)
class Compared:
    """The requests of each turn, by the name of their profile; OFF is the one without.

    ``left_out`` turns had an answer that went without memory.  ``tokens`` are those that memory
    added to the prompts, ``known`` the facts, examples and passages that it put into them.
    """

    took: Mapping[str, list[Took]]
    tokens: dict[str, int]
    known: dict[str, int]
    left_out: int = 0

    @classmethod
    def of(cls, names: Sequence[str]) -> Compared:
        return cls({name: [] for name in names}, dict.fromkeys(names, 0), dict.fromkeys(names, 0))

    def added(self, name: str, part: Part = "total") -> float:
        """The median of the differences to OFF, in seconds."""
        of = attrgetter(part)
        pairs = zip(self.took[name], self.took[OFF], strict=True)
        return float(median(of(on) - of(off) for on, off in pairs))


def profiles(*, recall: bool, each: bool) -> tuple[Profile, ...]:
    """With everything, with nothing, and with ``each`` feature alone too."""
    alone = [roomy(name, {name: more}, recall=recall) for name, more in ALL.items() if each]
    return (roomy(ON, ALL, recall=recall), roomy(OFF, {}, recall=recall), *alone)


async def measure(
    folder: Path, url: str, compared: Sequence[Profile], plan: Plan, step: Step
) -> Compared:
    """Raises RuntimeError where an answer is not as it should be."""
    with (
        processes.upstream(folder, "bench.writing.upstream") as upstream,
        processes.upstream(folder, "bench.writing.upstream") as writers,
    ):
        config = configured(folder, writers.url, *compared)
        with processes.proxy(folder, upstream.url, url, config) as proxy:
            return await _measure(proxy, compared, plan, step)


async def _measure(proxy: Process, compared: Sequence[Profile], plan: Plan, step: Step) -> Compared:
    speaker, names = Speaker(seed=3), [profile.name for profile in compared]
    async with AsyncExitStack() as opening:
        memory = await opening.enter_async_context(memory_of(proxy.url))
        chats = [
            await opening.enter_async_context(chatting(proxy, name, name, f"added-{name}"))
            for name in names
        ]
        for profile in compared:
            await memory.know(profile.name, Speaker(seed=5))
        side = _SideBySide(chats, _Clock(memory), step)
        for number in range(plan.history):
            answers = await side.say(speaker.turn(number), number)
            for profile in compared if number < EXAMPLES else ():
                if "episodes" in profile.features:
                    answer = answer_id(answers[profile.name])
                    await memory.judge(f"added-{profile.name}", answer, 1)
        side.found = Compared.of(names)
        for number in range(plan.history, plan.history + plan.compared):
            await side.say(speaker.turn(number), number)
    if not side.found.known[ON]:
        raise RuntimeError("nothing that was learned was in any prompt")
    return side.found


class _Clock:
    """How long commits take, as the proxy's own histogram says after each."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._sum = memory, 0.0

    async def commit(self) -> float:
        """Seconds that commits took since the last call."""
        before = self._sum
        self._sum = await self._memory.metric("memory_commit_seconds_sum")
        return self._sum - before


class _SideBySide:
    """Says the same in all chats."""

    def __init__(self, chats: Sequence[Chat], clock: _Clock, step: Step) -> None:
        self._chats, self._clock, self._step = chats, clock, step
        self.found = Compared.of([chat.profile for chat in chats])

    async def say(self, text: str, number: int) -> Mapping[str, Answer]:
        """The answers by profile."""
        first = number % len(self._chats)
        took, answers = dict[str, Took](), dict[str, Answer]()
        for chat in (*self._chats[first:], *self._chats[:first]):
            answers[chat.profile], took[chat.profile] = await self._say(chat, text)
            self._step(1)
        if any(map(is_degraded, answers.values())):
            self.found.left_out += 1
            return answers
        for name, answer in answers.items():
            self.found.took[name].append(took[name])
            self.found.tokens[name] += int(answer.headers[b"x-memory-tokens"])
            self.found.known[name] += int(answer.headers[b"x-memory-recalled"])
        return answers

    async def _say(self, chat: Chat, text: str) -> tuple[Answer, Took]:
        answer = await chat.say(text)
        await asyncio.sleep(PAUSE)
        return answer, Took(answer.total, _before(answer), await self._clock.commit())


def _before(answer: Answer) -> float:
    timing = re.search(rb"memory;dur=([\d.]+)", answer.headers.get(b"server-timing", b""))
    if timing is None:
        raise RuntimeError("an answer does not say how long memory took")
    return float(timing[1]) / 1000
