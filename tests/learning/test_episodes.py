"""Exchanges that went well, as worked examples."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.background.completion import Unreadable
from proxy.learning.episodes.episode import (
    ANSWER_TOKENS,
    MAX_EPISODES,
    QUESTION_TOKENS,
    Episode,
    episode_id,
    namespace,
    truncate,
)
from proxy.learning.episodes.extract import Pair, parse_good_pairs, seems_pleased
from proxy.learning.episodes.store import NOTE
from proxy.learning.evidence import UserMessage
from proxy.learning.kinds import EPISODES
from proxy.learning.prompt_cards import Block
from proxy.learning.similarity import QueryText
from proxy.memory.archive import Details
from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey, message_id
from proxy.recall.own_words import pasted_spans
from tests.support.learning import environment
from tests.support.learning.environment import Env
from tests.support.learning.harness import KAI, MAY, Harness, block_of, count

SORTING = "How do I sort a list in Python?"
BAKING = "How long does a sourdough loaf bake?"


@pytest.fixture
def env(harness: Harness) -> Env:
    harness.settings = environment.settings(episodes={})
    return Env(harness)


async def episodes(env: Env, owner: ItemOwner = KAI) -> list[Episode]:
    page = await env.learned.episodes.page(owner, namespace(owner.user), None, 100, Episode)
    return list(page.items)


async def good(env: Env, *texts: str, session: str = "s") -> list[str]:
    """Exchanges that are found good; their ids."""
    exchanges = await env.harness.say(*texts, session=session)
    for exchange in exchanges:
        await env.judge(exchange, 1, session=session)
    return exchanges


async def chosen(env: Env, question: str, budget: int = 1000) -> Block | None:
    """The block for a question, from the card on the shelf."""
    settings, now = env.harness.settings, env.harness.clock()
    where = EPISODES.card_place("t", "kai", settings)
    assert where is not None
    found = await env.harness.store.items_at(where.owner, [where.place])
    if where.place not in found:
        return None
    card, asked = bytes(found[where.place].value), QueryText(question, now)
    return block_of(EPISODES, card, settings, asked, budget, now)


# From feedback


async def test_an_exchange_that_is_found_good_is_an_episode(env: Env) -> None:
    (exchange,) = await good(env, SORTING)
    (episode,) = await episodes(env)
    answer = message_id(exchange, 1)
    assert episode.id == episode_id("s", answer)
    assert (episode.question, episode.answer) == (SORTING, f"I note: {SORTING}")
    assert episode.origin == "feedback" and episode.expires_at is None
    (source,) = episode.sources
    assert (source.session, source.message, source.exchange) == ("s", answer, exchange)


@pytest.mark.parametrize("score", [0, -1])
async def test_what_is_not_found_good_any_more_is_none(env: Env, score: Any) -> None:
    first, second = await good(env, SORTING, BAKING)
    await env.judge(first, score)
    assert [episode.question for episode in await episodes(env)] == [BAKING]
    assert await chosen(env, SORTING) is None
    await env.judge(first, 1)
    assert len(await episodes(env)) == 2


async def test_what_is_found_good_twice_is_one_episode(env: Env) -> None:
    (exchange,) = await good(env, SORTING)
    await env.judge(exchange, 1, "Still good!")
    assert len(await episodes(env)) == 1


async def test_switched_off_nothing_becomes_an_episode(harness: Harness) -> None:
    harness.settings = environment.settings()
    env = Env(harness)
    await good(env, SORTING)
    assert not await episodes(env)


async def test_a_session_of_nobody_has_no_episodes(env: Env) -> None:
    (exchange,) = await env.harness.say(SORTING, user=None)
    await env.judge(exchange, 1)
    assert not await episodes(env, ItemOwner("t"))


async def test_long_texts_are_cut(env: Env) -> None:
    await good(env, "How? " + "very long question " * 500)
    (episode,) = await episodes(env)
    assert count(episode.question) <= QUESTION_TOKENS + 1 and episode.question.endswith(" …")
    assert count(episode.answer) <= ANSWER_TOKENS + 1 and episode.answer.endswith(" …")


@pytest.mark.parametrize("text", ["", " a ", "short", "long " * 200, "很长" * 400, "x" * 5000])
def test_a_cut_text_is_a_beginning_that_fits(text: str) -> None:
    cut = truncate(text, 50, count)
    beginning = cut.removesuffix(" …")
    assert text.strip().startswith(beginning) and count(beginning) <= 50
    assert (cut == text.strip()) == (count(text.strip()) <= 50)


async def test_there_are_so_many_episodes_and_the_oldest_go(env: Env) -> None:
    for n in range(MAX_EPISODES + 2):
        env.harness.clock.now += 1
        await good(env, f"Question number {n} of mine?")
    kept = sorted(await episodes(env), key=lambda episode: episode.created_at)
    assert len(kept) == MAX_EPISODES and kept[0].question == "Question number 2 of mine?"


async def test_one_episode_is_dropped_once(env: Env) -> None:
    await good(env, SORTING, BAKING, "How old is the moon?")
    owner, id = env.learned.episodes, (await episodes(env))[0].id
    assert await owner.drop(KAI, id) and not await owner.drop(KAI, id)
    left = [episode.id for episode in await episodes(env)]
    assert id not in left and len(left) == 2


async def test_an_episode_does_not_outlive_its_session(env: Env) -> None:
    (exchange,) = await env.harness.say(SORTING)
    key = SessionKey("t", "s")
    known = await env.harness.store.session(key)
    assert known is not None
    mortal = replace(known, details=Details(ttl=60))
    await env.learned.feedback.record(mortal, key, message_id(exchange, 1), 1, "")
    assert await chosen(env, SORTING) is not None
    env.harness.clock.now += 61
    assert await chosen(env, SORTING) is None


async def test_a_deleted_session_takes_its_episodes_and_comments_with_it(env: Env) -> None:
    await good(env, SORTING, session="s")
    await good(env, BAKING, session="t")
    await env.learned.drop_session(SessionKey("t", "s"), "kai")
    assert [episode.question for episode in await episodes(env)] == [BAKING]
    assert await chosen(env, SORTING) is None
    found = await env.harness.store.items(KAI, ("users", "kai", "feedback"), None, 10)
    assert [item.namespace[3] for item in found.items] == ["t"]


async def test_what_is_forgotten_is_no_example(env: Env) -> None:
    first, second = await good(env, SORTING, BAKING, session="s")
    receipt = await env.forget("s", first, dry_run=True)
    assert [(f.kind, f.action, f.text) for f in receipt] == [("episode", "deleted", SORTING)]
    assert len(await episodes(env)) == 2
    assert await env.forget("s", first) == receipt
    assert [episode.question for episode in await episodes(env)] == [BAKING]
    assert len(await env.forget("s")) == 1 and not await episodes(env)


# In a prompt


async def test_the_example_is_the_one_that_is_like_the_question(env: Env) -> None:
    await good(env, SORTING, BAKING, "Which trains go to Kiel?")
    block = await chosen(env, "How can I sort a list of names in Python?")
    assert block is not None
    assert block.lines == f"User: {SORTING}\nAnswer: I note: {SORTING}"
    assert (block.kind, block.note) == ("episodes", NOTE)
    (source,) = block.sources
    assert source.kind == "episode" and source.session == "s" and source.score >= 0.3


@pytest.mark.parametrize("question", ["Who was Napoleon?", "Thanks!", "", "What should I do?"])
async def test_questions_like_none_get_no_example(env: Env, question: str) -> None:
    await good(env, SORTING, BAKING)
    assert await chosen(env, question) is None


async def test_at_most_so_many_and_the_likest_first(harness: Harness) -> None:
    harness.settings = environment.settings(episodes={"most": 2, "min_score": 0.1})
    env = Env(harness)
    await good(env, "How do I sort a tuple in Python?", SORTING, "Can Python sort a dict?")
    block = await chosen(env, SORTING)
    assert block is not None and len(block.sources) == 2
    assert block.lines.startswith(f"User: {SORTING}\n")


async def test_what_does_not_fit_is_left_out(env: Env) -> None:
    await good(env, SORTING)
    block = await chosen(env, SORTING)
    assert block is not None
    assert await chosen(env, SORTING, block.tokens + 10) == block
    assert await chosen(env, SORTING, block.tokens - 10) is None


async def test_examples_in_scripts_without_spaces_are_found(env: Env) -> None:
    await good(env, "如何用Python对列表排序？", "面包要烤多久？")
    block = await chosen(env, "怎样给列表排序？")
    assert block is not None and "排序" in block.lines and "面包" not in block.lines


# From what the user says next


@pytest.fixture
def judging(harness: Harness) -> Env:
    harness.settings = environment.settings(episodes={"by_model": True})
    return Env(harness)


def found_good(*pairs: tuple[int, str]) -> str:
    return json.dumps({"good": [{"number": n, "quote": quote} for n, quote in pairs]})


async def test_a_user_who_is_pleased_makes_an_episode(judging: Env) -> None:
    question, _ = await judging.harness.say(
        SORTING, "Perfect, that worked! Now in reverse, please."
    )
    judging.answers(found_good((1, "that worked")))
    await judging.harness.learn()
    (episode,) = await episodes(judging)
    assert (episode.question, episode.origin) == (SORTING, "learned")
    assert episode.sources[0].exchange == question
    (asked,) = judging.asked
    assert SORTING in asked and "that worked" in asked
    assert "I note" not in asked, "answers are not shown"
    await judging.harness.learn()
    assert len(judging.asked) == 1


async def test_where_nobody_is_pleased_nothing_is_asked(judging: Env) -> None:
    await judging.harness.say(SORTING, BAKING, "And with rye flour?")
    await judging.harness.learn()
    assert not judging.asked and not await episodes(judging)


async def test_one_request_is_enough_for_a_batch(judging: Env) -> None:
    await judging.harness.say(SORTING, "Great, it works!", BAKING, "Thank you, that helped a lot.")
    judging.answers(found_good((1, "it works"), (2, "that helped a lot")))
    await judging.harness.learn()
    assert len(judging.asked) == 1
    assert {episode.question for episode in await episodes(judging)} == {SORTING, BAKING}


@pytest.mark.parametrize(
    "answer",
    [
        found_good(),
        found_good((1, "this was brilliant advice")),
        found_good((2, "that worked")),
        found_good((1, "ok")),
        '{"good": [{"number": 1}, 7, null]}',
        '{"good": [{"number": "one", "quote": "that worked"}]}',
    ],
)
async def test_what_the_user_did_not_say_shows_nothing(judging: Env, answer: str) -> None:
    await judging.harness.say(SORTING, "Perfect, that worked!")
    judging.answers(answer)
    await judging.harness.learn()
    assert not await episodes(judging)


async def test_an_answer_without_json_is_tried_another_time(judging: Env) -> None:
    await judging.harness.say(SORTING, "Perfect, that worked!")
    judging.answers("I think so.")
    with pytest.raises(Unreadable):
        await judging.harness.learn()
    judging.answers(found_good((1, "that worked")))
    await judging.harness.learn()
    assert len(await episodes(judging)) == 1


async def test_what_a_person_has_judged_is_left_alone(judging: Env) -> None:
    exchange, _ = await judging.harness.say(SORTING, "Perfect, that worked!")
    await judging.judge(exchange, -1)
    await judging.harness.learn()
    assert not judging.asked and not await episodes(judging)


async def test_the_first_message_of_a_batch_is_about_the_turn_before_it(judging: Env) -> None:
    await judging.harness.say(SORTING)
    await judging.harness.learn()
    await judging.harness.say("Perfect, that worked!")
    judging.answers(found_good((1, "that worked")))
    await judging.harness.learn()
    assert [episode.question for episode in await episodes(judging)] == [SORTING]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thanks, that did it!", True),
        ("Danke, jetzt funktioniert es.", True),
        ("¡Gracias, funciona!", True),
        ("Merci, ça marche.", True),
        ("谢谢，问题解决了", True),
        ("ありがとう、動きました", True),
        ("спасибо, работает", True),
        ("How long does it bake?", False),
        ("That is not what I asked.", False),
        ("> thanks, that worked\nNo idea what he means.", False),
    ],
)
def test_few_messages_may_be_of_somebody_pleased(text: str, expected: bool) -> None:
    assert seems_pleased(_said(text)) is expected


def test_pasted_words_are_no_praise() -> None:
    pair = Pair(
        SessionKey("t", "s"),
        "?",
        "m",
        _said("He wrote:\n```\nthat worked fine\n```\nWhat now? Thanks."),
    )
    assert parse_good_pairs(found_good((1, "that worked fine")), [pair]) == []


def test_a_number_that_is_written_as_a_text_is_one() -> None:
    pair = Pair(SessionKey("t", "s"), "?", "m", _said("Thanks, that worked."))
    assert parse_good_pairs('{"good": [{"number": "1", "quote": "that worked"}]}', [pair]) == [pair]


def _said(text: str) -> UserMessage:
    return UserMessage("ex.0", "ex", 1, text, MAY, pasted_spans(text))
