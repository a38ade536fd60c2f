"""The writer's upstream is away for an hour, or the day's tokens are spent: in virtual time.

Everything from the chat's decisions to the request for a summary is the proxy's own; the upstream
is a function.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pytest

from proxy.background.budget import DAY, Budget, day_of
from proxy.background.completer import UpstreamCompleter
from proxy.background.credentials import Credentials
from proxy.background.runner import POLL, Backoff, Runner
from proxy.errors import RawHeaders
from proxy.gateway.context import window_of
from proxy.memory.model import SessionKey
from proxy.memory.planner import Planner
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.spool import Spool
from proxy.settings import ProfileSettings
from proxy.settings.learned import BackgroundSettings
from proxy.summary.summarizer import Summarizer
from proxy.telemetry import Telemetry
from proxy.tenancy import ANONYMOUS
from proxy.wire.failures import UpstreamTimeout, UpstreamUnreachable
from proxy.wire.origin import Origin
from tests.support.oracle.store import InMemoryStore
from tests.support.store.recording import recorder_over
from tests.support.talk.chronicle import (
    EACH,
    Chronicle,
    View,
    names_in,
    new_names_in,
    profile_of,
    read_name,
    words,
)
from tests.support.talk.shorthand import message, rerendered
from tests.support.talk.simulator import choice
from tests.support.upstream.answers import chat_completion
from tests.support.virtual import BEGAN, clock, virtually

KEY = SessionKey(ANONYMOUS, "session")
HOUR = 3600.0
PACE = BackgroundSettings()
USAGE = {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}

Answer = tuple[int, object] | Exception
"""The status and the body, or what goes wrong."""


@dataclass
class PlayedReply:
    """An answer that is all there."""

    status: int
    body: bytes
    headers: RawHeaders

    def chunks(self) -> AsyncIterator[bytes]:
        raise NotImplementedError

    async def read(self, limit: int = 0) -> bytes:
        return self.body

    async def close(self) -> None:
        pass


class PlayedUpstream:
    """Answers what ``plays`` says to a text; ``asked`` are the times and texts of all requests."""

    exchanges = 0
    origin = Origin.of("http://upstream.example/v1")

    def __init__(self, plays: Callable[[str], Answer]) -> None:
        self._plays = plays
        self.asked: list[tuple[float, str]] = []

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def send(
        self,
        method: str,
        target: bytes,
        headers: RawHeaders,
        body: bytes | AsyncIterator[bytes] | None,
        content_length: int | None = None,
    ) -> PlayedReply:
        assert isinstance(body, bytes)
        text = json.loads(body)["messages"][0]["content"]
        self.asked.append((clock(), text))
        answer = self._plays(text)
        if isinstance(answer, Exception):
            raise answer
        status, said = answer
        return PlayedReply(status, json.dumps(said).encode(), [(b"retry-after", b"3")])

    def times(self, since: float = 0.0) -> list[float]:
        return [when for when, _ in self.asked if when >= since]

    def read(self, since: float = 0.0) -> list[str]:
        """The names of all new lines, in the order in which it was asked."""
        return [name for when, text in self.asked if when >= since for name in new_names_in(text)]


def summary(text: str) -> Answer:
    """The upstream is well."""
    return 200, chat_completion("Told: " + " ".join(names_in(text)), usage=USAGE)


@dataclass
class Office:
    """A session, and the background that summarises it."""

    talk: Chronicle
    store: InMemoryStore
    runner: Runner
    turns: int = 0

    async def says(self) -> View:
        """One more turn, without anybody waiting for anything."""
        now, turn = clock(), self.turns
        self.turns += 1
        view = await self.talk.say([message(f"u{turn}", "user")], choice(f"a{turn}"))
        assert clock() == now
        said = view.check()
        assert not view.wrong
        assert said == [*names(turn), f"u{turn}"]
        return view

    async def says_until(self, then: float, every: float) -> list[View]:
        views = []
        while clock() < then:
            views.append(await self.says())
            await asyncio.sleep(every)
        return views


def names(turns: int) -> list[str]:
    return [name for turn in range(turns) for name in (f"u{turn}", f"a{turn}")]


def few(max_input_tokens: int) -> ProfileSettings:
    """The last two turns, and a summary of those before."""
    summary = {"max_input_tokens": max_input_tokens, "max_tokens": 100_000}
    return profile_of(
        window="message_window", max_messages=4, evict_to=1.0, max_tokens=200_000, summary=summary
    )


@asynccontextmanager
async def office(
    folder: Path, up: PlayedUpstream, max_input_tokens: int, tokens_per_day: int = 0
) -> AsyncIterator[Office]:
    store, profile = InMemoryStore(clock), few(max_input_tokens)
    spool = Spool(folder / "spool.db", store.name, 1 << 24)
    spool.open()
    planner = Planner(store, answer_comparison=lambda bodies: rerendered)
    completer = UpstreamCompleter(
        {"": up},
        Credentials(ANONYMOUS),
        Budget(store, tokens_per_day, clock),
        lambda model: words,
        Telemetry(),
        clock,
    )
    summarizer = Summarizer(
        store, completer, lambda name: profile, window_of, read_name, words, clock
    )
    backoff = Backoff(PACE.retry_seconds, PACE.max_retry_seconds)
    runner = Runner(store, {"summary": summarizer}, 4, backoff, clock, lambda kind, what: None)
    listeners = Listeners(on_due=lambda due: runner.wake_at(clock()) if due else None)
    recorder = recorder_over(
        store, spool, planner, lambda model: lambda body: EACH, listeners=listeners
    )
    runner.open()
    try:
        yield Office(Chronicle(recorder, KEY, profile, clock), store, runner)
    finally:
        await runner.close(0)
        spool.close()


FAILURES: list[Answer] = [
    (503, {"error": {"message": "overloaded"}}),
    (429, {"error": {"message": "slow down"}}),
    UpstreamUnreachable("no connection"),
    (200, {"object": "nonsense"}),
    UpstreamTimeout("no answer"),
]
MAX_ATTEMPTS = 16
"""After 5, 10, 20 ... 320 seconds less a quarter, then every 450 at the soonest."""


def test_after_an_hour_without_the_upstream_all_is_folded_in_once_and_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = cycle(FAILURES)

    def plays(text: str) -> Answer:
        return next(failures) if clock() < BEGAN + HOUR else summary(text)

    async def main() -> None:
        up = PlayedUpstream(plays)
        async with office(tmp_path, up, max_input_tokens=200) as one:
            views = await one.says_until(BEGAN + HOUR, every=20.0)
            attempts = len(up.asked)
            assert 5 < attempts <= MAX_ATTEMPTS
            for turn, view in enumerate(views):
                assert view.told == []
                if turn > 3:  # the first attempt has failed by then
                    assert [e.card.digest for e in view.shown] == names(turn)[-4:]
            await one.says_until(BEGAN + HOUR + PACE.max_retry_seconds + POLL, every=20.0)
            await asyncio.sleep(1.5 * POLL)
            told = names(one.turns - 2)
            assert up.read(since=BEGAN + HOUR) == told
            view = await one.says()
            assert view.told == told
            assert [entry.card.digest for entry in view.shown] == names(one.turns - 1)[-4:]
            with capsys.disabled():
                print(
                    f"\nan hour away: {attempts} attempts in {len(views)} turns, then "
                    f"{len(told) // 2} turns told once in {len(up.asked) - attempts} requests"
                )

    virtually(main())


def test_when_the_days_tokens_are_spent_nothing_is_asked_until_the_next_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    midnight = (BEGAN // DAY + 1) * DAY

    async def main() -> None:
        up = PlayedUpstream(summary)
        async with office(tmp_path, up, max_input_tokens=4000, tokens_per_day=250) as one:
            views = await one.says_until(midnight - 60.0, every=60.0)
            await asyncio.sleep(midnight - clock() - 1.0)
            told = up.read()
            assert (len(up.asked), told) == (3, names(3))
            (spent,) = (await one.store.usage_of_days(ANONYMOUS, [day_of(BEGAN)])).values()
            assert (spent.calls, spent.tokens) == (3, 300)
            for turn, view in enumerate(views[6:], 6):
                assert view.told == told
                assert [entry.card.digest for entry in view.shown] == names(turn)[-4:]
            await asyncio.sleep(1.0 + 1.5 * POLL)
            (asked,) = up.times(since=midnight)
            assert asked <= midnight + 1.5 * POLL
            assert up.read() == names(one.turns - 2)
            view = await one.says()
            assert view.told == names(one.turns - 3)
            with capsys.disabled():
                waited = (len(view.told) - len(told)) // 2
                print(
                    f"\nthe day's tokens: {len(told) // 2} turns told, {waited} waited, "
                    f"and were told {asked - midnight:.1f} s after midnight in one request"
                )

    virtually(main())
