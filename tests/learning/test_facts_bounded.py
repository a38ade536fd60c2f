"""How many facts of a user are kept, and which of them."""

from __future__ import annotations

import threading

from proxy.learning.evidence import Source
from proxy.learning.facts.extract import FactExtractor
from proxy.learning.facts.fact import Fact, new_id
from proxy.learning.kinds import FACTS
from tests.support.learning.harness import DAY, KAI, MAY, Harness, learning, states

HAS = states(r"I have an? (\w+)", "The user has a {}.")


async def test_over_the_most_facts_the_least_confirmed_go(harness: Harness) -> None:
    harness.settings = learning(max_facts=3)
    harness.model.rules = [HAS]
    for thing in ("boat", "dog", "cat", "tent", "bike"):
        harness.clock.now += DAY
        await harness.say(f"I have a {thing}.")
        await harness.learn()
    assert await harness.current() == [f"The user has a {x}." for x in ("cat", "tent", "bike")]
    assert len(await harness.facts()) == 5


async def test_what_a_person_has_added_takes_no_place_from_what_is_learned(
    harness: Harness,
) -> None:
    harness.settings = learning(max_facts=2)
    added = [Fact(id=f"f{n}", text=f"Note {n}.", origin="added") for n in range(3)]
    await harness.fact_store.change(KAI, lambda facts: facts.update({x.id: x for x in added}))
    harness.model.rules = [HAS]
    for thing in ("boat", "dog", "cat"):
        harness.clock.now += DAY
        await harness.say(f"I have a {thing}.")
        await harness.learn()
    notes = [f"Note {n}." for n in range(3)]
    assert await harness.current() == [*notes, "The user has a dog.", "The user has a cat."]


async def test_what_was_just_learned_or_confirmed_is_not_set_aside(harness: Harness) -> None:
    """However long ago it was said."""
    harness.settings = learning(max_facts=2)
    harness.model.rules = [HAS]
    for n, thing in enumerate(("boat", "dog")):
        await harness.say(f"I have a {thing}.", at=MAY + n * DAY)
    await harness.learn()
    for n, (thing, left) in enumerate((("cat", "dog"), ("tent", "dog"), ("tent", "dog"))):
        session = f"old{n}"
        await harness.say(f"I have a {thing}.", session=session, at=MAY - 100 * DAY + n)
        await harness.learn(session)
        assert await harness.current() == [f"The user has a {x}." for x in (thing, left)]


async def test_what_is_learned_is_compared_with_what_is_known_in_a_thread(harness: Harness) -> None:
    """With thousands of facts half a second, for which the chats of all others would wait."""
    compared = []

    def id_of_new() -> str:
        compared.append(threading.get_ident())
        return new_id()

    model = FACTS.model(harness.model)
    harness.extractors = [
        FactExtractor(model, harness.fact_store, ids=id_of_new),
    ]
    harness.model.rules = [HAS]
    await harness.say("I have a boat.")
    await harness.learn()
    assert await harness.current() == ["The user has a boat."]
    assert compared and threading.get_ident() not in compared


async def test_what_is_forgotten_is_sought_in_a_thread(harness: Harness) -> None:
    """What is current again is compared with thousands of facts then."""
    sought = []

    def is_gone(source: Source) -> bool:
        sought.append(threading.get_ident())
        return True

    harness.model.rules = [HAS]
    await harness.say("I have a boat.")
    await harness.learn()
    await harness.fact_store.forget(KAI, is_gone, False)
    assert await harness.current() == []
    assert sought and threading.get_ident() not in sought
