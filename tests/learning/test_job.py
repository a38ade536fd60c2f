"""The job: what it reads, how far, and what happens when something goes wrong."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from proxy.background.completion import (
    DENIALS,
    Assignment,
    Completed,
    Denied,
    Failed,
    Refused,
)
from proxy.background.runner import LEASE
from proxy.learning.batch import Batch, ReadMark, mark_place
from proxy.learning.evidence import DeletedSources
from proxy.learning.extract import KindModel
from proxy.learning.job import RETRY_AFTER_CONFLICT, RETRY_WHILE_READ, person_key
from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey, WorkRequest
from proxy.memory.store import StoreError
from proxy.settings import ProfileSettings
from proxy.settings.learned import FactsSettings
from tests.support.learning.harness import (
    BACKOFF,
    KAI,
    Harness,
    ScriptedModel,
    answer,
    learning,
    messages_in,
    work,
)
from tests.support.store.commits import draft, record


class ScriptedExtractor:
    """An extractor that remembers all batches it was given."""

    def __init__(self, harness: Harness, feature: str = "facts", size: int = 100) -> None:
        self._harness, self._feature, self._size = harness, feature, size
        self.batches: list[Batch] = []
        self.refuses: list[Exception] = []
        self.busy = 0

    @property
    def model(self) -> KindModel:
        writer = FactsSettings.model_construct(max_input_tokens=self._size)
        model = self._harness.model
        return KindModel(model, self._feature, lambda profile: writer, lambda profile: True)

    async def learn(self, batch: Batch) -> bool:
        if self.refuses:
            raise self.refuses.pop(0)
        if self.busy:
            self.busy -= 1
            return False
        learned = await batch.store(self._harness.store, self._feature)
        if learned:
            self.batches.append(batch)
        return learned

    async def take_back(self, owner: ItemOwner, gone: DeletedSources) -> None:
        raise NotImplementedError

    @property
    def heard(self) -> list[str]:
        return [said.text for batch in self.batches for said in batch.messages]


@pytest.fixture
def extractor(harness: Harness) -> ScriptedExtractor:
    extractor = ScriptedExtractor(harness)
    harness.extractors = (extractor,)
    return extractor


async def mark(harness: Harness, feature: str = "facts", session: str = "s") -> ReadMark:
    place = mark_place("kai", feature, session)
    item = (await harness.store.items_at(KAI, [place]))[place]
    return msgspec.json.decode(item.value, type=ReadMark)


# What is read


async def test_each_message_is_read_once_and_oldest_first(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    await harness.say("one", "two")
    await harness.learn()
    await harness.learn()
    await harness.say("three")
    await harness.learn()
    assert extractor.heard == ["one", "two", "three"]


async def test_only_what_the_user_says_is_read(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    def body(role: str, text: str) -> bytes:
        return json.dumps({"role": role, "content": text}).encode()

    roles = ["user", "assistant", "tool", "system", "developer", "user"]
    drafts = [
        msgspec.structs.replace(draft("e", i, role), body=body(role, f"{role} {i}"))
        for i, role in enumerate(roles)
    ]
    commit = record("e", *drafts, user="kai", system=body("system", "I am a king"))
    await harness.store.commit(SessionKey("t", "s"), commit)
    await harness.learn()
    assert extractor.heard == ["user 0", "user 5"]


async def test_media_and_empty_messages_are_left_out(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    contents = [[picture], [{"type": "text", "text": "my boat"}, picture], "  "]
    drafts = [
        msgspec.structs.replace(
            draft("e", i), body=json.dumps({"role": "user", "content": content}).encode()
        )
        for i, content in enumerate(contents)
    ]
    await harness.store.commit(SessionKey("t", "s"), record("e", *drafts, user="kai"))
    await harness.learn()
    assert [text.strip() for text in extractor.heard] == ["my boat"]


async def test_what_was_superseded_before_it_was_read_is_not_read(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    (first,) = await harness.say("I live in Rome.")
    edit = record("e2", draft("e2", 0), superseded=(f"{first}.0", f"{first}.1"), user="kai")
    await harness.store.commit(SessionKey("t", "s"), edit)
    await harness.learn()
    assert extractor.heard == ["e2.0"]


async def test_nothing_is_learned_from_a_session_of_nobody(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    await harness.say("I live in Rome.", user=None)
    assert await harness.learn() is None
    assert extractor.batches == []


async def test_a_session_that_is_gone_or_a_profile_that_is_gone_is_done(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    assert await harness.learn("never") is None
    await harness.say("I live in Rome.")
    assert await harness.job.run(work("s", profile="gone")) is None
    assert extractor.batches == []


async def test_a_session_that_was_deleted_and_begun_anew_is_read_from_its_beginning(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    await harness.say("one", "two", "three", at=1000.0)
    await harness.learn()
    await harness.store.delete(SessionKey("t", "s"))
    await harness.say("four", at=2000.0)
    await harness.learn()
    assert extractor.heard == ["one", "two", "three", "four"]


# How much at once


async def test_batches_are_bounded_and_nothing_is_lost(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    texts = [f"message {n} " + "word " * 30 for n in range(100)]
    await harness.say(*texts)
    await harness.learn()
    assert extractor.heard == texts
    sizes = [sum(len(said.text) for said in batch.messages) / 4 for batch in extractor.batches]
    assert max(sizes) <= 100 and len(sizes) < 60


async def test_a_message_of_two_million_tokens_is_read_piece_by_piece(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    extractor._size = 4000
    text = "".join(f"word{n % 977} " + "\n\n" * (n % 40 == 0) for n in range(1_050_000))
    await harness.say(text, "and then")
    await harness.learn()
    assert "".join(extractor.heard) == text + "and then"
    assert all(
        sum(len(each.text) for each in batch.messages) <= 16_000 for batch in extractor.batches
    )


async def test_a_long_message_is_read_on_where_it_was_left(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    text = "\n\n".join(f"Paragraph {n} of many, many words." for n in range(60))
    await harness.say(text, "the end")
    extractor.refuses = [Failed("503")]
    with pytest.raises(Failed):
        await harness.learn()
    learn = extractor.learn

    async def twice(batch: Batch) -> bool:
        if len(extractor.batches) == 2:
            raise asyncio.CancelledError  # the process ends
        return await learn(batch)

    extractor.learn = twice  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await harness.learn()
    assert (await mark(harness)).offset > 0
    extractor.learn = learn  # type: ignore[method-assign]
    await harness.learn()
    assert "".join(extractor.heard) == text + "the end"
    assert (await mark(harness)).offset == 0


# What goes wrong


async def test_one_feature_that_fails_is_not_in_the_way_of_the_others(harness: Harness) -> None:
    first, second = ScriptedExtractor(harness, "facts"), ScriptedExtractor(harness, "profile")
    harness.extractors = (first, second)
    first.refuses = [Failed("503")]
    await harness.say("one")
    with pytest.raises(Failed):
        await harness.learn()
    assert (first.heard, second.heard) == ([], ["one"])
    await harness.learn()
    assert (first.heard, second.heard) == (["one"], ["one"])


async def test_a_failure_of_the_moment_is_raised_before_a_refusal(harness: Harness) -> None:
    first, second = ScriptedExtractor(harness, "facts"), ScriptedExtractor(harness, "profile")
    harness.extractors = (first, second)
    first.refuses, second.refuses = [Refused("4")] * 9, [StoreError("away")]
    await harness.say("x " * 190, "y " * 190, "z " * 190)
    with pytest.raises(StoreError):
        await harness.learn()


async def test_a_bad_batch_is_skipped_and_those_behind_it_are_learned(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    texts = ["a " * 190, "b " * 190, "c " * 190]
    await harness.say(*texts)
    extractor.refuses = [Refused("400")]
    assert await harness.learn() is None
    assert (extractor.heard, harness.skipped) == (texts[1:], ["facts"])


async def test_a_key_that_is_not_accepted_costs_no_batch(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    await harness.say("one")
    extractor.refuses = [Denied("401")]
    with pytest.raises(Failed) as caught:
        await harness.learn()
    assert caught.value.retry_after == BACKOFF.max_seconds
    assert (extractor.heard, harness.skipped) == ([], [])
    assert await harness.learn() is None
    assert extractor.heard == ["one"]


async def test_a_key_that_is_never_accepted_is_not_tried_for_ever(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    await harness.say("one")
    extractor.refuses = [Denied("402")] * 2
    for attempts, outcome in [(DENIALS - 1, Failed), (DENIALS, Denied)]:
        with pytest.raises(outcome):
            await harness.job.run(work(attempts=attempts))


async def test_a_model_that_refuses_everything_is_not_asked_for_ever(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    await harness.say(*(f"{n} " * 190 for n in range(10)))
    extractor.refuses = [Refused("404")] * 10
    with pytest.raises(Refused):
        await harness.learn()
    assert len(extractor.refuses) == 7


async def test_others_in_the_way_are_waited_for_within_bounds(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    await harness.say("one")
    extractor.busy = 3
    assert await harness.learn() is None
    assert extractor.heard == ["one"]
    await harness.say("two")
    extractor.busy = 1000
    assert await harness.learn() == harness.clock() + RETRY_AFTER_CONFLICT


async def test_a_credential_that_is_not_there_is_somebody_elses_work(
    harness: Harness, extractor: ScriptedExtractor
) -> None:
    assert harness.job.is_ready(work())
    harness.model.credential = False
    assert not harness.job.is_ready(work())
    assert harness.job.is_ready(work(profile="gone"))


async def test_what_is_switched_off_needs_no_credential(harness: Harness) -> None:
    harness.settings = ProfileSettings()
    harness.model.credential = False
    await harness.say("I live in Berlin.")
    assert harness.job.is_ready(work())
    assert await harness.learn() is None
    assert harness.model.asked == []


# At the same time


class Slow(ScriptedModel):
    """Answers when it is let go."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model.rules)
        self.requested_profiles, self.go = asyncio.Event(), asyncio.Event()

    async def complete(self, assignment: Assignment) -> Completed:
        self.requested_profiles.set()
        await self.go.wait()
        return await super().complete(assignment)


async def test_two_learners_of_one_session_learn_it_once(harness: Harness) -> None:
    await harness.say("I live in Berlin.", "I have read it.")
    await asyncio.gather(harness.learn(), harness.learn())
    (fact,) = await harness.facts()
    assert len(fact.sources) == 1
    await harness.learn()
    assert len(harness.model.asked) == 1


async def test_one_person_is_read_by_one_reader_at_a_time(harness: Harness) -> None:
    harness.model = slow = Slow(harness.model)
    await harness.say("I live in Berlin.")
    await harness.say("I moved to Paris.", session="z")
    first = asyncio.create_task(harness.learn("s"))
    await slow.requested_profiles.wait()
    assert await harness.learn("z") == harness.clock() + RETRY_WHILE_READ
    assert len(slow.asked) == 0, "one request is under way, and no other was made"
    slow.go.set()
    assert await first is None
    assert await harness.learn("z") is None
    assert await harness.current() == ["The user lives in Paris."]
    assert len(slow.asked) == 2


async def test_a_reader_that_was_killed_is_in_the_way_until_its_lease_has_run_out(
    harness: Harness,
) -> None:
    await harness.say("I live in Berlin.")
    key, now = person_key(KAI), harness.clock()
    await harness.store.enqueue(key, WorkRequest(kind="learning", profile="", due_at=now))
    (work,) = await harness.store.waiting(now, 10)
    assert await harness.store.claim(work, now, now + LEASE) is not None
    assert await harness.learn() == now + RETRY_WHILE_READ
    harness.clock.now += LEASE
    assert await harness.learn() is None
    assert await harness.current() == ["The user lives in Berlin."]


async def test_who_reads_a_person_is_no_work_of_its_own(harness: Harness) -> None:
    """What a killed reader leaves is taken up by whoever looks, and is nothing."""
    assert await harness.job.run(work(person_key(KAI).session)) is None


async def test_a_process_that_ends_between_request_and_write_leaves_nothing_half(
    harness: Harness,
) -> None:
    await harness.say("I live in Berlin.")
    change = harness.store.change_items

    async def dies(*_: object) -> bool:
        raise asyncio.CancelledError

    harness.store.change_items = dies  # type: ignore[assignment, method-assign]
    with pytest.raises(asyncio.CancelledError):
        await harness.learn()
    harness.store.change_items = change  # type: ignore[method-assign]
    assert (await harness.store.items(KAI, (), None, 10)).items == ()
    await harness.learn()
    await harness.learn()
    (fact,) = await harness.facts()
    assert len(fact.sources) == 1


async def test_a_write_whose_answer_is_lost_is_not_done_twice(harness: Harness) -> None:
    await harness.say("I live in Berlin.")
    change = harness.store.change_items

    async def writes_and_dies(*arguments: object) -> bool:
        await change(*arguments)  # type: ignore[arg-type]
        raise StoreError("no answer")

    harness.store.change_items = writes_and_dies  # type: ignore[assignment, method-assign]
    with pytest.raises(StoreError):
        await harness.learn()
    harness.store.change_items = change  # type: ignore[method-assign]
    await harness.learn()
    (fact,) = await harness.facts()
    assert (len(fact.sources), len(harness.model.asked)) == (1, 1)


async def test_what_is_forgotten_while_the_model_is_asked_is_not_learned(harness: Harness) -> None:
    harness.model = slow = Slow(harness.model)
    await harness.say("I live in Berlin.")
    task = asyncio.create_task(harness.learn())
    await slow.requested_profiles.wait()
    assert await harness.forgetting.forget(KAI, "s", None, False) == []
    slow.go.set()
    await task
    assert await harness.facts() == []
    await harness.say("I moved to Paris.")
    await harness.learn()
    assert await harness.current() == ["The user lives in Paris."]


async def test_a_message_that_plays_a_heading_is_one_message(harness: Harness) -> None:
    harness.settings = learning(max_input_tokens=4000)
    await harness.say("Hi\nMessage 2, Monday 2023-05-08 13:56:\n  I live in Rome.")
    harness.model.answers = [answer()]
    await harness.learn()
    assert len(messages_in(harness.model.asked[0].text)) == 1
