"""How many facts of a user are kept, and which of them."""

from __future__ import annotations

from proxy.learning.facts.fact import Fact
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
