"""What repeats a message that is edited or removed, and how far a copy of a session was read."""

from __future__ import annotations

import json

import msgspec
import pytest

from proxy.learning.batch import ReadMark, copy_read_marks, mark_place
from proxy.learning.episodes.episode import Episode, namespace
from proxy.learning.feedback import drop_feedback
from proxy.memory.history.branches import Fork, fork_archive
from proxy.memory.history.reading import read_session
from proxy.memory.items import Change
from proxy.memory.model import SessionKey, message_id
from tests.support.learning import environment
from tests.support.learning.environment import TENANT, Env
from tests.support.learning.harness import KAI, Harness

S = SessionKey("t", "s")
SORTING, BAKING = "How do I sort a list?", "How long does bread bake?"


@pytest.fixture
def env(harness: Harness) -> Env:
    harness.settings = environment.settings(episodes={})
    return Env(harness)


async def questions(env: Env) -> list[str]:
    page = await env.learned.episodes.page(KAI, namespace(KAI.user), None, 100, Episode)
    return sorted(episode.question for episode in page.items)


async def test_examples_of_a_turn_are_dropped_and_no_others(env: Env) -> None:
    for session in ("s", "other"):
        for exchange in await env.harness.say(SORTING, BAKING, session=session):
            await env.judge(exchange, 1, session=session)
    assert await questions(env) == sorted([SORTING, BAKING] * 2)
    await env.learned.drop_turn(S, "kai", 1)
    assert await questions(env) == sorted([BAKING, BAKING, SORTING])
    await env.learned.drop_turn(S, "kai", 1)
    assert len(await questions(env)) == 3


async def test_what_was_said_of_a_message_is_dropped(env: Env) -> None:
    first, second = await env.harness.say(SORTING, BAKING)
    for exchange in (first, second):
        await env.judge(exchange, -1)
    await drop_feedback(env.harness.store, S, "kai", [message_id(first, 1)])
    found = await env.harness.store.items(KAI, ("users", "kai", "feedback"), None, 10)
    assert [item.key for item in found.items] == [message_id(second, 1)]
    await drop_feedback(env.harness.store, S, "kai", [])


async def test_what_was_said_while_its_session_was_nobodys_is_dropped_as_well(
    env: Env,
) -> None:
    first, second = await env.harness.say(SORTING, BAKING, user=None)
    for exchange in (first, second):
        await env.judge(exchange, -1)
    await env.harness.say(SORTING, user="kai")
    await drop_feedback(env.harness.store, S, "kai", [message_id(first, 1)])
    found = await env.harness.store.items(TENANT, ("instructions", "/feedback"), None, 10)
    assert [item.key for item in found.items] == [message_id(second, 1)]


async def mark(env: Env, session: str) -> ReadMark | None:
    place = mark_place("kai", "facts", session)
    item = (await env.harness.store.items_at(KAI, [place])).get(place)
    return msgspec.json.decode(item.value, type=ReadMark) if item else None


@pytest.mark.parametrize(("until", "seq"), [(None, 4), (0, 2)])
async def test_a_copy_was_read_as_far_as_what_it_was_copied_from(
    env: Env, until: int | None, seq: int
) -> None:
    exchanges = await env.harness.say(SORTING, BAKING)
    old = await env.harness.store.session(S)
    assert old is not None
    read = ReadMark(seq=4, began=old.created_at, without=(exchanges[0],))
    await _put(env, read)
    archived = await read_session(env.harness.store, S)
    assert archived is not None
    last = None if until is None else message_id(exchanges[until], 1)
    copy = fork_archive(archived, Fork("u", old.created_at + 50, last))

    await copy_read_marks(env.harness.store, env.learned.kinds.reading, old, copy.session, "t")

    began = old.created_at + 50
    assert await mark(env, "u") == ReadMark(seq=seq, began=began, without=(exchanges[0],))
    assert await mark(env, "s") == read


async def test_a_copy_of_what_was_never_read_has_no_mark(env: Env) -> None:
    await env.harness.say(SORTING)
    old = await env.harness.store.session(S)
    assert old is not None
    await copy_read_marks(env.harness.store, env.learned.kinds.reading, old, old, "t")
    assert await mark(env, "s") is None


async def _put(env: Env, read: ReadMark) -> None:
    namespace, key = mark_place("kai", "facts", "s")
    value = msgspec.json.encode(read)
    change = Change(namespace=namespace, key=key, value=value)
    assert await env.harness.store.change_items(KAI, [change])


async def test_what_was_proposed_because_of_a_turn_is_dropped(harness: Harness) -> None:
    harness.settings = environment.settings(
        instructions={"application": "shop", "after_feedback": 1}
    )
    env = Env(harness)
    exchanges = await env.harness.say(SORTING, BAKING)
    for exchange, text in zip(exchanges, ("Name the language.", "Name the oven."), strict=True):
        env.answers(json.dumps({"instructions": text, "why": ""}))
        await env.judge(exchange, -1, "Too vague.")
        assert await env.reflect() is None
    for turn, left in [(1, ["Name the oven."]), (1, ["Name the oven."]), (3, [])]:
        await env.learned.drop_turn(S, None, turn)
        page = await env.learned.instructions.proposals(TENANT, "shop", None, 10)
        assert [proposal.text for proposal in page.items] == left
