"""The alignment: the best by the rules, found in time that grows with the messages alone."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from proxy.chat.message import ChatMessage
from proxy.memory.model import Card, Entry, Exchange, Position, SessionKey, Snapshot
from proxy.memory.planner import Planner, is_sufficient
from proxy.memory.prompt.compose import PromptRules
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.align import (
    Log,
    Match,
    MatchKind,
    align,
    is_call_or_result,
    last_run,
)
from proxy.memory.reconciliation.match import CompareAnswers, Intent
from proxy.memory.recording.commit import PendingRecord, pending_record
from proxy.process.threads import SharedThreads
from tests.support.steps import steps
from tests.support.talk.shorthand import message, rerendered, talk

Path = tuple[Match, ...]
Rank = tuple[int, int, int, int]

WORDS = ("u1", "u2", "a1", "a2", "a1*", "a3(k)", "a3~o(o)", "a4(k)", "t1:k", "t1~o:o", "a5(l)")


def similar(i: int, j: int, m: Sequence[ChatMessage], h: Sequence[ChatMessage]) -> bool:
    return m[i].digest == f"{h[j].digest}*"


class Every:
    """All alignments that the rules allow, tried one by one."""

    def __init__(
        self,
        m: Sequence[ChatMessage],
        h: Sequence[ChatMessage],
        made_up: AbstractSet[int],
        *,
        lenient: bool,
    ) -> None:
        self.m, self.h, self.made_up, self.lenient = m, h, made_up, lenient
        self.log, self.digests = Log(h), {x.digest for x in h}

    def kind(self, i: int, j: int) -> MatchKind | None:
        mine, theirs = self.m[i], self.h[j]
        if mine.digest == theirs.digest:
            return MatchKind.EQUAL
        unknown = mine.digest not in self.digests
        return MatchKind.SIMILAR if unknown and mine.shape and mine.shape == theirs.shape else None

    def begins(self, i: int, kind: MatchKind) -> bool:
        if i == 0 or kind is MatchKind.SIMILAR:
            return i == 0
        if self.m[i].role == "user":
            return True
        if self.prefill(i):
            return False
        return all(self.kind(i - 1, j) is not MatchKind.EQUAL for j in range(len(self.h)))

    def prefill(self, i: int) -> bool:
        return self.m[i].role == "assistant" and i == len(self.m) - 1

    def repeated(self, i: int) -> bool:
        return self.prefill(i) and any(self.kind(i, j) for j in self.made_up)

    def after(self, last: Match, i: int) -> Iterator[Match]:
        behind = i == last.i + 1 or self.begun(last, i)
        if not behind or self.m[i].role != "assistant" or last.kind is MatchKind.REPLACED:
            return
        mine, log = self.m[i], self.log
        near = log.next_answer(last.j)
        places = log.next_with_calls(last.j, mine.calls) if mine.calls else [near]
        other = [k for k in places if k is not None and not self.kind(i, k)]
        alike = [k for k in other if similar(i, k, self.m, self.h)]
        yield from (Match(i, k, MatchKind.SIMILAR) for k in alike)
        for told in log.alterable_by(mine, last.j):
            if told not in alike and not self.kind(i, told):
                yield Match(i, told, MatchKind.REPLACED)

    def unknown(self, i: int) -> bool:
        return not any(self.kind(i, j) for j in range(len(self.h)))

    def near(self, last: Match, i: int) -> bool:
        """Are these neighbours in M?"""
        told = last.kind is MatchKind.REPLACED and (self.m[last.i].calls or self.h[last.j].calls)
        if i == last.i + 1 or self.begun(last, i):
            return True
        return bool(told) and all(map(self.unknown, range(last.i + 1, i)))

    def begun(self, last: Match, i: int) -> bool:
        """Is all that stands between a question or result and an answer unknown, and of answers?"""
        between = range(last.i + 1, i)
        answers = all(self.m[n].role == "assistant" for n in range(last.i + 1, i + 1))
        asked = self.m[last.i].role != "assistant"
        return asked and answers and all(map(self.unknown, between))

    def may_end(self, path: Path, has_answer: bool) -> bool:
        return has_answer and (self.lenient or path[-1].kind is not MatchKind.REPLACED)

    def paths(self, path: Path = (), has_answer: bool = False) -> Iterator[Path]:
        """Go on from a path whose last run is ``has_answer`` or not."""
        if path and self.may_end(path, has_answer):
            yield path
        for i in range(path[-1].i + 1 if path else 0, len(self.m)):
            for match in self.after(path[-1], i) if path else ():
                told = self.lenient and not self.repeated(i)
                kept = match.kind is MatchKind.SIMILAR or has_answer or told
                yield from self.paths((*path, match), kept)
            for j in range(path[-1].j + 1 if path else 0, len(self.h)):
                yield from self.paired(path, has_answer, i, j)

    def paired(self, path: Path, has_answer: bool, i: int, j: int) -> Iterator[Path]:
        kind, answer = self.kind(i, j), self.m[i].role == "assistant"
        if kind is None:
            return
        answer = answer and not (self.prefill(i) and j in self.made_up)
        match = Match(i, j, kind)
        if (
            path
            and self.near(path[-1], i)
            and all(map(is_call_or_result, self.h[path[-1].j + 1 : j]))
        ):
            yield from self.paths((*path, match), has_answer or answer)
        if self.begins(i, kind) and (not path or self.may_end(path, has_answer)):
            yield from self.paths((*path, match), answer)


def runs(path: Path, h: Sequence[ChatMessage]) -> int:
    count, left = 0, path
    while left:
        left = left[: -len(list(last_run(left, h)))]
        count += 1
    return count


def rank(path: Path, h: Sequence[ChatMessage]) -> Rank:
    real = sum(x.kind is not MatchKind.REPLACED for x in path)
    return (path[-1].j, real, -runs(path, h), -path[-1].i)


def best(
    m: Sequence[ChatMessage], h: Sequence[ChatMessage], made_up: AbstractSet[int]
) -> tuple[Rank | None, set[Path]]:
    """The rank of the best alignment by trying them all, and those that are allowed."""
    for lenient in (False, True):
        found = set(Every(m, h, made_up, lenient=lenient).paths())
        if found:
            return max(rank(path, h) for path in found), found
    return None, set()


@pytest.mark.parametrize("block", range(8))
def test_of_all_alignments_that_the_rules_allow_the_best_is_taken(block: int) -> None:
    for seed in range(400 * block, 400 * (block + 1)):
        rng = random.Random(seed)
        words = rng.sample(WORDS, rng.randint(2, 6))
        m = talk(" ".join(rng.choice(words) for _ in range(rng.randint(1, 5))))
        h = talk(" ".join(rng.choice(words) for _ in range(rng.randint(1, 6))))
        made_up = {j for j in range(len(h)) if rng.random() < 0.3}
        found = align(m, h, lambda i, j, m=m, h=h: similar(i, j, m, h), made_up)  # type: ignore[misc]
        expected, allowed = best(m, h, made_up)
        assert (rank(found, h) if found else None) == expected, (m, h, found)
        assert not found or found in allowed, (m, h, found)


class Nothing:
    """A store that has no text to give."""

    async def bodies(self, key: object, ids: object) -> dict[str, bytes]:
        return {}


def in_one_gap(n: int) -> str:
    return "u0 " + " ".join(f"a{i}(c{i}) t{i}:c{i}" for i in range(n))


def same_calls(n: int) -> str:
    return "u0 " + " ".join("a1(c1) t1:c1" for _ in range(n))


def same_words(n: int) -> str:
    return " ".join("u1" for _ in range(2 * n)) + " a1"


def alternating(n: int) -> str:
    return " ".join("u1 a1" for _ in range(n))


def distinct(n: int) -> str:
    return " ".join(f"u{i} a{i}" for i in range(n))


def calls_alone(n: int) -> str:
    return "u0 " + " ".join(f"a{i}(c{i})" for i in range(n))


SHAPES = [in_one_gap, same_calls, same_words, alternating, distinct, calls_alone]


def everything(m: list[ChatMessage]) -> list[ChatMessage]:
    return m


def less_the_last(m: list[ChatMessage]) -> list[ChatMessage]:
    return m[:-2]


def the_end(m: list[ChatMessage]) -> list[ChatMessage]:
    return m[len(m) // 2 :]


def under_other_ids(m: list[ChatMessage]) -> list[ChatMessage]:
    return [
        message(
            f"{x.digest}~o" if x.shape else x.digest,
            x.role,
            calls=tuple(f"o{id}" for id in x.calls),
            answers=None if x.answers is None else f"o{x.answers}",
        )
        for x in m
    ]


def renamed(x: ChatMessage, mark: str) -> ChatMessage:
    return message(x.digest + mark, x.role, x.calls, x.answers)


def with_other_answers(m: list[ChatMessage]) -> list[ChatMessage]:
    return [renamed(x, "9") if x.role == "assistant" else x for x in m]


def all_different(m: list[ChatMessage]) -> list[ChatMessage]:
    return [renamed(x, "8") for x in m]


def with_thoughts(m: list[ChatMessage]) -> list[ChatMessage]:
    thoughts = {x.digest: message(f"{x.digest}7", x.role) for x in m if x.role == "assistant"}
    return [each for x in m for each in (*filter(None, [thoughts.get(x.digest)]), x)]


WAYS = [
    everything,
    less_the_last,
    the_end,
    under_other_ids,
    with_other_answers,
    all_different,
    with_thoughts,
]


def stored(said: Sequence[ChatMessage]) -> Snapshot:
    log: list[Entry] = []
    for seq, x in enumerate(said, 1):
        card = Card(
            id=f"x{seq // 2}.{seq % 2}",
            role=x.role,
            tokens=10,
            digest=x.digest,
            shape=x.shape,
            calls=x.calls,
            answers=x.answers,
            origin="response" if x.role == "assistant" else "request",
            evidence=x.role == "assistant",
        )
        turn = seq if x.role == "user" or not log else log[-1].position.turn
        log.append(Entry(Position(turn, seq), card))
    last = Exchange(id=log[-1].card.exchange, profile="", started_at=0, created_at=0)
    return Snapshot(exists=True, log=tuple(log), last=last, messages=len(log), tokens=10 * len(log))


def planned(snapshot: Snapshot, m: Sequence[ChatMessage], window: Window) -> PendingRecord:
    """All that planning does for a request, the store's own time aside."""

    def comparing(bodies: object) -> CompareAnswers:
        return rerendered

    is_sufficient(snapshot, m, Intent())
    planner = Planner(Nothing(), SharedThreads(AtOnce()), comparing)  # type: ignore[arg-type]
    key = SessionKey("t", "s")
    found = asyncio.run(planner.plan(key, snapshot, m, Intent(), PromptRules(window=window)))
    return pending_record(found.plan, found.prompt, m, snapshot)


class AtOnce(Executor):
    """Does the work in the thread that wants it, where steps are counted."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_planning_takes_steps_that_grow_with_the_messages_alone(shape: object, way: object) -> None:
    assert callable(shape)
    assert callable(way)

    def work(n: int) -> int:
        said = talk(shape(n))
        snapshot, m = stored(said), [*way(said), message("u new", "user")]
        window = Window(max_tokens=800, evict_to=0.7)
        return steps(lambda: planned(snapshot, m, window))

    assert work(400) < 5 * work(100)


def test_results_sent_again_take_steps_that_grow_with_the_messages_alone() -> None:
    def work(n: int) -> int:
        said = talk(in_one_gap(n))
        results = [x for x in said if x.answers is not None]
        return steps(lambda: planned(stored(said), results, Window()))

    assert work(400) < 5 * work(100)


def test_messages_that_wait_for_the_reply_are_nothing_to_the_garbage_collector() -> None:
    new = [message(f"u {n}", "user") for n in range(3)]
    pending = planned(Snapshot(), new, Window()).recorded()
    assert len(pending.pending_messages) == 3
    assert not any(gc.is_tracked(each) for each in pending.pending_messages)
