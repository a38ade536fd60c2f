"""What cannot be learned is in nobody's way: not for ever, and not for each session anew."""

from __future__ import annotations

import pytest

from proxy.background.completion import Failed, read_answer
from proxy.memory.model import Due, SessionKey, Work
from tests.support.learning.harness import DAY, MAY, Harness

BLOCKED = b'{"choices": [{"index": 0, "finish_reason": "content_filter"}]}'
MODERATED = b'{"choices": [], "error": {"code": 403, "message": "moderation"}}'


async def asking(harness: Harness, **said: str) -> dict[str, Work]:
    """The work of sessions in which something was said, a day after the other."""
    for n, (session, text) in enumerate(said.items()):
        await harness.say(text, session=session, at=MAY + n * DAY)
        due = Due(kind="learning", profile="", at=harness.clock() + n)
        await harness.store.enqueue(SessionKey("t", session), due)
    waiting = await harness.store.waiting(harness.clock() + len(said), 10)
    return {work.session: work for work in waiting}


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
    assert await job.run(first) is None
    assert harness.skipped == ["facts"]
    harness.model.answers.clear()
    second = (await asking(harness, b="I moved to Paris."))["b"]
    assert await job.run(second) is None
    assert await harness.current() == ["The user lives in Paris."]


async def test_what_an_upstream_has_failed_at_is_tried_once_for_all_sessions(
    harness: Harness,
) -> None:
    works = await asking(harness, a="I live in Berlin.", b="I like tea.", c="I like jam.")
    job = harness.job
    harness.model.answers = [Failed("503"), Failed("503"), Failed("429", 60.0)]
    for tries in range(1, 4):
        for work in works.values():
            with pytest.raises(Failed) as caught:
                await job.run(work)
        assert len(harness.model.asked) == tries
        assert caught.value.retry_after is not None
        harness.clock.now += caught.value.retry_after
    assert harness.clock() == MAY + 0.75 * (5 + 10) + 60
    assert await job.run(works["c"]) is None
    assert await harness.current() == ["The user lives in Berlin."]
    assert harness.skipped == []
