"""What is learned is dated by the days of who has said it, in the zone of recall."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest

from proxy.learning.facts.card import FactCard, build_card
from proxy.learning.facts.fact import Fact, date_text
from proxy.learning.facts.tools import FactTools
from proxy.learning.kinds import FACTS
from proxy.learning.learned import PromptCards
from proxy.learning.prompt_cards import Cards
from proxy.learning.similarity import QueryText
from proxy.settings import ProfileSettings
from tests.support.learning import environment
from tests.support.learning.environment import Env
from tests.support.learning.harness import (
    KAI,
    LIVES,
    Harness,
    answer,
    count,
    learning,
    messages_in,
    operation,
)

AUCKLAND = ZoneInfo("Pacific/Auckland")
MORNING = datetime(2023, 5, 8, 8, 30, tzinfo=AUCKLAND).timestamp()
"""It is still the 7th in UTC."""


def there(settings: ProfileSettings) -> ProfileSettings:
    recall = settings.recall.model_copy(update={"time_zone": AUCKLAND.key})
    return settings.model_copy(update={"recall": recall})


@pytest.fixture(autouse=True)
def in_auckland(harness: Harness) -> None:
    harness.settings = there(harness.settings)


@pytest.mark.parametrize(("claimed", "day"), [("2023-05-07", "2023-05-07"), ("2023-05-08", None)])
async def test_yesterday_is_the_day_before_that_of_the_message_there(
    harness: Harness, claimed: str, day: str | None
) -> None:
    """The day of the message itself, as the model is shown it, tells nothing."""
    quit = {"text": "The user quit smoking.", "quote": "I quit smoking", "valid_from": claimed}
    harness.model.answers = [answer(operation(**quit))]
    await harness.say("I quit smoking yesterday.", at=MORNING)
    await harness.learn()
    assert messages_in(harness.model.asked[0].text)[0].date == "2023-05-08"
    (fact,) = await harness.facts()
    assert (date_text(fact.valid_from) if fact.known_since else None) == day


async def test_what_ends_on_the_day_before_is_past(harness: Harness) -> None:
    stays = {"text": "The user is in Oslo.", "quote": "I was in Oslo", "expires": "2023-05-07"}
    harness.model.answers = [answer(operation(**stays))]
    await harness.say("I was in Oslo until yesterday.", at=MORNING)
    await harness.learn()
    (fact,) = await harness.facts()
    assert fact.until is None


async def test_a_profile_is_shown_messages_with_their_times_there(harness: Harness) -> None:
    harness.settings = there(environment.settings(profile={}))
    env = Env(harness)
    await env.harness.say("I live in Kiel.", at=MORNING)
    env.answers(environment.adding("/home", "Kiel", "I live in Kiel"))
    await env.harness.learn()
    assert "Message 1, Monday 2023-05-08 08:30:" in env.asked[0]


async def test_a_fact_is_noted_on_its_day_there(harness: Harness) -> None:
    """In a prompt, to a tool, and to the model that reads on."""
    harness.model.rules = [LIVES]
    for home in ("Kiel", "Bonn"):
        await harness.say(f"I live in {home}.", at=MORNING)
        await harness.learn()
    noted = "The user lives in {}. (noted 2023-05-08)"
    assert noted.format("Kiel") in harness.model.asked[-1].text
    shown = PromptCards(harness.store, [FACTS], harness.clock)
    cards = await shown.look("t", "kai", harness.settings)
    known = shown.choose(cards, "", 1000, count)
    assert [block.lines for block in known.tail] == [f"- {noted.format('Bonn')}"]
    tools = FactTools(harness.fact_store, harness.settings.facts, AUCKLAND)
    (found,) = await tools.find(KAI, "Where do I live, Bonn?", 3)
    assert found.text == noted.format("Bonn")


def test_yesterday_in_a_question_finds_what_was_said_on_that_day_there() -> None:
    facts = [
        Fact(id=str(n), text=text, valid_from=at, last_confirmed=at)
        for n, (text, at) in enumerate([("Rex is ill.", MORNING), ("Rex is old.", MORNING - 9e5)])
    ]
    words = build_card(facts, FactCard(), count, MORNING).term_lists
    later = MORNING + 12 * 3600  # the 8th there, and in UTC
    for zone, alike in ((AUCKLAND, False), (None, True)):
        ill, old = words.scores(QueryText("What happened today?", later, zone))
        assert (ill == old) is alike


def test_a_prompt_is_chosen_by_the_days_of_its_profile(harness: Harness) -> None:
    at = {"rex is ill": MORNING, "rex is old": MORNING - 9e5}
    facts = [
        Fact(id=text, text=text, about="rex", valid_from=said, last_confirmed=said)
        for text, said in at.items()
    ]
    card = msgspec.json.encode(build_card(facts, FactCard(), count, MORNING))
    later = MORNING + 12 * 3600
    for settings, named in ((there(learning()), ["rex is ill"]), (learning(), [])):
        cards = PromptCards(harness.store, [FACTS], lambda: later)
        known = cards.choose(Cards(settings, {"facts": card}), "What happened today?", 500, count)
        sources = [source for block in known.tail for source in block.sources]
        assert [source.message for source in sources] == named
