"""Clients of every kind, while summaries are made, fail and race: no turn is lost or told twice.

Everything decides as it does in the proxy; the model and the moments are the test's.  After each
exchange: what the summary tells, what is shown as it was said, and what the client sends are
together all that was said, and nothing is both told and shown.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proxy.background.completion import Failed, Refused
from proxy.chat.message import ChatMessage
from proxy.chat.reply.answer import Choice
from proxy.memory.planner import Planner
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.recorder import Recorder
from proxy.memory.recording.spool import Spool
from proxy.memory.store import StoreError
from proxy.settings import ProfileSettings
from proxy.stores.open import Backend
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.clock import Clock
from tests.support.faulty import FaultyStore
from tests.support.learning.summarizers import KEY, Summarizers
from tests.support.store.recording import recorder_over
from tests.support.talk.chronicle import EACH, Chronicle, nothing, profile_of
from tests.support.talk.shorthand import message, rerendered
from tests.support.talk.simulator import VIEWS, Conversation, choice
from tests.support.waiting import PATIENCE

KINDS = [kind for kind in VIEWS if kind != "no tool messages"]
KINDS += ["own summary", "edit", "regenerate", "rewind", "retry", "interrupted"]

TROUBLES = (Failed("503"), Refused("400"), "I'm sorry, I can't do that.")


class Session:
    """What the simulated clients talk to; all that can happen besides happens at random."""

    def __init__(
        self, rng: random.Random, store: Backend, recorder: Recorder, profile: ProfileSettings
    ) -> None:
        self.rng, self.store, self.recorder = rng, store, recorder
        self.runner, clock = asyncio.Runner(), Clock()
        self.clock, self.summarizers = clock, Summarizers(store, profile, clock)
        self.chronicle = Chronicle(recorder, KEY, profile, clock)
        self.chronicle.meanwhile = self._stir
        self.wrong: list[str] = []
        self.seen = Counter[str]()

    def say(self, m: Sequence[ChatMessage], answer: Choice, intent: Intent) -> list[str]:
        return self.runner.run(self._say(m, answer, intent))

    async def _say(self, m: Sequence[ChatMessage], answer: Choice, intent: Intent) -> list[str]:
        self.clock.now += 1
        await self._stir()
        view = await self.chronicle.say(m, answer, intent)
        sent = view.check()
        self.wrong += view.wrong
        self.seen.update(told=bool(view.told), evicted=bool(view.evicted), prompts=1)
        return sent

    @property
    def log(self) -> list[str]:
        log = self.runner.run(self.chronicle.look()).log
        return [entry.card.digest for entry in log]

    @property
    def history(self) -> Counter[str]:
        """Of all that is stored."""
        page = self.runner.run(self.store.messages(KEY, ("active", "superseded"), 0, 10_000))
        return Counter(message.card.digest for message in page.items)

    async def _stir(self) -> None:
        """Something may happen."""
        happens = self.rng.choice((self._nothing, self._begin, self._end, self._kill, self._work))
        await happens()
        if isinstance(self.store, FaultyStore) and self.rng.random() < 0.2:
            await self._fail_or_recover(self.store)

    async def _nothing(self) -> None:
        pass

    async def _begin(self) -> None:
        await self.summarizers.begin()
        self.seen["begun"] += 1

    async def _end(self) -> None:
        if self.summarizers.open:
            answer = self.rng.choice((None, None, *TROUBLES))
            await self.summarizers.end(self.rng.randrange(len(self.summarizers.open)), answer)
            self.seen["failed"] += answer is not None

    async def _kill(self) -> None:
        if self.summarizers.open:
            await self.summarizers.kill(self.rng.randrange(len(self.summarizers.open)))

    async def _work(self) -> None:
        await self.summarizers.work()

    async def _fail_or_recover(self, store: FaultyStore) -> None:
        """A store that takes no commits; what it did not take it gets when it does again."""
        if store.broken:
            store.recover()
            await self.recorder.replay()
        else:
            store.fail(StoreError("away"), "commit")
            self.seen["away"] += 1

    def settle(self) -> list[str]:
        """All goes well at last; what is still to be summarised then."""
        return self.runner.run(self._settle())

    async def _settle(self) -> list[str]:
        if isinstance(self.store, FaultyStore):
            self.store.recover()
        await self.recorder.replay()
        while self.summarizers.open:
            await self.summarizers.end(0, None)
        await self.summarizers.work()
        return await self.summarizers.waits()

    def close(self) -> None:
        self.runner.run(self.recorder.close(5))
        self.runner.run(self.store.close())
        self.runner.close()


@contextmanager
def session(
    rng: random.Random, make: Callable[[Path], Backend], profile: ProfileSettings
) -> Iterator[Session]:
    with TemporaryDirectory() as folder:
        store = make(Path(folder))
        spool = Spool(Path(folder) / "spool.db", store.name, 1 << 24)
        spool.open()
        planner = Planner(store, answer_comparison=lambda bodies: rerendered)
        recorder = recorder_over(store, spool, planner, lambda model: lambda body: EACH, 10.0)
        opened = Session(rng, store, recorder, profile)
        try:
            opened.runner.run(store.open())
            yield opened
        finally:
            opened.close()


def in_file(folder: Path) -> Backend:
    return SQLiteStore(folder / "memory.db", timeout=PATIENCE, commit_timeout=PATIENCE)


def in_memory(folder: Path) -> Backend:
    return FaultyStore()


def windows() -> st.SearchStrategy[dict[str, Any]]:
    """Of all kinds and so small that they evict, with room beside them for all that waits."""
    most = 100_000
    of_messages = st.fixed_dictionaries(
        {"window": st.just("message_window"), "max_messages": st.integers(1, 8)}
    )
    of_tokens = st.integers(0, 8 * EACH).map(lambda n: {"max_tokens": most + n})
    other = st.sampled_from(["all", "none"]).map(lambda name: {"window": name})
    any_mode = st.sampled_from(["summary_buffer", "summary"])
    return st.builds(
        lambda window, mode, evict_to, by_turn: {
            "max_tokens": 2 * most,
            "evict_to": evict_to,
            "start_on_user": by_turn,
            "summary": {"mode": mode, "max_tokens": most},
            **window,
        },
        of_messages | of_tokens | other,
        any_mode,
        st.sampled_from([0.5, 0.7, 1.0]),
        st.booleans(),
    )


EVICTING: dict[str, Any] = {
    "window": "message_window",
    "max_messages": 2,
    "evict_to": 0.5,
    "max_tokens": 200_000,
    "summary": {"mode": "summary_buffer", "max_tokens": 100_000},
}
"""A window that evicts where no summary comes."""


@pytest.mark.parametrize("versions", [1, 3])
def test_a_retry_of_what_a_summary_tells_gets_the_summary_before_it_and_all_the_rest(
    versions: int,
) -> None:
    """Its client shows nothing of the session, which is not looked at as a whole otherwise."""

    async def main(talk: Chronicle, summarizers: Summarizers) -> None:
        talk.meanwhile = nothing
        for turn in range(3):
            await talk.say([message(f"u{turn}", "user")], choice(f"a{turn}"))
            if turn + versions >= 3:
                await summarizers.work()
        view = await talk.say([message("u2", "user")], choice("a9"), Intent(retry=True))
        assert view.check() == ["u0", "a0", "u1", "a1", "u2"]
        assert view.told == (["u0", "a0", "u1", "a1"] if versions > 1 else [])
        assert not view.wrong

    profile = profile_of(summary={"mode": "summary"})
    with session(random.Random(0), in_memory, profile) as opened:
        opened.runner.run(main(opened.chronicle, opened.summarizers))


CONVERSATIONS = given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=12),
    window=windows(),
    rng=st.randoms(use_true_random=False),
)


def play(
    kinds: list[str],
    window: dict[str, Any],
    rng: random.Random,
    make: Callable[[Path], Backend],
    seen: Counter[str],
) -> None:
    with session(rng, make, profile_of(**window)) as memory:
        talk = Conversation(rng, KINDS, memory=memory)  # type: ignore[arg-type]
        talk.play(kinds)
        assert not memory.wrong
        assert not talk.wrong
        assert not memory.settle(), "forgotten"
        talk.play(["new only"])
        assert not memory.wrong
        assert not talk.wrong
        memory.settle()
        assert not talk.lost
        seen.update(memory.seen)


def told_of(seen: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(seen.items()))


@pytest.mark.slow
def test_in_memory_with_commits_that_fail(capsys: pytest.CaptureFixture[str]) -> None:
    seen = Counter[str]()

    @settings(
        max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @CONVERSATIONS
    @example(["new only"] * 12, EVICTING, random.Random(10))  # few others evict
    def plays(kinds: list[str], window: dict[str, Any], rng: random.Random) -> None:
        play(kinds, window, rng, in_memory, seen)

    plays()
    assert min(seen["told"], seen["evicted"], seen["begun"], seen["failed"], seen["away"]) > 0
    with capsys.disabled():
        print(f"\nsummaries of simulated clients: {told_of(seen)}")


def test_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    seen = Counter[str]()

    @settings(
        max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @CONVERSATIONS
    def plays(kinds: list[str], window: dict[str, Any], rng: random.Random) -> None:
        play(kinds, window, rng, in_file, seen)

    plays()
    # Too few conversations for each to have evictions that no client resends: see the ones before.
    assert min(seen["told"], seen["begun"], seen["failed"]) > 0
    with capsys.disabled():
        print(f"\nsummaries of simulated clients: {told_of(seen)}")
