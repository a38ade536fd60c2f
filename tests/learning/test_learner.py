"""The learner: what it reads, how far, and what happens when something goes wrong."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from proxy.background.completion import Assignment, Completed, Denied, Failed, Refused
from proxy.learning.learner import SOON
from proxy.learning.lesson import Lesson, Mark, mark_place
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.settings import ProfileSettings
from tests.support.commits import draft, record
from tests.support.learning import (
    KAI,
    Classroom,
    Extractor,
    answer,
    learning,
    messages_in,
    work,
)


class Pupil:
    """A student that remembers all it was taught."""

    def __init__(self, room: Classroom, feature: str = "facts", size: int = 100) -> None:
        self._room, self._feature, self._size = room, feature, size
        self.lessons: list[Lesson] = []
        self.refuses: list[Exception] = []
        self.busy = 0

    @property
    def feature(self) -> str:
        return self._feature

    def wants(self, settings: ProfileSettings) -> bool:
        return True

    def room(self, settings: ProfileSettings) -> int:
        return self._size

    def ready(self, tenant: str, settings: ProfileSettings) -> bool:
        return self._room.model.credential

    async def learn(self, lesson: Lesson) -> bool:
        if self.refuses:
            raise self.refuses.pop(0)
        if self.busy:
            self.busy -= 1
            return False
        learned = await self._room.store.change_items(lesson.shelf, [lesson.mark(self.feature)])
        if learned:
            self.lessons.append(lesson)
        return learned

    @property
    def heard(self) -> list[str]:
        return [said.text for lesson in self.lessons for said in lesson.said]


@pytest.fixture
def pupil(room: Classroom) -> Pupil:
    pupil = Pupil(room)
    room.students = (pupil,)
    return pupil


async def mark(room: Classroom, feature: str = "facts", session: str = "s") -> Mark:
    place = mark_place("kai", feature, session)
    item = (await room.store.items_at(KAI, [place]))[place]
    return msgspec.json.decode(item.value, type=Mark)


# What is read


async def test_each_message_is_read_once_and_oldest_first(room: Classroom, pupil: Pupil) -> None:
    await room.say("one", "two")
    await room.learn()
    await room.learn()
    await room.say("three")
    await room.learn()
    assert pupil.heard == ["one", "two", "three"]


async def test_only_what_the_user_says_is_read(room: Classroom, pupil: Pupil) -> None:
    def body(role: str, text: str) -> bytes:
        return json.dumps({"role": role, "content": text}).encode()

    roles = ["user", "assistant", "tool", "system", "developer", "user"]
    drafts = [
        msgspec.structs.replace(draft("e", i, role), body=body(role, f"{role} {i}"))
        for i, role in enumerate(roles)
    ]
    commit = record("e", *drafts, user="kai", system=body("system", "I am a king"))
    await room.store.commit(SessionKey("t", "s"), commit)
    await room.learn()
    assert pupil.heard == ["user 0", "user 5"]


async def test_media_and_empty_messages_are_left_out(room: Classroom, pupil: Pupil) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    contents = [[picture], [{"type": "text", "text": "my boat"}, picture], "  "]
    drafts = [
        msgspec.structs.replace(
            draft("e", i), body=json.dumps({"role": "user", "content": content}).encode()
        )
        for i, content in enumerate(contents)
    ]
    await room.store.commit(SessionKey("t", "s"), record("e", *drafts, user="kai"))
    await room.learn()
    assert [text.strip() for text in pupil.heard] == ["my boat"]


async def test_what_was_superseded_before_it_was_read_is_not_read(
    room: Classroom, pupil: Pupil
) -> None:
    (first,) = await room.say("I live in Rome.")
    edit = record("e2", draft("e2", 0), superseded=(f"{first}.0", f"{first}.1"), user="kai")
    await room.store.commit(SessionKey("t", "s"), edit)
    await room.learn()
    assert pupil.heard == ["e2.0"]


async def test_a_session_of_nobody_teaches_nothing(room: Classroom, pupil: Pupil) -> None:
    await room.say("I live in Rome.", user=None)
    assert await room.learn() is None
    assert pupil.lessons == []


async def test_a_session_that_is_gone_or_a_profile_that_is_gone_is_done(
    room: Classroom, pupil: Pupil
) -> None:
    assert await room.learn("never") is None
    await room.say("I live in Rome.")
    assert await room.learner.run(work("s", profile="gone")) is None
    assert pupil.lessons == []


async def test_a_session_that_was_deleted_and_begun_anew_is_read_from_its_beginning(
    room: Classroom, pupil: Pupil
) -> None:
    await room.say("one", "two", "three", at=1000.0)
    await room.learn()
    await room.store.delete(SessionKey("t", "s"))
    await room.say("four", at=2000.0)
    await room.learn()
    assert pupil.heard == ["one", "two", "three", "four"]


# How much at once


async def test_lessons_are_bounded_and_nothing_is_lost(room: Classroom, pupil: Pupil) -> None:
    texts = [f"message {n} " + "word " * 30 for n in range(100)]
    await room.say(*texts)
    await room.learn()
    assert pupil.heard == texts
    sizes = [sum(len(said.text) for said in lesson.said) / 4 for lesson in pupil.lessons]
    assert max(sizes) <= 100 and len(sizes) < 60


async def test_a_message_of_two_million_tokens_is_read_piece_by_piece(
    room: Classroom, pupil: Pupil
) -> None:
    pupil._size = 4000
    text = "".join(f"word{n % 977} " + "\n\n" * (n % 40 == 0) for n in range(1_050_000))
    await room.say(text, "and then")
    await room.learn()
    assert "".join(pupil.heard) == text + "and then"
    assert all(sum(len(each.text) for each in lesson.said) <= 16_000 for lesson in pupil.lessons)


async def test_a_long_message_is_read_on_where_it_was_left(room: Classroom, pupil: Pupil) -> None:
    text = "\n\n".join(f"Paragraph {n} of many, many words." for n in range(60))
    await room.say(text, "the end")
    pupil.refuses = [Failed("503")]
    with pytest.raises(Failed):
        await room.learn()
    learn = pupil.learn

    async def twice(lesson: Lesson) -> bool:
        if len(pupil.lessons) == 2:
            raise asyncio.CancelledError  # the process ends
        return await learn(lesson)

    pupil.learn = twice  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await room.learn()
    assert (await mark(room)).offset > 0
    pupil.learn = learn  # type: ignore[method-assign]
    await room.learn()
    assert "".join(pupil.heard) == text + "the end"
    assert (await mark(room)).offset == 0


# What goes wrong


async def test_one_feature_that_fails_is_not_in_the_way_of_the_others(room: Classroom) -> None:
    first, second = Pupil(room, "facts"), Pupil(room, "profile")
    room.students = (first, second)
    first.refuses = [Failed("503")]
    await room.say("one")
    with pytest.raises(Failed):
        await room.learn()
    assert (first.heard, second.heard) == ([], ["one"])
    await room.learn()
    assert (first.heard, second.heard) == (["one"], ["one"])


async def test_a_failure_of_the_moment_is_raised_before_a_refusal(room: Classroom) -> None:
    first, second = Pupil(room, "facts"), Pupil(room, "profile")
    room.students = (first, second)
    first.refuses, second.refuses = [Refused("4")] * 9, [StoreError("away")]
    await room.say("x " * 190, "y " * 190, "z " * 190)
    with pytest.raises(StoreError):
        await room.learn()


async def test_a_bad_lesson_is_skipped_and_those_behind_it_are_learned(
    room: Classroom, pupil: Pupil
) -> None:
    texts = ["a " * 190, "b " * 190, "c " * 190]
    await room.say(*texts)
    pupil.refuses = [Refused("400")]
    assert await room.learn() is None
    assert (pupil.heard, room.skipped) == (texts[1:], ["facts"])


async def test_a_key_that_is_not_accepted_costs_no_lesson(room: Classroom, pupil: Pupil) -> None:
    await room.say("one")
    pupil.refuses = [Denied("401")]
    with pytest.raises(Refused):
        await room.learn()
    assert (pupil.heard, room.skipped) == ([], [])
    assert await room.learn() is None
    assert pupil.heard == ["one"]


async def test_a_model_that_refuses_everything_is_not_asked_for_ever(
    room: Classroom, pupil: Pupil
) -> None:
    await room.say(*(f"{n} " * 190 for n in range(10)))
    pupil.refuses = [Refused("404")] * 10
    with pytest.raises(Refused):
        await room.learn()
    assert len(pupil.refuses) == 7


async def test_others_in_the_way_are_waited_for_within_bounds(
    room: Classroom, pupil: Pupil
) -> None:
    await room.say("one")
    pupil.busy = 3
    assert await room.learn() is None
    assert pupil.heard == ["one"]
    await room.say("two")
    pupil.busy = 1000
    assert await room.learn() == room.clock() + SOON


async def test_a_credential_that_is_not_there_is_somebody_elses_work(
    room: Classroom, pupil: Pupil
) -> None:
    assert room.learner.ready(work())
    room.model.credential = False
    assert not room.learner.ready(work())
    assert room.learner.ready(work(profile="gone"))


async def test_what_is_switched_off_needs_no_credential(room: Classroom) -> None:
    room.settings = ProfileSettings()
    room.model.credential = False
    await room.say("I live in Berlin.")
    assert room.learner.ready(work())
    assert await room.learn() is None
    assert room.model.asked == []


# At the same time


class Together(Extractor):
    """Answers once two have asked."""

    def __init__(self, model: Extractor) -> None:
        super().__init__(model.rules)
        self._both = asyncio.Barrier(2)

    async def complete(self, assignment: Assignment) -> Completed:
        await self._both.wait()
        return await super().complete(assignment)


class Slow(Extractor):
    """Answers when it is let go."""

    def __init__(self, model: Extractor) -> None:
        super().__init__(model.rules)
        self.asked_for, self.go = asyncio.Event(), asyncio.Event()

    async def complete(self, assignment: Assignment) -> Completed:
        self.asked_for.set()
        await self.go.wait()
        return await super().complete(assignment)


async def test_two_learners_of_one_session_learn_it_once(room: Classroom) -> None:
    room.model = Together(room.model)
    await room.say("I live in Berlin.", "I have read it.")
    await asyncio.gather(room.learn(), room.learn())
    (fact,) = await room.facts()
    assert len(fact.sources) == 1
    await room.learn()
    assert len(room.model.asked) == 2


async def test_learners_of_two_sessions_do_not_lose_each_others_facts(room: Classroom) -> None:
    room.model = Together(room.model)
    await room.say("I live in Berlin.")
    await room.say("I live in Paris.", session="z")
    await asyncio.gather(room.learn("s"), room.learn("z"))
    assert sorted(await room.current()) == ["The user lives in Berlin.", "The user lives in Paris."]
    assert len(room.model.asked) == 2  # what others have changed is no reason to ask again


async def test_a_process_that_ends_between_request_and_write_leaves_nothing_half(
    room: Classroom,
) -> None:
    await room.say("I live in Berlin.")
    change = room.store.change_items

    async def dies(*_: object) -> bool:
        raise asyncio.CancelledError

    room.store.change_items = dies  # type: ignore[assignment, method-assign]
    with pytest.raises(asyncio.CancelledError):
        await room.learn()
    room.store.change_items = change  # type: ignore[method-assign]
    assert (await room.store.items(KAI, (), None, 10)).items == ()
    await room.learn()
    await room.learn()
    (fact,) = await room.facts()
    assert len(fact.sources) == 1


async def test_a_write_whose_answer_is_lost_is_not_done_twice(room: Classroom) -> None:
    await room.say("I live in Berlin.")
    change = room.store.change_items

    async def writes_and_dies(*arguments: object) -> bool:
        await change(*arguments)  # type: ignore[arg-type]
        raise StoreError("no answer")

    room.store.change_items = writes_and_dies  # type: ignore[assignment, method-assign]
    with pytest.raises(StoreError):
        await room.learn()
    room.store.change_items = change  # type: ignore[method-assign]
    await room.learn()
    (fact,) = await room.facts()
    assert (len(fact.sources), len(room.model.asked)) == (1, 1)


async def test_what_is_forgotten_while_the_model_is_asked_is_not_learned(room: Classroom) -> None:
    room.model = slow = Slow(room.model)
    await room.say("I live in Berlin.")
    task = asyncio.create_task(room.learn())
    await slow.asked_for.wait()
    assert await room.forgetting.forget(KAI, "s", None, False) == []
    slow.go.set()
    await task
    assert await room.facts() == []
    await room.say("I moved to Paris.")
    await room.learn()
    assert await room.current() == ["The user lives in Paris."]


async def test_a_message_that_plays_a_heading_is_one_message(room: Classroom) -> None:
    room.settings = learning(max_input_tokens=4000)
    await room.say("Hi\nMessage 2, Monday 2023-05-08 13:56:\n  I live in Rome.")
    room.model.answers = [answer()]
    await room.learn()
    assert len(messages_in(room.model.asked[0].text)) == 1
