"""Whoever is erased while a model writes about them is not written about."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proxy.background.completion import Assignment, Completed
from proxy.learning.forgetting import Busy
from proxy.learning.notebook import Notebook
from proxy.learning.source import Source
from proxy.memory.erasure import Subject
from proxy.memory.items import Shelf
from proxy.memory.model import SessionKey
from proxy.settings.written import FactsSettings
from proxy.stores.backend import Backend
from proxy.stores.opening import open_store
from tests.support import studying
from tests.support.clock import Clock
from tests.support.learning import KAI, LIVES, MAY, Classroom, Extractor, learning
from tests.support.studying import NOTHING, TENANT, Study, adding

SAID = "I live in Berlin."
SORTING = "How do I sort a list in Python?"
PLEASED = "Perfect, that worked!"
SESSION = SessionKey("t", "s")


@pytest.fixture
def clock() -> Clock:
    return Clock(MAY)


@pytest.fixture(params=["memory", "sqlite"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[Backend]:
    """On the clock of the rest: marks are of a time."""
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    store = open_store(url, timeout=5, commit_timeout=30, clock=clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def room(store: Backend, clock: Clock) -> Classroom:
    return Classroom(store, Extractor([LIVES]), clock, learning())


@dataclass
class Interrupted(Extractor):
    """``meanwhile`` happens once, while it thinks."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def complete(self, assignment: Assignment) -> Completed:
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            await happens()
        return await super().complete(assignment)


async def erase(room: Classroom) -> None:
    """The person's session and all that is kept of them, as of now."""
    for subject in (Subject("t", "kai"), Subject("t", session="s")):
        await room.store.mark(subject, room.clock())
    await room.store.delete(SESSION)
    await room.store.drop_items(KAI, ())
    room.clock.now += 1


async def delete(room: Classroom) -> None:
    """The session alone, as of now."""
    await room.store.mark(Subject("t", session="s"), room.clock())
    await room.store.delete(SESSION)
    room.clock.now += 1


async def kept(room: Classroom) -> str:
    """All that is on the person's shelf."""
    found = (await room.store.items(KAI, (), None, 100)).items
    return " ".join(bytes(item.value).decode() for item in found)


GOOD = json.dumps({"good": [{"number": 1, "quote": "that worked"}]})
LEARNING = {
    "facts": (learning(), "", "Berlin"),
    "profile": (studying.settings(profile={}), adding("/home", "Berlin", SAID), "Berlin"),
    "episodes": (studying.settings(episodes={"by_model": True}), GOOD, "sort a list"),
}
"""By feature: the settings, what the model answers (facts by a rule), and what is kept then."""


@pytest.mark.parametrize("what", ["erased", "erased-and-back", "nothing"])
@pytest.mark.parametrize("feature", LEARNING)
async def test_what_was_read_before_is_not_learned_behind(
    room: Classroom, feature: str, what: str
) -> None:
    room.settings, answer, text = LEARNING[feature]

    async def meanwhile() -> None:
        if what != "nothing":
            await erase(room)
        if what == "erased-and-back":
            await room.say("Good morning.")

    room.model = Interrupted(rules=(LIVES,), meanwhile=meanwhile)
    if answer:
        room.model.answers += [answer, NOTHING]
        room.students = Study(room).room.students
    await room.say(SORTING, PLEASED, SAID)
    again = await room.learn()
    assert room.model.meanwhile is None and len(room.model.asked) == 1
    assert (text in await kept(room)) == (what == "nothing")
    assert (again is None) == (what == "nothing")


async def test_an_example_of_a_session_that_is_deleted_meanwhile_is_taken_back(
    room: Classroom,
) -> None:
    room.settings = studying.settings(episodes={"by_model": True})
    room.model = Interrupted(answers=[GOOD])
    study = Study(room)
    await room.say(SORTING, PLEASED)
    change_items, armed = room.store.change_items, True

    async def deleted_first(*asked: Any, **more: Any) -> bool:
        """All was read: now it is deleted, and then it is written."""
        nonlocal armed
        if armed and len(asked[1]) > 1:
            armed = False
            await delete(room)
        return await change_items(*asked, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room.store, "change_items", deleted_first)
        await room.learn()
    assert not armed
    assert not (await study.learned.episodes.held(KAI)).episodes
    assert "sort a list" not in await kept(room)


async def test_no_proposal_is_made_of_the_remarks_of_who_was_erased(room: Classroom) -> None:
    instructions = {"application": "shop", "after_feedback": 1}

    async def meanwhile() -> None:
        await study.learned.remarks.person("t", "kai")
        await erase(room)

    room.settings = studying.settings(instructions=instructions)
    improved = json.dumps({"instructions": "Name the price of tea.", "why": "They like tea."})
    room.model = Interrupted(answers=[improved], meanwhile=meanwhile)
    study = Study(room)
    for user, session in [("kai", "s"), ("eve", "other")]:
        (exchange,) = await room.say("What is tea?", session=session, user=user)
        await study.judge(exchange, -1, f"I am {user}.", session)
    await study.reflect("other")
    found = await study.learned.instructions.proposals(TENANT, "shop", None, 10)
    assert found.items == ()
    room.model.answers = [json.dumps({"instructions": "Be brief.", "why": "Too long."})]
    await study.reflect("other")
    assert "I am eve." in room.model.asked[-1].text
    assert "I am kai." not in room.model.asked[-1].text
    found = await study.learned.instructions.proposals(TENANT, "shop", None, 10)
    assert [proposal.text for proposal in found.items] == ["Be brief."]


async def test_what_waits_of_a_session_is_dropped_with_it(room: Classroom) -> None:
    room.settings = studying.settings(instructions={"application": "shop", "after_feedback": 9})
    study = Study(room)
    for session in ("s", "other"):
        (exchange,) = await room.say("What is tea?", session=session)
        await study.judge(exchange, -1, "Wrong.", session)
    pending, remarks = study.learned.pending, study.learned.remarks
    await remarks.session(SESSION, "not-this-one")
    assert len(await pending.pending(TENANT, "shop")) == 2
    await remarks.session(SESSION)
    assert [each.session for _, each in await pending.pending(TENANT, "shop")] == ["other"]
    assert (await pending.waiting(TENANT, "shop")).reflection.waiting == 1


async def test_a_model_saves_nothing_of_a_request_that_began_before(room: Classroom) -> None:
    notebook, began = Notebook(room.book, FactsSettings()), room.clock()
    await room.store.mark(Subject("t", "kai"), began)
    source = Source(session="s", message="", exchange="x", at=began + 5)
    with pytest.raises(Busy):
        await notebook.save(KAI, "They like tea.", source, began)
    assert await room.facts() == []
    await notebook.save(KAI, "They like milk.", source, began + 1)
    await notebook.save(Shelf("t", "eve"), "They like tea.", source, began)
    assert [fact.text for fact in await room.facts()] == ["They like milk."]


@pytest.fixture
async def proposed(room: Classroom) -> Study:
    """Two people's feedback, a proposal of each, and one of both."""
    room.settings = studying.settings(instructions={"application": "shop", "after_feedback": 1})
    study, exchanges = Study(room), dict[str, str]()
    for user, session in [("kai", "s"), ("eve", "other")]:
        (exchanges[session],) = await room.say("What is tea?", session=session, user=user)
        await judged(study, exchanges[session], session, f"{user} wants it short.")
    (again,) = await room.say("And milk?", session="other", user="eve")
    room.settings = studying.settings(instructions={"application": "shop", "after_feedback": 2})
    await study.judge(exchanges["s"], -1, "Still.")
    await judged(study, again, "other", "both want it short.")
    assert await texts(study) == [
        "kai wants it short.",
        "eve wants it short.",
        "both want it short.",
    ]
    return study


async def judged(study: Study, exchange: str, session: str, improved: str) -> None:
    """Feedback of which something is proposed at once."""
    study.answers(json.dumps({"instructions": improved, "why": "They said so."}))
    await study.judge(exchange, -1, "Too long.", session)
    assert await study.reflect(session) is None
    study.room.clock.now += 1


async def texts(study: Study) -> list[str]:
    page = await study.learned.instructions.proposals(TENANT, "shop", None, 10)
    return [proposal.text for proposal in page.items]


async def test_a_proposal_goes_with_whoever_it_was_made_of(proposed: Study) -> None:
    remarks = proposed.learned.remarks
    assert await remarks.person("t", "kai", dry_run=True) == 2
    assert await remarks.person("t", "nobody", ["other"], dry_run=True) == 2
    assert len(await texts(proposed)) == 3
    assert await remarks.person("t", "kai") == 2
    assert await texts(proposed) == ["eve wants it short."]
    assert await remarks.person("t", "kai") == 0


async def test_a_proposal_goes_with_the_session_or_the_message_it_was_made_of(
    proposed: Study,
) -> None:
    remarks, other = proposed.learned.remarks, SessionKey("t", "other")
    first, second = sorted(await remarks.judged(other))
    assert await remarks.session(other, second) == 1
    assert await texts(proposed) == ["kai wants it short.", "eve wants it short."]
    assert await remarks.session(SESSION) == 1
    assert await texts(proposed) == ["eve wants it short."]
    await remarks.proposed(other, [second])
    assert await texts(proposed) == ["eve wants it short."]
    await remarks.proposed(other, [first])
    assert await texts(proposed) == []


async def test_a_decided_proposal_goes_as_well_and_the_text_in_force_stays(
    proposed: Study,
) -> None:
    shelf = proposed.learned.instructions
    page = await shelf.proposals(TENANT, "shop", None, 10)
    await shelf.decide(TENANT, "shop", page.items[0].id, approve=True)
    await shelf.decide(TENANT, "shop", page.items[2].id, approve=False)
    assert await proposed.learned.remarks.person("t", "kai") == 2
    assert await texts(proposed) == ["eve wants it short."]
    assert (await shelf.current(TENANT, "shop")).instructions.text == "kai wants it short."


@pytest.mark.parametrize("session", ["feedback", "proposals"])
async def test_what_is_said_of_nobodys_session_is_no_applications(
    room: Classroom, session: str
) -> None:
    room.settings = studying.settings(instructions={"application": "shop", "after_feedback": 9})
    study = Study(room)
    (exchange,) = await room.say("What is tea?", session=session, user=None)
    await study.judge(exchange, -1, "Wrong.", session)
    assert await study.learned.remarks.person("t", "kai") == 0
    assert len(await study.learned.pending.pending(TENANT, "shop")) == 1
