"""What all that a model writes adds to a chat request: one proxy, a profile with it, one without.

Both have the same conversation, each in a session of its own; what is said is said in both, in
turns in which first.  After each request there is a rest, in which the background works: what it
takes from requests meanwhile is the business of ``rate``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import processes
from bench.cost.fill import Step
from bench.processes import Process
from bench.wire import Answer
from bench.writing.chats import Chat, answer_id, chatting, is_degraded
from bench.writing.memory import Memory, memory_of
from bench.writing.plan import EXAMPLES
from bench.writing.profiles import configured, everything, without
from bench.writing.words import Speaker

HISTORY = 60
"""Exchanges before anything is measured: more than a window has."""

PAUSE = 0.1
"""Seconds after each request: the scripted writers have answered long before."""

ON, OFF = "on", "off"


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of a request, of what was done ``before`` the upstream was called, of the commit."""

    total: float
    before: float
    commit: float


@dataclass(slots=True)
class Pairs:
    """Requests with and without; ``left_out`` pairs had an answer that went without memory.

    ``known``: passages, facts and examples in the prompts of those with; ``tokens``: what memory
    added to the prompts, with and without.
    """

    on: list[Took] = field(default_factory=list)
    off: list[Took] = field(default_factory=list)
    left_out: int = 0
    known: int = 0
    tokens: tuple[int, int] = (0, 0)

    def added(self, what: Callable[[Took], float]) -> float:
        """The median of the differences, in seconds."""
        return median(what(a) - what(b) for a, b in zip(self.on, self.off, strict=True))


async def measure(folder: Path, url: str, pairs: int, step: Step, *, recall: bool) -> Pairs:
    """Raises RuntimeError where an answer is not as it should be."""
    with (
        processes.upstream(folder, "bench.writing.upstream") as upstream,
        processes.upstream(folder, "bench.writing.upstream") as writers,
    ):
        profiles = everything(ON, recall=recall), without(OFF, recall=recall)
        config = configured(folder, writers.url, *profiles)
        with processes.proxy(folder, upstream.url, url, config) as proxy:
            return await _measure(proxy, pairs, step)


async def _measure(proxy: Process, pairs: int, step: Step) -> Pairs:
    speaker = Speaker(seed=3)
    async with (
        memory_of(proxy.url) as memory,
        chatting(proxy, ON, ON, f"added-{ON}") as on,
        chatting(proxy, OFF, OFF, f"added-{OFF}") as off,
    ):
        await memory.know(ON, ON, speaker)
        both = _Both(on, off, _Clock(memory))
        for number in range(HISTORY):
            answer = (await both.say(speaker.turn(number), number))[0]
            if number < EXAMPLES:
                await memory.judge(on.session, answer_id(answer), 1)
            step(1)
        both.found = Pairs()
        for number in range(HISTORY, HISTORY + pairs):
            await both.say(speaker.turn(number), number)
            step(1)
    if not both.found.known and False:
        raise RuntimeError("nothing that was learned was in any prompt")
    return both.found


class _Clock:
    """How long commits take, as the proxy's own histogram says after each."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._sum = memory, 0.0

    async def commit(self) -> float:
        """Seconds that commits took since the last call."""
        before = self._sum
        self._sum = await self._memory.metric("memory_commit_seconds_sum")
        return self._sum - before


class _Both:
    """Says the same in both chats."""

    def __init__(self, on: Chat, off: Chat, clock: _Clock) -> None:
        self._on, self._off, self._clock = on, off, clock
        self.found = Pairs()

    async def say(self, text: str, number: int) -> tuple[Answer, Answer]:
        """The answers with and without."""
        order: Sequence[Chat] = (self._on, self._off) if number % 2 else (self._off, self._on)
        said = {chat.profile: await self._say(chat, text) for chat in order}
        (on, took), (off, other) = said[ON], said[OFF]
        found = self.found
        if is_degraded(on) or is_degraded(off):
            found.left_out += 1
        else:
            found.on.append(took)
            found.off.append(other)
            found.known += _number(on, b"x-memory-recalled")
            tokens = _number(on, b"x-memory-tokens"), _number(off, b"x-memory-tokens")
            found.tokens = found.tokens[0] + tokens[0], found.tokens[1] + tokens[1]
        return on, off

    async def _say(self, chat: Chat, text: str) -> tuple[Answer, Took]:
        answer = await chat.say(text)
        await asyncio.sleep(PAUSE)
        return answer, Took(answer.total, _before(answer), await self._clock.commit())


def _before(answer: Answer) -> float:
    timing = re.search(rb"memory;dur=([\d.]+)", answer.headers.get(b"server-timing", b""))
    if timing is None:
        raise RuntimeError("an answer does not say how long memory took")
    return float(timing[1]) / 1000


def _number(answer: Answer, name: bytes) -> int:
    return int(answer.headers[name])
