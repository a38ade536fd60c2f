"""Whoever is erased while a model writes about them is not written about."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proxy.background.completion import Assignment, Completed
from proxy.learning.collection import Busy
from proxy.learning.evidence import Source
from proxy.learning.facts.tools import FactTools
from proxy.memory.archive import Revision
from proxy.memory.erasure import Subject
from proxy.memory.items import ItemOwner
from proxy.memory.model import MessageEdit, SessionKey
from proxy.settings.learned import FactsSettings
from proxy.stores.open import Backend, open_store
from tests.support.clock import Clock
from tests.support.learning import environment
from tests.support.learning.environment import NOTHING, TENANT, Env, adding
from tests.support.learning.harness import KAI, LIVES, MAY, Harness, ScriptedModel, learning

SAID = "I live in Berlin."
SORTING = "How do I sort a list in Python?"
PLEASED = "Perfect, that worked!"
SESSION = SessionKey("t", "s")


@pytest.fixture
def clock() -> Clock:
    return Clock(MAY)


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[Backend]:
    """On the clock of the rest: marks are of a time."""
    store = open_store(f"sqlite:///{tmp_path}/memory.db", timeout=5, commit_timeout=30, clock=clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def harness(store: Backend, clock: Clock) -> Harness:
    return Harness(store, ScriptedModel([LIVES]), clock, learning())


@dataclass
class Interrupted(ScriptedModel):
    """``meanwhile`` happens once, while it thinks."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def complete(self, assignment: Assignment) -> Completed:
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            await happens()
        return await super().complete(assignment)


async def erase(harness: Harness) -> None:
    """The person's session and all that is kept of them, as of now."""
    for subject in (Subject("t", "kai"), Subject("t", session="s")):
        await harness.store.mark([subject], harness.clock())
    await harness.store.delete(SESSION)
    await harness.store.drop_items(KAI, ())
    harness.clock.now += 1


async def delete(harness: Harness) -> None:
    """The session alone, as of now."""
    await harness.store.mark([Subject("t", session="s")], harness.clock())
    await harness.store.delete(SESSION)
    harness.clock.now += 1


async def kept(harness: Harness) -> str:
    """All that is on the person's shelf."""
    found = (await harness.store.items(KAI, (), None, 100)).items
    return " ".join(bytes(item.value).decode() for item in found)


GOOD = json.dumps({"good": [{"number": 1, "quote": "that worked"}]})
LEARNING = {
    "facts": (learning(), "", "Berlin"),
    "profile": (environment.settings(profile={}), adding("/home", "Berlin", SAID), "Berlin"),
    "episodes": (environment.settings(episodes={"by_model": True}), GOOD, "sort a list"),
}
"""By feature: the settings, what the model answers (facts by a rule), and what is kept then."""


@pytest.mark.parametrize("what", ["erased", "erased-and-back", "nothing"])
@pytest.mark.parametrize("feature", LEARNING)
async def test_what_was_read_before_is_not_learned_behind(
    harness: Harness, feature: str, what: str
) -> None:
    harness.settings, answer, text = LEARNING[feature]

    async def meanwhile() -> None:
        if what != "nothing":
            await erase(harness)
        if what == "erased-and-back":
            await harness.say("Good morning.")

    harness.model = Interrupted(rules=(LIVES,), meanwhile=meanwhile)
    if answer:
        harness.model.answers += [answer, NOTHING]
        harness.extractors = Env(harness).harness.extractors
    await harness.say(SORTING, PLEASED, SAID)
    again = await harness.learn()
    assert harness.model.meanwhile is None and len(harness.model.asked) == 1
    assert (text in await kept(harness)) == (what == "nothing")
    assert (again is None) == (what == "nothing")


async def remove(harness: Harness) -> None:
    """The newest message of the user's alone."""
    last = (await harness.store.lines(SESSION, 0, 100)).items[-2]
    assert await harness.store.revise(SESSION, Revision(removed=(last.card.id,)))


async def edit(harness: Harness) -> None:
    """It says something else."""
    last = (await harness.store.lines(SESSION, 0, 100)).items[-2]
    body = json.dumps({"role": "user", "content": "I live somewhere."}).encode()
    edited = MessageEdit(card=last.card, body=body, wire=None, replaced_wire=last.body)
    assert await harness.store.revise(SESSION, Revision(edited=(edited,)))


async def supersede(harness: Harness) -> None:
    """It was said, but is not gone on from."""
    last = (await harness.store.lines(SESSION, 0, 100)).items[-2]
    assert await harness.store.revise(SESSION, Revision(superseded=(last.card.id,)))


@pytest.mark.parametrize(
    ("happens", "stays"), [(delete, False), (remove, False), (edit, False), (supersede, True)]
)
@pytest.mark.parametrize("feature", ["facts", "profile"])
async def test_what_came_of_a_message_that_goes_while_it_is_read_is_taken_back(
    harness: Harness, feature: str, happens: Callable[[Harness], Awaitable[None]], stays: bool
) -> None:
    harness.settings, answer, text = LEARNING[feature]
    harness.model = Interrupted(rules=(LIVES,))
    before = adding("/town", "Rome", "I live in Rome")
    if answer:
        harness.model.answers += [before, answer]
        harness.extractors = Env(harness).harness.extractors
    await harness.say("I live in Rome.")
    await harness.learn()
    harness.model.meanwhile = lambda: happens(harness)
    await harness.say(SAID)
    await harness.learn()
    assert len(harness.model.asked) == 2
    assert (text in await kept(harness)) == stays
    assert "Rome" in await kept(harness), "what was learned before stays"
    if feature == "facts" and not stays:
        assert await harness.current() == ["The user lives in Rome."]


async def test_what_others_said_as_well_is_not_taken_back(harness: Harness) -> None:
    harness.model = Interrupted(rules=(LIVES,))
    await harness.say(SAID, session="other")
    await harness.learn("other")
    harness.model.meanwhile = lambda: delete(harness)
    await harness.say(SAID)
    await harness.learn()
    assert len(harness.model.asked) == 2
    (fact,) = await harness.facts()
    assert [source.session for source in fact.sources] == ["other"]


async def test_an_example_of_a_session_that_is_deleted_meanwhile_is_taken_back(
    harness: Harness,
) -> None:
    harness.settings = environment.settings(episodes={"by_model": True})
    harness.model = Interrupted(answers=[GOOD])
    env = Env(harness)
    await harness.say(SORTING, PLEASED)
    change_items, armed = harness.store.change_items, True

    async def deleted_first(*asked: Any, **more: Any) -> bool:
        """All was read: now it is deleted, and then it is written."""
        nonlocal armed
        if armed and len(asked[1]) > 1:
            armed = False
            await delete(harness)
        return await change_items(*asked, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness.store, "change_items", deleted_first)
        await harness.learn()
    assert not armed
    assert not (await env.learned.episodes.load(KAI)).episodes
    assert "sort a list" not in await kept(harness)


async def test_no_proposal_is_made_of_the_remarks_of_who_was_erased(harness: Harness) -> None:
    instructions = {"application": "shop", "after_feedback": 1}

    async def meanwhile() -> None:
        await env.learned.feedback_forgetter.forget_person("t", "kai")
        await erase(harness)

    harness.settings = environment.settings(instructions=instructions)
    improved = json.dumps({"instructions": "Name the price of tea.", "why": "They like tea."})
    harness.model = Interrupted(answers=[improved], meanwhile=meanwhile)
    env = Env(harness)
    for user, session in [("kai", "s"), ("eve", "other")]:
        (exchange,) = await harness.say("What is tea?", session=session, user=user)
        await env.judge(exchange, -1, f"I am {user}.", session)
    await env.reflect("other")
    found = await env.learned.instructions.proposals(TENANT, "shop", None, 10)
    assert found.items == ()
    harness.model.answers = [json.dumps({"instructions": "Be brief.", "why": "Too long."})]
    await env.reflect("other")
    assert "I am eve." in harness.model.asked[-1].text
    assert "I am kai." not in harness.model.asked[-1].text
    found = await env.learned.instructions.proposals(TENANT, "shop", None, 10)
    assert [proposal.text for proposal in found.items] == ["Be brief."]


async def test_what_waits_of_a_session_is_dropped_with_it(harness: Harness) -> None:
    harness.settings = environment.settings(
        instructions={"application": "shop", "after_feedback": 9}
    )
    env = Env(harness)
    for session in ("s", "other"):
        (exchange,) = await harness.say("What is tea?", session=session)
        await env.judge(exchange, -1, "Wrong.", session)
    pending, remarks = env.learned.pending, env.learned.feedback_forgetter
    await remarks.forget_session(SESSION, "not-this-one")
    assert len(await pending.entries(TENANT, "shop")) == 2
    await remarks.forget_session(SESSION)
    assert [each.session for _, each in await pending.entries(TENANT, "shop")] == ["other"]
    assert (await pending.reflection(TENANT, "shop")).value.waiting == 1


async def test_a_model_saves_nothing_of_a_request_that_began_before(harness: Harness) -> None:
    tools, began = FactTools(harness.fact_store, FactsSettings()), harness.clock()
    await harness.store.mark([Subject("t", "kai")], began)
    source = Source(session="s", message="", exchange="x", at=began + 5)
    with pytest.raises(Busy):
        await tools.save(KAI, "They like tea.", source, began)
    assert await harness.facts() == []
    await tools.save(KAI, "They like milk.", source, began + 1)
    await tools.save(ItemOwner("t", "eve"), "They like tea.", source, began)
    assert [fact.text for fact in await harness.facts()] == ["They like milk."]


@pytest.fixture
async def proposed(harness: Harness) -> Env:
    """Two people's feedback, a proposal of each, and one of both."""
    harness.settings = environment.settings(
        instructions={"application": "shop", "after_feedback": 1}
    )
    env, exchanges = Env(harness), dict[str, str]()
    for user, session in [("kai", "s"), ("eve", "other")]:
        (exchanges[session],) = await harness.say("What is tea?", session=session, user=user)
        await judged(env, exchanges[session], session, f"{user} wants it short.")
    (again,) = await harness.say("And milk?", session="other", user="eve")
    harness.settings = environment.settings(
        instructions={"application": "shop", "after_feedback": 2}
    )
    await env.judge(exchanges["s"], -1, "Still.")
    await judged(env, again, "other", "both want it short.")
    assert await texts(env) == [
        "kai wants it short.",
        "eve wants it short.",
        "both want it short.",
    ]
    return env


async def judged(env: Env, exchange: str, session: str, improved: str) -> None:
    """Feedback of which something is proposed at once."""
    env.answers(json.dumps({"instructions": improved, "why": "They said so."}))
    await env.judge(exchange, -1, "Too long.", session)
    assert await env.reflect(session) is None
    env.harness.clock.now += 1


async def texts(env: Env) -> list[str]:
    page = await env.learned.instructions.proposals(TENANT, "shop", None, 10)
    return [proposal.text for proposal in page.items]


async def test_a_proposal_goes_with_whoever_it_was_made_of(proposed: Env) -> None:
    remarks = proposed.learned.feedback_forgetter
    assert await remarks.forget_person("t", "kai", dry_run=True) == 2
    assert await remarks.forget_person("t", "nobody", ["other"], dry_run=True) == 2
    assert len(await texts(proposed)) == 3
    assert await remarks.forget_person("t", "kai") == 2
    assert await texts(proposed) == ["eve wants it short."]
    assert await remarks.forget_person("t", "kai") == 0


async def test_a_proposal_goes_with_the_session_or_the_message_it_was_made_of(
    proposed: Env,
) -> None:
    remarks, other = proposed.learned.feedback_forgetter, SessionKey("t", "other")
    first, second = sorted(await remarks.messages_with_proposals(other))
    assert await remarks.forget_session(other, second) == 1
    assert await texts(proposed) == ["kai wants it short.", "eve wants it short."]
    assert await remarks.forget_session(SESSION) == 1
    assert await texts(proposed) == ["eve wants it short."]
    await remarks.drop_proposals(other, [second])
    assert await texts(proposed) == ["eve wants it short."]
    await remarks.drop_proposals(other, [first])
    assert await texts(proposed) == []


async def test_a_decided_proposal_goes_as_well_and_the_text_in_force_stays(
    proposed: Env,
) -> None:
    owner = proposed.learned.instructions
    page = await owner.proposals(TENANT, "shop", None, 10)
    await owner.decide(TENANT, "shop", page.items[0].id, approve=True)
    await owner.decide(TENANT, "shop", page.items[2].id, approve=False)
    assert await proposed.learned.feedback_forgetter.forget_person("t", "kai") == 2
    assert await texts(proposed) == ["eve wants it short."]
    assert (await owner.current(TENANT, "shop")).value.text == "kai wants it short."


@pytest.mark.parametrize("session", ["feedback", "proposals"])
async def test_what_is_said_of_nobodys_session_is_no_applications(
    harness: Harness, session: str
) -> None:
    harness.settings = environment.settings(
        instructions={"application": "shop", "after_feedback": 9}
    )
    env = Env(harness)
    (exchange,) = await harness.say("What is tea?", session=session, user=None)
    await env.judge(exchange, -1, "Wrong.", session)
    assert await env.learned.feedback_forgetter.forget_person("t", "kai") == 0
    assert len(await env.learned.pending.entries(TENANT, "shop")) == 1
