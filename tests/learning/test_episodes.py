"""Exchanges that went well, as worked examples."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from proxy.learning.episode import (
    ANSWER_TOKENS,
    MOST_EPISODES,
    QUESTION_TOKENS,
    Episode,
    clipped,
    episode_id,
)
from proxy.learning.episode_lines import NOTE, EpisodeCards
from proxy.learning.episode_prompt import Pair, good_in, seems_pleased
from proxy.learning.known import Block
from proxy.learning.lesson import Said, Unreadable
from proxy.learning.pasted import pasted
from proxy.memory.archive import Details
from proxy.memory.items import Shelf
from proxy.memory.model import SessionKey, message_id
from proxy.recall.question import read
from tests.support import studying
from tests.support.learning import KAI, MAY, Classroom, count
from tests.support.studying import Study

SORTING = "How do I sort a list in Python?"
BAKING = "How long does a sourdough loaf bake?"


@pytest.fixture
def study(room: Classroom) -> Study:
    room.settings = studying.settings(episodes={})
    return Study(room)


async def episodes(study: Study, shelf: Shelf = KAI) -> list[Episode]:
    page = await study.learned.episodes.episodes(shelf, None, 100)
    return [msgspec.json.decode(item.value, type=Episode) for item in page.items]


async def good(study: Study, *texts: str, session: str = "s") -> list[str]:
    """Exchanges that are found good; their ids."""
    exchanges = await study.room.say(*texts, session=session)
    for exchange in exchanges:
        await study.judge(exchange, 1, session=session)
    return exchanges


async def chosen(study: Study, question: str, budget: int = 1000) -> Block | None:
    """The block for a question, from the card on the shelf."""
    cards, settings = EpisodeCards(study.room.clock), study.room.settings
    where = cards.where("t", "kai", settings)
    assert where is not None
    found = await study.room.store.items_at(where.shelf, [where.place])
    if where.place not in found:
        return None
    card, asked = bytes(found[where.place].value), read(question, (), study.room.clock())
    return cards.choose(card, settings, asked, budget, count)


# From feedback


async def test_an_exchange_that_is_found_good_is_an_episode(study: Study) -> None:
    (exchange,) = await good(study, SORTING)
    (episode,) = await episodes(study)
    answer = message_id(exchange, 1)
    assert episode.id == episode_id("s", answer)
    assert (episode.question, episode.answer) == (SORTING, f"I note: {SORTING}")
    assert episode.origin == "feedback" and episode.expires_at is None
    (source,) = episode.sources
    assert (source.session, source.message, source.exchange) == ("s", answer, exchange)


@pytest.mark.parametrize("score", [0, -1])
async def test_what_is_not_found_good_any_more_is_none(study: Study, score: Any) -> None:
    first, second = await good(study, SORTING, BAKING)
    await study.judge(first, score)
    assert [episode.question for episode in await episodes(study)] == [BAKING]
    assert await chosen(study, SORTING) is None
    await study.judge(first, 1)
    assert len(await episodes(study)) == 2


async def test_what_is_found_good_twice_is_one_episode(study: Study) -> None:
    (exchange,) = await good(study, SORTING)
    await study.judge(exchange, 1, "Still good!")
    assert len(await episodes(study)) == 1


async def test_switched_off_nothing_becomes_an_episode(room: Classroom) -> None:
    room.settings = studying.settings()
    study = Study(room)
    await good(study, SORTING)
    assert not await episodes(study)


async def test_a_session_of_nobody_has_no_episodes(study: Study) -> None:
    (exchange,) = await study.room.say(SORTING, user=None)
    await study.judge(exchange, 1)
    assert not await episodes(study, Shelf("t"))


async def test_long_texts_are_cut(study: Study) -> None:
    await good(study, "How? " + "very long question " * 500)
    (episode,) = await episodes(study)
    assert count(episode.question) <= QUESTION_TOKENS + 1 and episode.question.endswith(" …")
    assert count(episode.answer) <= ANSWER_TOKENS + 1 and episode.answer.endswith(" …")


@pytest.mark.parametrize("text", ["", " a ", "short", "long " * 200, "很长" * 400, "x" * 5000])
def test_a_cut_text_is_a_beginning_that_fits(text: str) -> None:
    cut = clipped(text, 50, count)
    beginning = cut.removesuffix(" …")
    assert text.strip().startswith(beginning) and count(beginning) <= 50
    assert (cut == text.strip()) == (count(text.strip()) <= 50)


async def test_there_are_so_many_episodes_and_the_oldest_go(study: Study) -> None:
    for n in range(MOST_EPISODES + 2):
        study.room.clock.now += 1
        await good(study, f"Question number {n} of mine?")
    kept = sorted(await episodes(study), key=lambda episode: episode.created_at)
    assert len(kept) == MOST_EPISODES and kept[0].question == "Question number 2 of mine?"


async def test_episodes_come_in_pages_and_one_by_one(study: Study) -> None:
    await good(study, SORTING, BAKING, "How old is the moon?")
    shelf = study.learned.episodes
    page = await shelf.episodes(KAI, None, 2)
    rest = await shelf.episodes(KAI, page.after, 2)
    assert (len(page.items), len(rest.items), rest.after) == (2, 1, None)
    id = page.items[0].key
    item = await shelf.episode(KAI, id)
    assert item is not None and item.key == id
    assert await shelf.drop(KAI, id) and not await shelf.drop(KAI, id)
    assert await shelf.episode(KAI, id) is None and len(await episodes(study)) == 2


async def test_an_episode_does_not_outlive_its_session(study: Study) -> None:
    (exchange,) = await study.room.say(SORTING)
    key = SessionKey("t", "s")
    known = await study.room.store.session(key)
    assert known is not None
    mortal = replace(known, details=Details(ttl=60))
    await study.learned.feedback.take(mortal, key, message_id(exchange, 1), 1, "")
    assert await chosen(study, SORTING) is not None
    study.room.clock.now += 61
    assert await chosen(study, SORTING) is None


async def test_a_deleted_session_takes_its_episodes_and_comments_with_it(study: Study) -> None:
    await good(study, SORTING, session="s")
    await good(study, BAKING, session="t")
    await study.learned.drop_session(SessionKey("t", "s"), "kai")
    assert [episode.question for episode in await episodes(study)] == [BAKING]
    assert await chosen(study, SORTING) is None
    found = await study.room.store.items(KAI, ("users", "kai", "feedback"), None, 10)
    assert [item.namespace[3] for item in found.items] == ["t"]


async def test_what_is_forgotten_is_no_example(study: Study) -> None:
    first, second = await good(study, SORTING, BAKING, session="s")
    receipt = await study.forget("s", first, dry_run=True)
    assert [(f.kind, f.action, f.text) for f in receipt] == [("episode", "deleted", SORTING)]
    assert len(await episodes(study)) == 2
    assert await study.forget("s", first) == receipt
    assert [episode.question for episode in await episodes(study)] == [BAKING]
    assert len(await study.forget("s")) == 1 and not await episodes(study)


# In a prompt


async def test_the_example_is_the_one_that_is_like_the_question(study: Study) -> None:
    await good(study, SORTING, BAKING, "Which trains go to Kiel?")
    block = await chosen(study, "How can I sort a list of names in Python?")
    assert block is not None
    assert block.lines == f"User: {SORTING}\nAnswer: I note: {SORTING}"
    assert (block.kind, block.note) == ("episodes", NOTE)
    (source,) = block.sources
    assert source.kind == "episode" and source.session == "s" and source.score >= 0.3


@pytest.mark.parametrize("question", ["Who was Napoleon?", "Thanks!", "", "What should I do?"])
async def test_questions_like_none_get_no_example(study: Study, question: str) -> None:
    await good(study, SORTING, BAKING)
    assert await chosen(study, question) is None


async def test_at_most_so_many_and_the_likest_first(room: Classroom) -> None:
    room.settings = studying.settings(episodes={"most": 2, "min_score": 0.1})
    study = Study(room)
    await good(study, "How do I sort a tuple in Python?", SORTING, "Can Python sort a dict?")
    block = await chosen(study, SORTING)
    assert block is not None and len(block.sources) == 2
    assert block.lines.startswith(f"User: {SORTING}\n")


async def test_what_does_not_fit_is_left_out(study: Study) -> None:
    await good(study, SORTING)
    block = await chosen(study, SORTING)
    assert block is not None
    assert await chosen(study, SORTING, block.tokens + 10) == block
    assert await chosen(study, SORTING, block.tokens - 10) is None


async def test_examples_in_scripts_without_spaces_are_found(study: Study) -> None:
    await good(study, "如何用Python对列表排序？", "面包要烤多久？")
    block = await chosen(study, "怎样给列表排序？")
    assert block is not None and "排序" in block.lines and "面包" not in block.lines


# From what the user says next


@pytest.fixture
def judging(room: Classroom) -> Study:
    room.settings = studying.settings(episodes={"by_model": True})
    return Study(room)


def found_good(*pairs: tuple[int, str]) -> str:
    return json.dumps({"good": [{"number": n, "quote": quote} for n, quote in pairs]})


async def test_a_user_who_is_pleased_makes_an_episode(judging: Study) -> None:
    question, _ = await judging.room.say(SORTING, "Perfect, that worked! Now in reverse, please.")
    judging.answers(found_good((1, "that worked")))
    await judging.room.learn()
    (episode,) = await episodes(judging)
    assert (episode.question, episode.origin) == (SORTING, "learned")
    assert episode.sources[0].exchange == question
    (asked,) = judging.asked
    assert SORTING in asked and "that worked" in asked
    assert "I note" not in asked, "answers are not shown"
    await judging.room.learn()
    assert len(judging.asked) == 1


async def test_where_nobody_is_pleased_nothing_is_asked(judging: Study) -> None:
    await judging.room.say(SORTING, BAKING, "And with rye flour?")
    await judging.room.learn()
    assert not judging.asked and not await episodes(judging)


async def test_one_request_is_enough_for_a_lesson(judging: Study) -> None:
    await judging.room.say(SORTING, "Great, it works!", BAKING, "Thank you, that helped a lot.")
    judging.answers(found_good((1, "it works"), (2, "that helped a lot")))
    await judging.room.learn()
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
        '{"good": [{"number": "1", "quote": "that worked"}]}',
    ],
)
async def test_what_the_user_did_not_say_shows_nothing(judging: Study, answer: str) -> None:
    await judging.room.say(SORTING, "Perfect, that worked!")
    judging.answers(answer)
    await judging.room.learn()
    assert not await episodes(judging)


async def test_an_answer_without_json_is_tried_another_time(judging: Study) -> None:
    await judging.room.say(SORTING, "Perfect, that worked!")
    judging.answers("I think so.")
    with pytest.raises(Unreadable):
        await judging.room.learn()
    judging.answers(found_good((1, "that worked")))
    await judging.room.learn()
    assert len(await episodes(judging)) == 1


async def test_what_a_person_has_judged_is_left_alone(judging: Study) -> None:
    exchange, _ = await judging.room.say(SORTING, "Perfect, that worked!")
    await judging.judge(exchange, -1)
    await judging.room.learn()
    assert not judging.asked and not await episodes(judging)


async def test_the_first_message_of_a_lesson_is_about_the_turn_before_it(judging: Study) -> None:
    await judging.room.say(SORTING)
    await judging.room.learn()
    await judging.room.say("Perfect, that worked!")
    judging.answers(found_good((1, "that worked")))
    await judging.room.learn()
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
    pair = Pair("?", "m", _said("He wrote:\n```\nthat worked fine\n```\nWhat now? Thanks."))
    assert good_in(found_good((1, "that worked fine")), [pair]) == []


def _said(text: str) -> Said:
    return Said("ex.0", "ex", 1, text, MAY, pasted(text))
