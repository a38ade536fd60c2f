"""The model is asked in time, within bounds, and for one tenant at another's expense never."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from proxy.background.completion import (
    Assignment,
    BudgetSpent,
    Completed,
    Failed,
    NoCredential,
    Paused,
    Refused,
)
from proxy.memory.store import StoreError
from proxy.rewrite.question import Utterance
from proxy.rewrite.rewriter import (
    AT_ONCE,
    AT_ONCE_OF_ONE,
    BUSY,
    FAILED,
    LATE,
    MAX_ANSWER_BYTES,
    SAME,
    TOLERATED,
    Rewriter,
    Rewriting,
    Rewritten,
)
from proxy.settings import RewriteSettings
from tests.support.waiting import PATIENCE

BEFORE = (Utterance("user", "I compare the hotels Aurora and Borealis."),)
QUESTION = "And the other one?"
SETTINGS = RewriteSettings(enabled=True, model="small", timeout=PATIENCE)


class Scripted:
    """A completer that answers, fails, or waits for ever (None)."""

    def __init__(self, answer: str | Exception | None) -> None:
        self.answer = answer
        self.asked: list[Assignment] = []
        self.ended = 0

    def is_ready(self, assignment: Assignment) -> bool:
        return True

    async def complete(self, assignment: Assignment) -> Completed:
        self.asked.append(assignment)
        try:
            if self.answer is None:
                await asyncio.Event().wait()
        finally:
            self.ended += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return Completed(str(self.answer), "small")


def begin(rewriter: Rewriter, tenant: str = "t", settings: RewriteSettings = SETTINGS) -> Rewriting:
    return rewriter.begin(tenant, settings, "chat", QUESTION, BEFORE)


async def test_what_is_asked_follows_the_settings() -> None:
    completer = Scripted("What about the hotel Borealis?")
    settings = RewriteSettings(enabled=True, url="http://127.0.0.1:1/v1", parameters={"n_": 1})
    found = await begin(Rewriter(completer, len), settings=settings).result()
    assert found == Rewritten("rewritten", "what about the hotel borealis")
    (asked,) = completer.asked
    assert (asked.tenant, asked.feature, asked.model, asked.default_model) == (
        "t",
        "rewrite",
        "",
        "chat",
    )
    assert (asked.url, asked.key, asked.parameters) == (settings.url, None, {"n_": 1})
    assert (asked.timeout, asked.max_answer_bytes) == (settings.timeout, MAX_ANSWER_BYTES)
    assert QUESTION in asked.text


@pytest.mark.parametrize(
    "error",
    [
        Refused("no"),
        Failed("no"),
        NoCredential("no"),
        BudgetSpent(0.0),
        Paused(0.0),
        StoreError("down"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_failure_leaves_the_question_as_it_is(error: Exception) -> None:
    assert await begin(Rewriter(Scripted(error), len)).result() == FAILED


async def test_a_bug_leaves_the_question_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    assert await begin(Rewriter(Scripted(KeyError("a bug")), len)).result() == FAILED
    assert "looked for as it is" in caplog.text


async def test_nonsense_leaves_the_question_as_it_is() -> None:
    assert await begin(Rewriter(Scripted("I am a teapot."), len)).result() == SAME


async def test_who_is_late_is_not_waited_for_and_asked_no_longer() -> None:
    completer = Scripted(None)
    settings = SETTINGS.model_copy(update={"timeout": 0.01})
    rewriter = Rewriter(completer, len)
    assert await begin(rewriter, settings=settings).result() == LATE
    await until(lambda: repr(rewriter) == "<Rewriter [running: 0]>")
    assert completer.ended == 1


async def test_the_time_runs_from_the_beginning() -> None:
    """What was spent on loading is not given to the model once more."""
    settings = SETTINGS.model_copy(update={"timeout": 0.4})
    begun = begin(Rewriter(Scripted(None), len), settings=settings)
    loop = asyncio.get_running_loop()
    loaded = loop.create_future()
    loop.call_later(settings.timeout, loaded.set_result, None)
    await loaded
    async with asyncio.timeout(settings.timeout / 2):
        assert await begun.result() == LATE


async def test_one_tenant_takes_a_part_of_the_places_only() -> None:
    rewriter = Rewriter(Scripted(None), len)
    mine = [begin(rewriter, "greedy") for _ in range(AT_ONCE_OF_ONE)]
    assert await begin(rewriter, "greedy").result() == BUSY
    others = [begin(rewriter, f"t{n}") for n in range(AT_ONCE - AT_ONCE_OF_ONE)]
    assert await begin(rewriter, "one-more").result() == BUSY
    await rewriter.close()
    assert {await one.result() for one in (*mine, *others)} == {FAILED}


async def test_a_model_that_is_down_costs_a_few_questions_their_time_and_no_more() -> None:
    completer = Scripted(Failed("down"))
    rewriter = Rewriter(completer, len)
    for _ in range(TOLERATED):
        assert await begin(rewriter).result() == FAILED
        await asyncio.sleep(0)
    assert await begin(rewriter).result() == BUSY
    assert len(completer.asked) == TOLERATED
    completer.answer = "What about the Borealis?"
    assert (await begin(rewriter, "another").result()).outcome == "rewritten"


async def test_a_good_answer_forgives() -> None:
    completer = Scripted(Failed("down"))
    rewriter = Rewriter(completer, len)
    for _ in range(2 * TOLERATED):
        completer.answer = Failed("down")
        await begin(rewriter).result()
        completer.answer = "What about the Borealis?"
        assert (await begin(rewriter).result()).outcome == "rewritten"
        await asyncio.sleep(0)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0)
