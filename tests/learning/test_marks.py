"""How far sessions were read is forgotten behind them."""

from __future__ import annotations

import time

import pytest

from proxy.learning import batch
from proxy.learning.batch import GRACE, READ_MARKS
from proxy.learning.job import LearningJob
from proxy.memory.items import PEOPLE
from proxy.memory.model import SessionKey
from tests.support.learning.harness import KAI, Harness, work


async def marked(harness: Harness) -> list[str]:
    """The sessions of which is known how far they were read."""
    page = await harness.store.items(KAI, (PEOPLE, "kai", READ_MARKS), None, 100)
    return [item.key for item in page.items]


async def read(harness: Harness, job: LearningJob, *sessions: str) -> None:
    for session in sessions:
        await harness.say("I live in Rome.", session=session)
        await job.run(work(session))


async def test_marks_of_sessions_that_are_gone_go_too(harness: Harness) -> None:
    """Otherwise each chat of a person would leave some for ever, where chats expire."""
    job = harness.job
    await read(harness, job, "a", "b", "c")
    await harness.store.delete(SessionKey("t", "a"))
    await harness.store.delete(SessionKey("t", "c"))
    harness.clock.now = time.time() + GRACE + 60
    await read(harness, job, "d")
    assert await marked(harness) == ["b", "d"]


async def test_a_mark_stays_for_a_day_as_its_session_may_be_on_its_way(harness: Harness) -> None:
    job = harness.job
    await read(harness, job, "a")
    await harness.store.delete(SessionKey("t", "a"))
    harness.clock.now = time.time() + GRACE / 2
    await read(harness, job, "b")
    assert await marked(harness) == ["a", "b"]


async def test_many_marks_are_gone_through_some_at_a_time_and_then_from_the_beginning(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "SWEPT_AT_ONCE", 2)
    job = harness.job
    await read(harness, job, "a", "b", "c", "d")
    harness.clock.now = time.time() + GRACE + 60
    await read(harness, job, "z")  # has looked at the first two
    for session in "abcd":
        await harness.store.delete(SessionKey("t", session))
    await read(harness, job, "z")
    assert await marked(harness) == ["a", "b", "z"]
    await read(harness, job, "z")
    await read(harness, job, "z")
    assert await marked(harness) == ["z"]
