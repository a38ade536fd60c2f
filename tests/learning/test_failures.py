"""What cannot be learned is in nobody's way: not for ever, and not for each session anew."""

from __future__ import annotations

import pytest

from proxy.background.completion import (
    BudgetSpent,
    Completed,
    Denied,
    Failed,
    NoCredential,
    NoModel,
    Unreadable,
    read_answer,
)
from proxy.memory.model import SessionKey, Work, WorkRequest
from tests.support.learning.harness import DAY, MAY, Harness, learning, states, work

MINUTE, HOUR = 60.0, 3600.0

BLOCKED = b'{"choices": [{"index": 0, "finish_reason": "content_filter"}]}'
MODERATED = b'{"choices": [], "error": {"code": 403, "message": "moderation"}}'


async def asking(harness: Harness, model: str = "m", **said: str) -> dict[str, Work]:
    """The work of sessions in which something was said, one an hour after the other."""
    for session, text in said.items():
        harness.clock.now += HOUR
        await harness.say(text, session=session, model=model)
        due = WorkRequest(kind="learning", profile="", due_at=harness.clock())
        await harness.store.enqueue(SessionKey("t", session), due)
    return {work.session: work for work in await harness.store.waiting(harness.clock(), 10)}


@pytest.mark.parametrize("body", [BLOCKED, MODERATED, b"<html>"])
async def test_what_a_model_may_not_answer_is_skipped_and_what_follows_is_learned(
    harness: Harness, body: bytes
) -> None:
    first = (await asking(harness, a="I live in Berlin."))["a"]
    harness.model.answers = [lambda _: read_answer(body).text] * 8
    job = harness.job
    for _ in range(3):
        with pytest.raises(Failed):
            await job.run(first)
        harness.clock.now += HOUR
    assert await job.run(first) is None
    assert harness.skipped == ["facts"]
    harness.model.answers.clear()
    second = (await asking(harness, b="I moved to Paris."))["b"]
    assert await job.run(second) is None
    assert await harness.current() == ["The user lives in Paris."]


@pytest.mark.parametrize("text", ['{"operations": []}', '{"operations": [{"op": "add", "text": "I'])
async def test_an_answer_that_is_cut_off_is_asked_for_once_more(
    harness: Harness, text: str
) -> None:
    """Even where it is one as far as it goes: what would have followed nobody knows."""
    cut = Completed(text, "m", is_truncated=True)
    first = (await asking(harness, a="I live in Berlin."))["a"]
    harness.model.answers = [cut]
    assert await harness.job.run(first) is None
    assert await harness.current() == ["The user lives in Berlin."]
    assert len(harness.model.asked) == 2
    second = (await asking(harness, b="I moved to Paris."))["b"]
    harness.model.answers = [cut, cut]
    with pytest.raises(Unreadable, match="cut off"):
        await harness.job.run(second)
    assert await harness.job.run(second) is None
    assert await harness.current() == ["The user lives in Paris."]


@pytest.mark.parametrize("body", [MODERATED, b"<html>"])
async def test_an_outage_whose_answers_have_status_200_costs_one_batch(
    harness: Harness, body: bytes
) -> None:
    harness.settings = learning(max_input_tokens=200)
    await harness.say(*(f"I live in {city}. " + "x " * 390 for city in ("Rome", "Oslo", "Bonn")))
    job, ends = harness.job, harness.clock() + 3 * MINUTE
    harness.model.answers = [lambda _: read_answer(body).text] * 100
    while harness.clock() < ends:
        with pytest.raises(Failed):
            await job.run(work(attempts=9))
        harness.clock.now += 1
    harness.model.answers.clear()
    harness.clock.now += HOUR
    assert await job.run(work(attempts=9)) is None
    assert harness.skipped == ["facts"]
    assert await harness.current() == ["The user lives in Bonn."]
    assert len(await harness.facts()) == 2


async def test_what_an_upstream_has_failed_at_is_tried_once_for_all_sessions(
    harness: Harness,
) -> None:
    works = await asking(harness, a="I live in Berlin.", b="I like tea.", c="I like jam.")
    job, began = harness.job, harness.clock()
    harness.model.answers = [Failed("503"), Failed("503"), Failed("429", 60.0)]
    for tries in range(1, 4):
        for each in works.values():
            with pytest.raises(Failed) as caught:
                await job.run(each)
        assert len(harness.model.asked) == tries
        assert caught.value.retry_after is not None
        harness.clock.now += caught.value.retry_after
    assert harness.clock() == began + 0.75 * (5 + 10) + 60
    assert await job.run(works["c"]) is None
    assert await harness.current() == ["The user lives in Berlin."]
    assert harness.skipped == []


@pytest.mark.parametrize("failure", [Failed("503"), Denied("401"), NoCredential("whose?")])
async def test_a_session_whose_model_is_down_is_in_nobody_elses_way(
    harness: Harness, failure: Exception
) -> None:
    await asking(harness, old="I live in Berlin.", model="dead")
    works = await asking(harness, new="I moved to Paris.")
    job, harness.model.answers = harness.job, [failure]
    assert await job.run(works["new"]) is None
    assert await harness.current() == ["The user lives in Paris."]
    harness.clock.now += DAY
    assert await job.run(works["old"]) is None
    assert await harness.current() == ["The user lives in Paris."]
    berlin, _ = await harness.facts()
    assert (berlin.text, berlin.state) == ("The user lives in Berlin.", "superseded")


async def test_of_several_sessions_of_a_model_that_is_down_one_is_tried(harness: Harness) -> None:
    harness.model.down = {"dead"}
    for n in range(3):
        await asking(harness, **{f"old{n}": "I live in Berlin."}, model="dead")
        works = await asking(harness, **{f"new{n}": f"I have a cat called {n}."})
    harness.model.rules = [states(r"a cat called (\w+)", "The user has a cat called {}.")]
    assert await harness.job.run(works["new2"]) is None
    assert await harness.current() == [f"The user has a cat called {n}." for n in range(3)]
    failed = [asked for asked in harness.model.asked if asked.default_model == "dead"]
    assert len(failed) == 1


async def test_what_waits_for_others_of_the_same_model_is_tried_for_itself(
    harness: Harness,
) -> None:
    """Whose message it is that an upstream fails at."""
    harness.settings = learning(max_input_tokens=200)
    works = await asking(harness, a="I live in Rome. " + "x " * 390, b="I moved to Paris.")
    harness.model.answers = [Failed("500")]
    assert await harness.job.run(works["b"]) is None
    assert await harness.current() == ["The user lives in Paris."]


async def test_what_names_no_model_is_not_skipped_and_read_with_what_does(
    harness: Harness,
) -> None:
    """An import is nobody's chat; what its person says next is."""
    old = (await asking(harness, old="I live in Berlin.", model=""))["old"]
    job, harness.model.answers = harness.job, [NoModel("no model")]
    with pytest.raises(NoModel):
        await job.run(old)
    assert (await harness.facts(), harness.skipped) == ([], [])
    works = await asking(harness, new="I moved to Paris.")
    assert await job.run(works["new"]) is None
    assert [asked.default_model for asked in harness.model.asked] == [None, "m"]
    assert [fact.text for fact in await harness.facts()] == [
        "The user lives in Berlin.",
        "The user lives in Paris.",
    ]


async def test_tokens_that_are_spent_are_so_for_all_sessions(harness: Harness) -> None:
    await asking(harness, old="I live in Berlin.", model="dead")
    works = await asking(harness, new="I moved to Paris.")
    harness.model.answers = [BudgetSpent(MAY + DAY)]
    with pytest.raises(BudgetSpent):
        await harness.job.run(works["new"])
    assert await harness.facts() == []
