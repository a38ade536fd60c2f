"""How many facts of a person may be added or saved, and how many a card has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proxy.learning.evidence import Source
from proxy.learning.facts.card import MAX_LINES, FactCard, build_card
from proxy.learning.facts.fact import MAX_GIVEN, USER, Fact, Facts, TooManyFacts
from proxy.learning.facts.tools import FactTools
from tests.support.learning.given import FULL, filled
from tests.support.learning.harness import KAI, MAY, Harness, count, states

HAS = states(r"I have an? (\w+)", "The user has a {}.")
SOURCE = Source(session="s", message="", exchange="ex_1", at=MAY)


@pytest.fixture
def tools(harness: Harness) -> FactTools:
    return FactTools(harness.fact_store, harness.settings.facts)


async def test_one_too_many_is_not_saved_and_what_is_there_is_confirmed(
    harness: Harness, tools: FactTools
) -> None:
    await tools.save(KAI, "The user has a boat.", SOURCE)
    await harness.fact_store.change(KAI, filled)
    with pytest.raises(TooManyFacts, match=FULL):
        await tools.save(KAI, "The user has a dog.", SOURCE)
    with pytest.raises(TooManyFacts, match=FULL):
        await tools.add(KAI, "The user has a dog.", USER)
    again = await tools.save(KAI, "The user has a boat.", replace(SOURCE, exchange="ex_2"))
    assert len(again.sources) == 2
    assert await tools.add(KAI, "The user has a boat.", USER) == again
    assert len(await harness.facts()) == MAX_GIVEN


async def test_an_older_store_with_more_is_read_corrected_and_emptied(
    harness: Harness, tools: FactTools
) -> None:
    await harness.fact_store.change(KAI, lambda facts: filled(facts, MAX_GIVEN + 1))

    def correct(facts: Facts) -> None:
        facts["fact_00000"] = replace(facts["fact_00000"], text="The user has a boat.")

    await harness.fact_store.change(KAI, correct)
    assert [found.id for found in await tools.find(KAI, "my boat", 3)] == ["fact_00000"]
    assert await harness.fact_store.drop(KAI, "fact_00001")
    with pytest.raises(TooManyFacts):
        await tools.add(KAI, "The user has a dog.", USER)
    assert await harness.fact_store.drop(KAI, "fact_00002")
    await tools.add(KAI, "The user has a dog.", USER)


async def test_what_is_learned_takes_no_place_of_what_is_added(
    harness: Harness, tools: FactTools
) -> None:
    harness.model.rules = [HAS]
    await harness.say("I have a boat.")
    await harness.learn()
    await harness.fact_store.change(KAI, lambda facts: filled(facts, MAX_GIVEN))
    await tools.add(KAI, "The user has a dog.", USER)
    await harness.say("I have a tent.")
    await harness.learn()
    assert len(await harness.facts()) == MAX_GIVEN + 2


def test_a_card_has_a_bound_and_the_facts_confirmed_last() -> None:
    facts = [
        Fact(id=f"fact_{n:05}", text="Note.", valid_from=-n, last_confirmed=n)
        for n in range(MAX_LINES + 2)
    ]
    lines = build_card(facts, FactCard(), count, MAY).lines
    assert [line.id for line in lines] == [fact.id for fact in reversed(facts[2:])]
