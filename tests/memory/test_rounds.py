"""Results of parallel calls come as they are done, and are resent in whatever order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import groupby

import pytest

from proxy.memory.reconciliation.match import Intent
from tests.support.talk.retelling import Json, Session, call

Ids = Callable[[int, int], str]
"""Of a call of a round."""

IDS: dict[str, Ids] = {
    "own": lambda round, n: f"id-{round}-{n}",
    "again in each round": lambda round, n: f"call_{n}",
}
CONTENTS = {"alike": lambda n: "ok", "of their own": lambda n: f"t{n}"}


class Loop:
    """Turns of an agent, and what its client then tells of them."""

    def __init__(self, rng: random.Random, ids: Ids, content: Callable[[int], str]) -> None:
        self.rng, self.ids, self.content = rng, ids, content
        self.session = Session()
        self.said: list[Json] = []
        self.number = self.round = 0

    def turn(self, rounds: int) -> None:
        self._say([{"role": "user", "content": self._name("u")}], self._calling())
        for left in range(rounds - 1, -1, -1):
            self._say(self._results(), self._calling() if left else self._answer())

    def _say(self, new: Sequence[Json], answer: Json) -> None:
        """With all that was said before, or alone; at times as an SDK's retry."""
        told = [*self._shuffled(self.said), *new]
        sent = told if self.rng.random() < 0.6 else [*new]
        if self.rng.random() < 0.3:
            self.session.say(sent, self._answer())
            got = self.session.say(sent, answer, Intent(retry=True))
        else:
            got = self.session.say(sent, answer)
        assert as_sets(got) == as_sets(told)
        assert sent is not told or got == told
        self.said += [*new, answer]
        assert as_sets(self.session.log) == as_sets(self.said)

    def _shuffled(self, said: Sequence[Json]) -> list[Json]:
        told: list[Json] = []
        for role, each in groupby(said, lambda x: x["role"]):
            messages = list(each)
            if role == "tool":
                self.rng.shuffle(messages)
            told += messages
        return told

    def _results(self) -> list[Json]:
        ids = [each["id"] for each in self.said[-1]["tool_calls"]]
        self.rng.shuffle(ids)
        return [
            {"role": "tool", "tool_call_id": id, "content": self.content(self._next())}
            for id in ids
        ]

    def _calling(self) -> Json:
        self.round += 1
        count = self.rng.choice([1, 2, 3])
        calls = [call(self._name("c"), self.ids(self.round, n)) for n in range(count)]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    def _answer(self) -> Json:
        return {"role": "assistant", "content": self._name("a")}

    def _name(self, kind: str) -> str:
        return f"{kind}{self._next()}"

    def _next(self) -> int:
        self.number += 1
        return self.number


def as_sets(messages: Sequence[Json]) -> list[list[str]]:
    """What was said, whatever order the results of a round are in."""
    return [sorted(map(repr, each)) for _, each in groupby(messages, lambda x: x["role"])]


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_in_whatever_order_results_come_each_is_kept_once_and_sent_as_it_is_told(
    ids: Ids, content: Callable[[int], str]
) -> None:
    for seed in range(20):
        loop = Loop(random.Random(seed), ids, content)
        for _ in range(3):
            loop.turn(loop.rng.choice([1, 2, 3]))
