"""What a model gives away, checked against what was said."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.learning.facts.statements import Topic
from proxy.memory.model import SessionKey, WorkRequest
from proxy.stores.open import open_store
from tests.support.clock import Clock
from tests.support.learning.harness import (
    DAY,
    KAI,
    MAY,
    Harness,
    ScriptedModel,
    answer,
    learning,
    operation,
    states,
)
from tests.support.waiting import PATIENCE


async def test_a_note_that_nothing_was_said_of_stays_with_a_mark(harness: Harness) -> None:
    """A model that takes all notes back for whatever it read, in its words or the user's."""
    known = ("I am allergic to celery.", "I drive a red van.")
    await harness.say(*known)
    harness.model.answers = [
        answer(*(operation(text=text, quote=text, message=n) for n, text in enumerate(known, 1)))
    ]
    await harness.learn()
    await harness.say("Good evening, I sold that van yesterday.")
    wrong = {"quote": "Good evening, I sold", "valid_from": "1999-01-01", "expires": "1999-01-02"}
    harness.model.answers = [
        answer(
            *(
                operation("supersede", fact=n, text="The user lives on the moon.", **wrong)
                for n in (1, 2)
            )
        )
    ]
    await harness.learn()
    facts = {fact.text: fact for fact in await harness.facts()}
    allergic, van, news = (facts[text] for text in (*known, wrong["quote"]))
    assert (allergic.state, allergic.doubted_by) == ("current", news.id)
    assert (van.state, van.superseded_by) == ("superseded", news.id)
    assert not news.known_since and news.until is None
    await harness.forgetting.forget(KAI, "s", "ex_3", False)
    assert {(fact.state, fact.doubted_by) for fact in await harness.facts()} == {("current", None)}


TENNIS = states(r"I play (\w+)", "The user plays {}.", subject="cat")
CAT = states(r"My (cat) is called (\w+)", "The user has a {} called {}.")


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_a_doubt_is_over_once_that_was_said_again(
    harness: Harness, order: Sequence[int]
) -> None:
    """By the same model, which takes the cat's note back for tennis; in any order of arrival."""
    said = ("My cat is called Mochi.", "I play tennis.", "I said: My cat is called Mochi.")
    harness.model.rules = [CAT, TENNIS]
    for month in order:
        await harness.say(said[month], session=f"month{month}", at=MAY + month * 30 * DAY)
        await harness.learn(f"month{month}")
    facts = {fact.text: fact for fact in await harness.facts()}
    assert {(fact.state, fact.doubted_by) for fact in facts.values()} == {("current", None)}
    await harness.say("I play golf.", session="month3", at=MAY + 90 * DAY)
    await harness.learn("month3")
    facts = {fact.text: fact for fact in await harness.facts()}
    cat, golf = facts["The user has a cat called Mochi."], facts["The user plays golf."]
    assert cat.doubted_by == golf.id


def test_a_word_of_most_notes_or_another_language_tells_nothing() -> None:
    notes = [f"Dana has a {thing}." for thing in ("boat", "harp", "kiln", "goat", "sled")]
    matter = Topic("I am Dana and I sold the harp", notes)
    assert [matter.shares_word(note, "Dana is rich.") for note in notes] == [
        False,
        True,
        *[False] * 3,
    ]
    assert matter.shares_word("Dana wohnt mit dem Hund in der Stadt.", "Dana is rich.")


TOLD = (
    "My boss is called Priya.",
    "My boss is called Marcus.",
    "My boss is called Priya and she is back.",
    "My cat is called Mochi.",
    "My boss is called Olga now.",
)
BOSS = states(r"My (boss|cat) is called (\w+)", "The user has a {} called {}.")


def told_of(months: Collection[int]) -> dict[str, str]:
    """Of each name what was said later, by when they were said last."""
    named = ((month, TOLD[month].split()[4].strip(".")) for month in sorted(months))
    last = {name: month for month, name in named}
    boss = max((name for name in last if name != "Mochi"), key=lambda name: last[name])
    return {name: "" if name in (boss, "Mochi") else boss for name in last}


async def _bosses(
    order: Sequence[int], ready: Sequence[bool], forgotten: int
) -> list[dict[str, str]]:
    """What was said later of each, where a model supersedes nothing and the months come in this
    order, each read when it comes or with the next one; then without one of them."""
    store = open_store("memory://", timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    try:
        harness = Harness(store, ScriptedModel([BOSS]), Clock(MAY + 999 * DAY), learning())
        for month, at_once in zip(order, (*ready, True), strict=True):
            name = f"month{month}"
            await harness.say(TOLD[month], session=name, at=MAY + month * 30 * DAY)
            due = WorkRequest(kind="learning", profile="", due_at=harness.clock())
            await store.enqueue(SessionKey("t", name), due)
            if at_once:
                await harness.learn(name)
        all_of_them = await harness.facts()
        await harness.forgetting.forget(KAI, f"month{forgotten}", None, False)
        left = await harness.facts()
        assert {fact.state for fact in (*all_of_them, *left)} == {"current"}
        return [
            {fact.text.split()[-1].strip("."): fact.later for fact in x}
            for x in (all_of_them, left)
        ]
    finally:
        await store.close()


@given(
    st.permutations(range(len(TOLD))),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.integers(0, len(TOLD) - 1),
)
@settings(max_examples=60, deadline=None)
def test_of_what_has_one_value_the_later_one_marks_the_earlier_in_any_order_of_arrival(
    order: Sequence[int], ready: Sequence[bool], forgotten: int
) -> None:
    said, left = asyncio.run(_bosses(order, ready, forgotten))
    assert said == told_of(order)
    assert left == told_of([month for month in order if month != forgotten])


async def test_of_what_was_said_at_one_moment_nothing_is_later(harness: Harness) -> None:
    harness.model.rules = [BOSS]
    await harness.say(*TOLD[:2])
    await harness.learn()
    assert [fact.later for fact in await harness.facts()] == ["", ""]


async def test_what_was_said_later_stands_in_the_prompt_until_a_person_edits(
    harness: Harness,
) -> None:
    harness.model.rules = [BOSS]
    await harness.say(TOLD[0], at=MAY - DAY)
    await harness.say(TOLD[1])
    await harness.learn()

    async def lines() -> list[str]:
        return [line.line.partition(" (")[0] for line in (await harness.fact_store.card(KAI)).lines]

    old, new = (f"- My boss: The user has a boss called {name}." for name in ("Priya", "Marcus"))
    assert sorted(await lines()) == sorted([f"{old} [later: Marcus]", new])
    await harness.fact_store.change(
        KAI, lambda facts: facts.update({id: replace(x, edited=True) for id, x in facts.items()})
    )
    assert sorted(await lines()) == sorted([old, new])
