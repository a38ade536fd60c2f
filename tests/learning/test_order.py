"""What was said earlier is read earlier, and what was said later holds: whatever session it is
from, and in whatever order it arrives."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import permutations
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.background.completion import Assignment, Failed
from proxy.learning.batch import LearningContext
from proxy.learning.evidence import UserMessage
from proxy.learning.facts.fact import FACTS, Fact, render_dates, with_state
from proxy.learning.reading import MAX_OPEN, day_after, without_captions
from proxy.memory.model import SessionKey, WorkRequest
from proxy.settings import ProfileSettings
from proxy.stores.open import open_store
from tests.support.clock import Clock
from tests.support.learning import environment
from tests.support.learning.environment import Env
from tests.support.learning.harness import (
    DAY,
    KAI,
    LIVES,
    MAY,
    Harness,
    ScriptedModel,
    answer,
    learning,
    messages_in,
    notes_in,
    operation,
)
from tests.support.store.archives import take_out
from tests.support.waiting import PATIENCE


async def ask(harness: Harness, *sessions: str, profile: str = "") -> None:
    """The sessions ask for learning, as their exchanges do."""
    for session in sessions:
        due = WorkRequest(kind="learning", profile=profile, due_at=harness.clock())
        await harness.store.enqueue(SessionKey("t", session), due)


def heard(harness: Harness) -> list[list[str]]:
    """What each request was about."""
    return [[each.text for each in messages_in(x.text)] for x in harness.model.asked]


async def test_sessions_that_ask_are_read_together_in_the_order_of_what_was_said(
    harness: Harness,
) -> None:
    harness.model.rules = ()
    for n, session in enumerate("abacab"):
        await harness.say(f"Thing {n}", session=session, at=MAY + n * DAY)
    await ask(harness, "a", "b", "c")
    assert await harness.learn("c") is None
    assert heard(harness) == [[f"Thing {n}" for n in range(6)]]
    for session in "ab":
        assert await harness.learn(session) is None
    assert len(harness.model.asked) == 1, "nothing is read twice"


async def test_what_is_imported_later_and_was_said_earlier_is_read_earlier(
    harness: Harness,
) -> None:
    """The sessions come in the opposite order, and more of it than fits into one request."""
    harness.settings = learning(max_input_tokens=200)
    harness.model.rules = ()
    for n in reversed(range(12)):
        await harness.say(f"Thing {n} " + "word " * 60, session=f"s{n}", at=MAY + n * DAY)
    await ask(harness, *(f"s{n}" for n in range(12)))
    await harness.learn("s11")
    read = [int(text.split()[1]) for texts in heard(harness) for text in texts]
    assert read == list(range(12)) and len(harness.model.asked) > 3


async def test_a_session_that_has_lost_its_end_is_read_again(harness: Harness) -> None:
    """As one on a master of a cluster that went back in time, whose person lies on another."""
    key = SessionKey("t", "s")
    await harness.say("I live in Berlin.")
    before = await take_out(harness.store, key)
    await harness.say("It rains.", "It snows.")
    await harness.learn()
    await harness.store.delete(key)
    assert await harness.store.restore(key, before)
    await harness.say("I live in Paris.")
    await harness.learn()
    assert heard(harness)[1:] == [["I live in Berlin.", "I live in Paris."]]
    assert await harness.current() == ["The user lives in Paris."]
    await harness.learn()
    assert len(harness.model.asked) == 2, "nothing is read twice"


async def test_a_session_that_has_grown_since_it_was_looked_at_is_not_read_again(
    harness: Harness,
) -> None:
    """By somebody else, who has read what was added."""
    key = SessionKey("t", "s")
    await harness.say("I live in Berlin.")
    before = await harness.store.session(key)
    assert before is not None
    await harness.say("It rains.")
    await harness.learn()
    context = LearningContext(before, key, "", harness.settings, "m")
    assert await harness.job.reader.unread(harness.store, FACTS, [context]) == []


async def test_a_session_that_does_not_ask_is_left_alone(harness: Harness) -> None:
    await harness.say("I live in Berlin.", session="old")
    await harness.say("I live in Paris.", session="new")
    await harness.learn("new")
    assert heard(harness) == [["I live in Paris."]]


async def test_sessions_of_other_profiles_are_not_put_into_one_request(harness: Harness) -> None:
    harness.model.rules = ()
    shy, open_hearted = ProfileSettings(), learning(focus="boats")
    profiles = {"": harness.settings, "shy": shy, "boats": open_hearted}
    for n, session in enumerate(["plain", "shy", "boats"]):
        await harness.say(f"I am {session}", session=session, at=MAY + n)
        await ask(harness, session, profile=session if session in profiles else "")
    job = harness.job
    job.profile_of = profiles.get
    await job.run((await harness.store.waiting(harness.clock(), 10))[0])
    assert heard(harness) == [["I am plain"], ["I am boats"]]
    assert ["boats\n" in x.text for x in harness.model.asked] == [False, True]


async def test_more_sessions_than_are_open_at_once_are_all_read(harness: Harness) -> None:
    harness.model.rules = ()
    names = [f"s{n}" for n in range(MAX_OPEN + 5)]
    for day in range(2):
        for name in names:
            await harness.say(f"{name} on day {day}", session=name, at=MAY + day * DAY)
    await ask(harness, *names)
    await harness.learn("s0")
    read = [text for texts in heard(harness) for text in texts]
    assert sorted(read) == sorted(f"{name} on day {day}" for name in names for day in range(2))


async def test_an_unreadable_batch_is_counted_for_whichever_session_asks(harness: Harness) -> None:
    await harness.say("I live in Berlin.", session="a", at=MAY)
    await harness.say("I moved to Paris.", session="b", at=MAY + DAY)
    await ask(harness, "a", "b")
    harness.model.answers = ["No."] * 8
    job, (first, second) = harness.job, await harness.store.waiting(harness.clock(), 10)
    for work in (first, second, first):
        with pytest.raises(Exception, match="JSON"):
            await job.run(work)
        harness.clock.now += DAY
    assert await job.run(second) is None
    assert harness.skipped == ["facts"]


# Later words win

MONTHS = (
    "I moved to Bonn",
    "I moved to Paris",
    "I moved to Kiel",
    "I moved to Bonn",
    "I bought a dog",
)
MOVED = re.compile(r"moved to (\w+)")


class Mover(ScriptedModel):
    """Notes where somebody has moved to, of several messages the last first, and without a note so
    far in the last alone; what is shown to it as noted, it believes to be older."""

    def _by_rules(self, assignment: Assignment) -> str:
        if assignment.feature == "facts":
            noted = json.loads(super()._by_rules(assignment))["operations"]
            return answer(*(reversed(noted) if notes_in(assignment.text) else noted[-1:]))
        said = {x.text: MOVED.search(x.text) for x in messages_in(assignment.text)}
        homes = [{"key": "home", "value": x[1], "quote": text} for text, x in said.items() if x]
        listed = [{**each, "key": "history"} for each in homes]
        pets = [{"key": "pets", "value": "dog", "quote": text} for text in said if "dog" in text]
        return json.dumps({"set": homes[::-1], "append": listed + pets, "remove": []})


def told_of(months: Sequence[int]) -> dict[str, Any]:
    """The profile of who has said only that."""
    cities = [found[1] for month in sorted(months) if (found := MOVED.search(MONTHS[month]))]
    pets = {"pets": ["dog"]} if any("dog" in MONTHS[month] for month in months) else {}
    return {"home": cities[-1], "history": sorted(set(cities)), **pets}


async def _moves(
    order: Sequence[int], ready: Sequence[bool], down: Sequence[bool], forgotten: int
) -> tuple[list[str], list[Any]]:
    """One session a month, in an order of arrival, each read when it comes or with the next one;
    those whose model is down when they come, at the end.

    The facts then, and the profile, before and after one month is forgotten.
    """
    store = open_store("memory://", timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    try:
        wanted = environment.settings(facts={}, profile={})
        harness = Harness(store, model := Mover([LIVES]), Clock(MAY + 999 * DAY), wanted)
        env = Env(harness)
        for month, at_once, fails in zip(order, (*ready, True), down, strict=True):
            name, said = f"month{month}", MAY + month * 30 * DAY
            model.down |= {name} if fails else set()
            await harness.say(MONTHS[month], session=name, at=said, model=name)
            await ask(harness, name)
            if at_once:
                with suppress(Failed):
                    await harness.learn(name)
        model.down.clear()
        for month in order:
            await harness.learn(f"month{month}")
        current, profiles = await harness.current(), [await env.document()]
        await env.forget(f"month{forgotten}")
        return current, [*profiles, await env.document()]
    finally:
        await store.close()


@given(
    st.permutations(range(len(MONTHS))),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.integers(0, len(MONTHS) - 1),
)
@example([0, 3, 1, 2, 4], [True] * 4, [False] * 5, 1)
@example([2, 4, 3, 0, 1], [False, True, True, True], [False] * 5, 4)
@settings(max_examples=40, deadline=None)
def test_what_was_said_last_holds_in_any_order_of_arrival(
    order: Sequence[int], ready: Sequence[bool], down: Sequence[bool], forgotten: int
) -> None:
    """Said once more, or with something else in between; and as if one month had never been."""
    current, profiles = asyncio.run(_moves(order, ready, down, forgotten))
    assert current == ["The user lives in Bonn."]
    for profile in profiles:
        profile["history"].sort()  # a list grows whenever it was said
    left = [month for month in order if month != forgotten]
    assert profiles == [told_of(order), told_of(left)]


def moved(op: str, city: str, message: int) -> dict[str, Any]:
    text = f"The user lives in {city}."
    return operation(op, fact=1, text=text, quote=f"moved to {city}", message=message)


@pytest.mark.parametrize("op", ["supersede", "update"])
@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("apart", [0.0, DAY])
async def test_of_several_changes_of_a_note_in_one_batch_the_last_one_said_holds(
    harness: Harness, op: str, order: Sequence[int], apart: float
) -> None:
    """In whatever order they are proposed, even if all was said at one moment."""
    await harness.say("I live in Berlin.")
    await harness.learn()
    for n, city in enumerate(("Paris", "Rome", "Kiel"), 1):
        await harness.say(f"I moved to {city}.", at=MAY + n * apart)
    ops = [moved("supersede", "Paris", 1), moved("supersede", "Rome", 2), moved(op, "Kiel", 3)]
    harness.model.answers = [answer(*(ops[n] for n in order))]
    await harness.learn()
    assert await harness.current() == ["The user lives in Kiel."]
    await harness.forgetting.forget(KAI, "s", "ex_4", False)
    assert await harness.current() == ["The user lives in Rome."]


async def test_what_one_message_says_and_what_is_only_more_precise_stand_side_by_side(
    harness: Harness,
) -> None:
    await harness.say("I live in Berlin, with my dog.")
    both, rex, age = "I moved to Kiel and bake bread there", "my dog is Rex", "the dog is five"
    live = operation(text="The user lives in Berlin.", quote="I live in Berlin")
    has = operation(text="The user has a dog.", quote="with my dog")
    harness.model.answers = [answer(live, has)]
    await harness.learn()
    await harness.say(both, rex, age)

    def noted(asked: Assignment) -> str:
        numbers = {note: number for number, note in notes_in(asked.text)}
        home, dog = numbers["The user lives in Berlin."], numbers["The user has a dog."]
        return answer(
            operation("supersede", fact=home, text="The user lives in Kiel.", quote=both),
            operation("supersede", fact=home, text="The user bakes bread.", quote=both),
            operation("update", fact=dog, text="The user has a dog called Rex.", quote=rex),
            operation("update", fact=dog, text="The user has a dog aged five.", quote=age),
        )

    harness.model.answers = [noted]
    await harness.learn()
    assert await harness.current() == [
        "The user bakes bread.",
        "The user has a dog aged five.",
        "The user has a dog called Rex.",
        "The user lives in Kiel.",
    ]


async def test_what_was_taken_back_later_does_not_come_back(harness: Harness) -> None:
    harness.settings = environment.settings(profile={})
    env = Env(harness)

    def saying(way: str, value: str, quote: str) -> str:
        return json.dumps({way: [{"key": "hobbies", "value": value, "quote": quote}]})

    await harness.say("I took up golf and chess.", session="a", at=MAY)
    env.answers(
        json.dumps(
            {
                "append": [
                    {"key": "hobbies", "value": x, "quote": "I took up golf and chess"}
                    for x in ("golf", "chess")
                ]
            }
        )
    )
    await harness.learn("a")
    await harness.say("I gave up golf.", session="c", at=MAY + 60 * DAY)
    env.answers(saying("remove", "Golf", "I gave up golf"))
    await harness.learn("c")
    await harness.say("I play golf each day.", session="b", at=MAY + 30 * DAY)
    env.answers(saying("append", "golf", "I play golf each day"))
    await harness.learn("b")
    assert await env.document() == {"hobbies": ["chess"]}
    await harness.say("I play the piano.", session="d", at=MAY - 30 * DAY)
    env.answers(saying("append", "piano", "I play the piano"))
    await harness.learn("d")
    assert await env.document() == {"hobbies": ["chess", "piano"]}


async def test_older_news_do_not_make_a_later_note_more_precise(harness: Harness) -> None:
    await harness.say("I live in Paris.")
    await harness.learn()
    await harness.say("I live in Berlin, in Kreuzberg.", session="old", at=MAY - 60 * DAY)
    update = operation(
        "update", fact=1, text="Lives in Kreuzberg, Berlin.", quote="I live in Berlin, in Kreuzberg"
    )
    harness.model.answers = [answer(update)]
    await harness.learn("old")
    assert await harness.current() == ["The user lives in Paris."]


LISBON = "The user is staying in Lisbon."


def staying(op: str, month: str) -> tuple[str, str]:
    """What a user says of the end of a stay, and what a model makes of it."""
    said = f"I am staying in Lisbon until {month}"
    known = None if op == "add" else 1
    return said, answer(operation(op, fact=known, text=LISBON, quote=said, expires=month))


@pytest.mark.parametrize("op", ["add", "update", "supersede", "none"])
async def test_another_end_that_is_told_later_holds_and_none_that_was_told_earlier(
    harness: Harness, op: str
) -> None:
    said, noted = staying("add", "2023-06")
    await harness.say(said, session="a")
    harness.model.answers = [noted]
    await harness.learn("a")

    def edit(facts: dict[str, Fact]) -> None:
        facts.update({id: replace(x, metadata={"by": "hand"}) for id, x in facts.items()})

    await harness.fact_store.change(KAI, edit)
    for session, day, (said, noted) in (
        ("b", 9, staying(op, "2023-08")),
        ("c", 5, staying(op, "2023-07")),
        ("d", 9, staying(op, "2023-08")),
    ):
        await harness.say(said, session=session, at=MAY + day * DAY)
        harness.model.answers = [noted]
        await harness.learn(session)
    old, new = sorted(await harness.facts(), key=lambda fact: fact.until or 0.0)
    assert (old.state, old.superseded_by, old.text) == ("superseded", new.id, new.text)
    assert render_dates(new) == "noted 2023-05-17; holds to 2023-08-31"
    assert new.expires_at == new.until and new.inherited == old.sources
    assert new.metadata == {"by": "hand"}
    for session in "bcd":
        await harness.forgetting.forget(KAI, session, None, False)
    assert await harness.facts() == [with_state(old, "current")]


async def test_a_day_that_was_told_stays_as_long_as_the_other_one_allows_it(
    harness: Harness,
) -> None:
    told = []
    for dates in (
        {"valid_from": "2023-06-01", "expires": "2023-06-15"},
        {"expires": "2023-06-30"},
        {"valid_from": "2023-08-01"},
        {"expires": "2023-07-15"},
    ):
        said = f"I travel to Rome: {dates}"
        await harness.say(said)
        noted = operation(text="The user travels to Rome.", quote=said, **dates)
        harness.model.answers = [answer(noted)]
        await harness.learn()
        (fact,) = [fact for fact in await harness.facts() if fact.state == "current"]
        told.append(render_dates(fact).removeprefix("noted 2023-05-08; "))
    assert told == [
        "holds 2023-06-01 to 2023-06-15",
        "holds 2023-06-01 to 2023-06-30",
        "holds from 2023-08-01",
        "holds to 2023-07-15",
    ]


async def test_since_when_is_not_taken_from_what_only_says_a_note_again(harness: Harness) -> None:
    fields = {"text": "The user lives in Berlin.", "quote": "I live in Berlin"}
    again = operation("none", fact=1, **fields, valid_from="2023-05-01")
    harness.model.answers = [answer(operation(**fields)), answer(again)]
    for _ in range(2):
        await harness.say("I live in Berlin.")
        await harness.learn()
    (fact,) = await harness.facts()
    assert len(fact.sources) == 2 and not fact.known_since


# The day of a text


async def test_the_day_that_a_text_names_is_told_again_at_each_cut(harness: Harness) -> None:
    """In the rest of a long message, and in the messages behind it; not in another session."""
    harness.settings = learning(max_input_tokens=200)
    harness.model.rules = ()
    text = "Saturday, 4 February 2023\n" + "\n".join(f"Line {n} of many words." for n in range(80))
    await harness.say(text, "And then I went home.", session="a", at=MAY)
    await harness.say("Hello.", session="b", at=MAY + DAY)
    await ask(harness, "a", "b")
    await harness.learn("a")
    headings = [
        line
        for asked in harness.model.asked
        for line in asked.text.splitlines()
        if line.startswith("Message ")
    ]
    assert len(harness.model.asked) > 2
    assert headings[0] == "Message 1, Monday 2023-05-08 13:56:"
    assert headings[1] == "Message 1, Monday 2023-05-08 13:56, text of 2023-02-04:"
    assert [", text of 2023-02-04:" in line for line in headings[1:-1]] == [True] * len(
        headings[1:-1]
    )
    assert headings[-1].endswith("Tuesday 2023-05-09 13:56:")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("[8 May 2023]\nHello", "2023-05-08"),
        ("Date: 2023-05-08\nHello", "2023-05-08"),
        ("- May 8th, 2023: hello\nhi", "2023-05-08"),
        ("[2023-05-08 10:33] Ann: hello\n[2023-05-09 08:00] Ann: hi", "2023-05-09"),
        ("Montag, 8. Mai 2023\nHallo", "2023-05-08"),
        ("2023年5月8日\n你好", "2023-05-08"),
        ("I was born on 3 May 1990.", ""),
        ("On 8 May we left.", ""),
        ("8 May\nHello", ""),
        ("", ""),
    ],
)
def test_a_day_above_lines_is_told_from_one_that_is_mentioned(text: str, day: str) -> None:
    assert day_after(UserMessage("m", "e", 1, text, MAY)) == day


def test_captions_are_no_words_of_the_user() -> None:
    text = "Look! [Photo: a man in Rome] My dog. 【图片：一只狗】 [8:30] see [1] and [x](y: z)"
    assert without_captions(text) == "Look! [Photo] My dog. [图片] [8:30] see [1] and [x](y: z)"


def test_brackets_of_the_user_are() -> None:
    text = "[Important: I am allergic to nuts] [TODO: call Bo]"
    assert without_captions(text) == text
