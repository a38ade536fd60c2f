"""What people say of answers, and what it sets going."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.learning.feedback import Feedback, feedback_place
from proxy.learning.feedback_service import NoMessage
from proxy.memory.archive import Session
from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey, Work, message_id
from tests.support.learning import environment
from tests.support.learning.environment import TENANT, Env
from tests.support.learning.harness import KAI, Harness

KEY = SessionKey("t", "s")


@pytest.fixture
def env(harness: Harness) -> Env:
    harness.settings = environment.settings(
        instructions={"after_feedback": 2, "application": "shop"}
    )
    return Env(harness)


async def session(env: Env) -> Session:
    found = await env.harness.store.session(KEY)
    assert found is not None
    return found


async def given(env: Env, exchange: str) -> Feedback | None:
    service, answer = env.learned.feedback, message_id(exchange, 1)
    return await service.latest(await session(env), KEY, answer)


async def work(env: Env) -> list[Work]:
    return list(await env.harness.store.waiting(env.harness.clock(), 10))


async def test_the_last_word_about_a_message_counts(env: Env) -> None:
    (exchange,) = await env.harness.say("What is a bulla?")
    assert await given(env, exchange) is None
    await env.judge(exchange, 1, "Good!")
    env.harness.clock.now += 5
    await env.judge(exchange, -1, "Wrong after all.")
    assert await given(env, exchange) == Feedback(
        session="s",
        message=message_id(exchange, 1),
        exchange=exchange,
        score=-1,
        comment="Wrong after all.",
        profile="default",
        created_at=env.harness.clock(),
    )


@pytest.mark.parametrize("message", ["ex_1.7", "ex_2.0", "ex_1", "", "nonsense"])
async def test_of_a_message_that_is_not_there_nothing_can_be_said(env: Env, message: str) -> None:
    await env.harness.say("What is a bulla?")
    known = await session(env)
    with pytest.raises(NoMessage):
        await env.learned.feedback.record(known, KEY, message, 1, "")
    with pytest.raises(NoMessage):
        await env.learned.feedback.latest(known, KEY, message)


@pytest.mark.parametrize(("user", "owner"), [("kai", KAI), (None, TENANT)])
async def test_it_lies_with_the_person_or_else_with_the_tenant(
    env: Env, user: str | None, owner: ItemOwner
) -> None:
    (exchange,) = await env.harness.say("What is a bulla?", user=user)
    await env.judge(exchange, 1, "XYZZY")
    place = feedback_place(user or "", "s", message_id(exchange, 1))
    assert place in await env.harness.store.items_at(owner, [place])
    assert env.learned.kinds.is_reserved(place.namespace)
    other = TENANT if user else KAI
    page = await env.harness.store.items(other, (), None, 100)
    assert all(b"XYZZY" not in bytes(item.value) for item in page.items)


async def places(env: Env) -> list[tuple[str, ...]]:
    """Where there is feedback: the namespaces, on whosever shelf."""
    pages = [await env.harness.store.items(owner, (), None, 100) for owner in (TENANT, KAI)]
    found = [item.namespace for page in pages for item in page.items]
    return [namespace for namespace in found if namespace[-1] == "s"]


async def test_what_was_said_while_a_session_was_nobodys_is_known_to_its_owner(
    env: Env,
) -> None:
    (first,) = await env.harness.say("What is a bulla?", user=None)
    await env.judge(first, -1, "Wrong.")
    said = await given(env, first)
    (second,) = await env.harness.say("And a stylus?", user="kai")
    assert said is not None and await given(env, first) == said
    assert await given(env, second) is None


async def test_what_the_owner_says_takes_the_place_of_what_was_said_before(env: Env) -> None:
    (exchange,) = await env.harness.say("What is a bulla?", user=None)
    await env.judge(exchange, -1, "Wrong.")
    await env.harness.say("And a stylus?", user="kai")
    await env.judge(exchange, 1, "Right after all.")
    found = await given(env, exchange)
    assert found is not None and found.comment == "Right after all."
    assert await places(env) == [("users", "kai", "feedback", "s")]


async def test_enough_feedback_makes_a_reflection_due(env: Env) -> None:
    first, second = await env.harness.say("What is a bulla?", "And a stylus?")
    await env.judge(first, -1)
    assert not await work(env)
    await env.judge(first, 1)
    assert not await work(env), "one message is one piece of feedback"
    await env.judge(second, 1)
    (due,) = await work(env)
    assert (due.tenant, due.session, due.kind, due.profile) == ("t", "s", "learning", "default")


async def test_no_judgement_and_no_comment_is_nothing_to_reflect_on(env: Env) -> None:
    first, second = await env.harness.say("What is a bulla?", "And a stylus?")
    await env.judge(first, 0)
    await env.judge(second, 0)
    assert not await work(env)
    await env.judge(first, 0, "It was too long.")
    await env.judge(second, 0, "So was this.")
    assert len(await work(env)) == 1


async def test_switched_off_feedback_is_kept_and_sets_nothing_going(harness: Harness) -> None:
    harness.settings = environment.settings()
    env = Env(harness)
    (exchange,) = await harness.say("What is a bulla?")
    for score in (1, -1):
        await env.judge(exchange, score)
    found: Any = await given(env, exchange)
    assert found.score == -1 and not await work(env)
    assert not (await harness.store.items(TENANT, (), None, 10)).items


async def test_a_person_who_is_erased_lets_nothing_wait(env: Env) -> None:
    first, second = await env.harness.say("What is a bulla?", "And a stylus?")
    (other,) = await env.harness.say("And clay?", session="t", user="eve")
    for exchange in (first, second):
        await env.judge(exchange, 1)
    await env.judge(other, 1, session="t")
    pending = env.learned.pending
    for _ in range(2):
        assert await env.learned.feedback_forgetter.forget_person("t", "kai") == 0
    (left,) = await pending.entries(TENANT, "shop")
    assert left[1].user == "eve"
    assert (await pending.reflection(TENANT, "shop")).value.waiting == 1
