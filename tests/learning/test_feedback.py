"""What people say of answers, and what it sets going."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.learning.feedback import Feedback, feedback_place
from proxy.learning.feedback_desk import NoMessage
from proxy.memory.archive import Session
from proxy.memory.items import Shelf, is_reserved
from proxy.memory.model import SessionKey, message_id
from proxy.memory.work import Work
from tests.support import studying
from tests.support.learning import KAI, Classroom
from tests.support.studying import TENANT, Study

KEY = SessionKey("t", "s")


@pytest.fixture
def study(room: Classroom) -> Study:
    room.settings = studying.settings(instructions={"after_feedback": 2, "application": "shop"})
    return Study(room)


async def session(study: Study) -> Session:
    found = await study.room.store.session(KEY)
    assert found is not None
    return found


async def given(study: Study, exchange: str) -> Feedback | None:
    desk, answer = study.learned.feedback, message_id(exchange, 1)
    return await desk.given(await session(study), KEY, answer)


async def work(study: Study) -> list[Work]:
    return list(await study.room.store.waiting(study.room.clock(), 10))


async def test_the_last_word_about_a_message_counts(study: Study) -> None:
    (exchange,) = await study.room.say("What is a bulla?")
    assert await given(study, exchange) is None
    await study.judge(exchange, 1, "Good!")
    study.room.clock.now += 5
    await study.judge(exchange, -1, "Wrong after all.")
    assert await given(study, exchange) == Feedback(
        session="s",
        message=message_id(exchange, 1),
        exchange=exchange,
        score=-1,
        comment="Wrong after all.",
        profile="default",
        created_at=study.room.clock(),
    )


@pytest.mark.parametrize("message", ["ex_1.7", "ex_2.0", "ex_1", "", "nonsense"])
async def test_of_a_message_that_is_not_there_nothing_can_be_said(
    study: Study, message: str
) -> None:
    await study.room.say("What is a bulla?")
    known = await session(study)
    with pytest.raises(NoMessage):
        await study.learned.feedback.take(known, KEY, message, 1, "")
    with pytest.raises(NoMessage):
        await study.learned.feedback.given(known, KEY, message)


@pytest.mark.parametrize(("user", "shelf"), [("kai", KAI), (None, TENANT)])
async def test_it_lies_with_the_person_or_else_with_the_tenant(
    study: Study, user: str | None, shelf: Shelf
) -> None:
    (exchange,) = await study.room.say("What is a bulla?", user=user)
    await study.judge(exchange, 1, "XYZZY")
    place = feedback_place(user or "", "s", message_id(exchange, 1))
    assert place in await study.room.store.items_at(shelf, [place])
    assert is_reserved(place.namespace)
    other = TENANT if user else KAI
    page = await study.room.store.items(other, (), None, 100)
    assert all(b"XYZZY" not in bytes(item.value) for item in page.items)


async def places(study: Study) -> list[tuple[str, ...]]:
    """Where there is feedback: the namespaces, on whosever shelf."""
    pages = [await study.room.store.items(shelf, (), None, 100) for shelf in (TENANT, KAI)]
    found = [item.namespace for page in pages for item in page.items]
    return [namespace for namespace in found if namespace[-1] == "s"]


async def test_what_was_said_while_a_session_was_nobodys_is_known_to_its_owner(
    study: Study,
) -> None:
    (first,) = await study.room.say("What is a bulla?", user=None)
    await study.judge(first, -1, "Wrong.")
    said = await given(study, first)
    (second,) = await study.room.say("And a stylus?", user="kai")
    assert said is not None and await given(study, first) == said
    assert await given(study, second) is None


async def test_what_the_owner_says_takes_the_place_of_what_was_said_before(study: Study) -> None:
    (exchange,) = await study.room.say("What is a bulla?", user=None)
    await study.judge(exchange, -1, "Wrong.")
    await study.room.say("And a stylus?", user="kai")
    await study.judge(exchange, 1, "Right after all.")
    found = await given(study, exchange)
    assert found is not None and found.comment == "Right after all."
    assert await places(study) == [("users", "kai", "feedback", "s")]


async def test_enough_feedback_makes_a_reflection_due(study: Study) -> None:
    first, second = await study.room.say("What is a bulla?", "And a stylus?")
    await study.judge(first, -1)
    assert not await work(study)
    await study.judge(first, 1)
    assert not await work(study), "one message is one piece of feedback"
    await study.judge(second, 1)
    (due,) = await work(study)
    assert (due.tenant, due.session, due.kind, due.profile) == ("t", "s", "learning", "default")


async def test_no_judgement_and_no_comment_is_nothing_to_reflect_on(study: Study) -> None:
    first, second = await study.room.say("What is a bulla?", "And a stylus?")
    await study.judge(first, 0)
    await study.judge(second, 0)
    assert not await work(study)
    await study.judge(first, 0, "It was too long.")
    await study.judge(second, 0, "So was this.")
    assert len(await work(study)) == 1


async def test_switched_off_feedback_is_kept_and_sets_nothing_going(room: Classroom) -> None:
    room.settings = studying.settings()
    study = Study(room)
    (exchange,) = await room.say("What is a bulla?")
    for score in (1, -1):
        await study.judge(exchange, score)
    found: Any = await given(study, exchange)
    assert found.score == -1 and not await work(study)
    assert not (await room.store.items(TENANT, (), None, 10)).items


async def test_a_person_who_is_erased_lets_nothing_wait(study: Study) -> None:
    first, second = await study.room.say("What is a bulla?", "And a stylus?")
    (other,) = await study.room.say("And clay?", session="t", user="eve")
    for exchange in (first, second):
        await study.judge(exchange, 1)
    await study.judge(other, 1, session="t")
    pending = study.learned.pending
    for _ in range(2):
        assert await study.learned.remarks.person("t", "kai") == 0
    (left,) = await pending.pending(TENANT, "shop")
    assert left[1].user == "eve"
    assert (await pending.waiting(TENANT, "shop")).reflection.waiting == 1
