"""What repeats a message that is edited or removed, and how far a copy of a session was read."""

from __future__ import annotations

import json

import msgspec
import pytest

from proxy.learning.episode import Episode
from proxy.learning.feedback import drop_feedback
from proxy.learning.lesson import Mark, mark_place
from proxy.learning.lesson_marks import read_on
from proxy.learning.message_forgetting import forget_examples, forget_proposals
from proxy.memory.forking import Fork, forked
from proxy.memory.items import Change
from proxy.memory.model import SessionKey, message_id
from proxy.memory.reading import read_session
from tests.support import studying
from tests.support.learning import KAI, Classroom
from tests.support.studying import TENANT, Study

S = SessionKey("t", "s")
SORTING, BAKING = "How do I sort a list?", "How long does bread bake?"


@pytest.fixture
def study(room: Classroom) -> Study:
    room.settings = studying.settings(episodes={})
    return Study(room)


async def questions(study: Study) -> list[str]:
    page = await study.learned.episodes.episodes(KAI, None, 100)
    found = [msgspec.json.decode(item.value, type=Episode) for item in page.items]
    return sorted(episode.question for episode in found)


async def test_examples_of_a_turn_are_dropped_and_no_others(study: Study) -> None:
    for session in ("s", "other"):
        for exchange in await study.room.say(SORTING, BAKING, session=session):
            await study.judge(exchange, 1, session=session)
    assert await questions(study) == sorted([SORTING, BAKING] * 2)
    await forget_examples(study.learned.episodes, study.room.store, S, "kai", 1)
    assert await questions(study) == sorted([BAKING, BAKING, SORTING])
    await forget_examples(study.learned.episodes, study.room.store, S, "kai", 1)
    assert len(await questions(study)) == 3


async def test_what_was_said_of_a_message_is_dropped(study: Study) -> None:
    first, second = await study.room.say(SORTING, BAKING)
    for exchange in (first, second):
        await study.judge(exchange, -1)
    await drop_feedback(study.room.store, S, "kai", [message_id(first, 1)])
    found = await study.room.store.items(KAI, ("users", "kai", "feedback"), None, 10)
    assert [item.key for item in found.items] == [message_id(second, 1)]
    await drop_feedback(study.room.store, S, "kai", [])


async def test_what_was_said_while_its_session_was_nobodys_is_dropped_as_well(
    study: Study,
) -> None:
    first, second = await study.room.say(SORTING, BAKING, user=None)
    for exchange in (first, second):
        await study.judge(exchange, -1)
    await study.room.say(SORTING, user="kai")
    await drop_feedback(study.room.store, S, "kai", [message_id(first, 1)])
    found = await study.room.store.items(TENANT, ("instructions", "/feedback"), None, 10)
    assert [item.key for item in found.items] == [message_id(second, 1)]


async def mark(study: Study, session: str) -> Mark | None:
    place = mark_place("kai", "facts", session)
    item = (await study.room.store.items_at(KAI, [place])).get(place)
    return msgspec.json.decode(item.value, type=Mark) if item else None


@pytest.mark.parametrize(("until", "seq"), [(None, 4), (0, 2)])
async def test_a_copy_was_read_as_far_as_what_it_was_copied_from(
    study: Study, until: int | None, seq: int
) -> None:
    exchanges = await study.room.say(SORTING, BAKING)
    old = await study.room.store.session(S)
    assert old is not None
    read = Mark(seq=4, began=old.created_at, without=(exchanges[0],))
    await _put(study, read)
    archived = await read_session(study.room.store, S)
    assert archived is not None
    last = None if until is None else message_id(exchanges[until], 1)
    copy = forked(archived, Fork("u", old.created_at + 50, last))

    await read_on(study.room.store, old, copy.session, "t")

    began = old.created_at + 50
    assert await mark(study, "u") == Mark(seq=seq, began=began, without=(exchanges[0],))
    assert await mark(study, "s") == read


async def test_a_copy_of_what_was_never_read_has_no_mark(study: Study) -> None:
    await study.room.say(SORTING)
    old = await study.room.store.session(S)
    assert old is not None
    await read_on(study.room.store, old, old, "t")
    assert await mark(study, "s") is None


async def _put(study: Study, read: Mark) -> None:
    namespace, key = mark_place("kai", "facts", "s")
    value = msgspec.json.encode(read)
    change = Change(namespace=namespace, key=key, value=value)
    assert await study.room.store.change_items(KAI, [change])


async def test_what_was_proposed_because_of_a_turn_is_dropped(room: Classroom) -> None:
    room.settings = studying.settings(instructions={"application": "shop", "after_feedback": 1})
    study = Study(room)
    exchanges = await study.room.say(SORTING, BAKING)
    for exchange, text in zip(exchanges, ("Name the language.", "Name the oven."), strict=True):
        study.answers(json.dumps({"instructions": text, "why": ""}))
        await study.judge(exchange, -1, "Too vague.")
        assert await study.reflect() is None
    for turn, left in [(1, ["Name the oven."]), (1, ["Name the oven."]), (3, [])]:
        await forget_proposals(study.learned.remarks, study.room.store, S, turn)
        page = await study.learned.instructions.proposals(TENANT, "shop", None, 10)
        assert [proposal.text for proposal in page.items] == left
