"""One person's talks, and what models of several kinds answer about them: whatever the kind, each
fact is there once and dated right, and the profile is short.

The talks and answers are in ``golden``.  A model's numbers of notes are written as ``{word}``: the
note that has the word.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from proxy.background.completion import Assignment
from proxy.learning.facts.fact import Fact, date_text
from proxy.learning.profile.proposal_check import KEYS, MAX_KEYS
from tests.support.learning import environment
from tests.support.learning.environment import Env
from tests.support.learning.harness import DAY, MAY, Harness, learning, notes_in, states

GOLDEN = Path(__file__).parent / "golden"
TALKS = json.loads((GOLDEN / "talks.json").read_text())
FACTS = json.loads((GOLDEN / "facts.json").read_text())
PROFILES = json.loads((GOLDEN / "profile.json").read_text())
SESSIONS = ("spring", "summer")


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def numbered(reply: str, asked: Assignment) -> str:
    """The reply with the numbers of the notes that it was shown."""

    def number(found: re.Match[str]) -> str:
        return next(str(n) for n, note in notes_in(asked.text) if found[1] in note)

    return re.sub(r"\{(\w+)\}", number, reply)


async def converse(harness: Harness) -> None:
    """Both sessions, each learned from when it is over."""
    for session in SESSIONS:
        for each in TALKS["said"]:
            if each["session"] == session:
                await harness.say(each["text"], session=session, at=seconds(each["at"]))
        harness.clock.now = seconds(each["at"]) + DAY if session == "summer" else harness.clock.now
        assert await harness.learn(session) is None


def is_found(wanted: dict[str, Any], fact: Fact) -> bool:
    about = fact.about if wanted["about"] == "user" else wanted["about"]
    return (
        (wanted["about"] == "user") == (fact.about == "user")
        and about in fact.about
        and all(word in fact.text for word in wanted["has"])
    )


def is_dated(wanted: dict[str, Any], fact: Fact) -> bool:
    """As was said; what was not said is not known."""
    begins = date_text(fact.valid_from) if fact.known_since else None
    ends = date_text(fact.until - 1) if fact.until is not None else None
    return (begins, ends) == (wanted["from"], wanted["to"])


@pytest.mark.parametrize("kind", FACTS)
async def test_facts_are_there_once_and_dated_right_and_nothing_else_is(
    harness: Harness, kind: str
) -> None:
    harness.settings = learning()
    harness.model.answers = [
        lambda asked, reply=reply: numbered(reply, asked)  # type: ignore[misc]
        for reply in FACTS[kind]
    ]
    await converse(harness)
    facts = await harness.facts()
    for wanted in TALKS["facts"]:
        (fact,) = [fact for fact in facts if is_found(wanted, fact)]
        assert is_dated(wanted, fact), fact
        assert fact.state == wanted["state"]
    assert len(facts) == len(TALKS["facts"]), [fact.text for fact in facts]
    told = " ".join(f"{fact.about} {fact.text}" for fact in facts)
    assert not [word for word in TALKS["never"] if re.search(rf"\b{word}\b", told, re.IGNORECASE)]
    assert len(harness.model.asked) == len(SESSIONS)


async def test_the_second_request_shows_the_notes_of_the_first_with_what_is_known(
    harness: Harness,
) -> None:
    harness.settings = learning()
    harness.model.answers = [
        lambda asked, reply=reply: numbered(reply, asked)  # type: ignore[misc]
        for reply in FACTS["good"]
    ]
    await converse(harness)
    text = harness.model.asked[1].text
    assert "Mill Road. (noted 2024-03-12; holds from 2024-03-04)" in text
    assert "her friend Amir. (noted 2024-03-12)" in text
    assert "trophy" not in harness.model.asked[0].text and "[photo]" in text


async def test_name_and_family_are_shown_whatever_the_messages_are_about(harness: Harness) -> None:
    named = "The user is called Nora."
    harness.model.rules = [
        states(r"I own (\w+ \w+)", "The user owns {}."),
        states(r"call me (\w+)", "The user is called {}."),
    ]
    await harness.say("Please call me Nora.", at=MAY - DAY)
    for n in range(40):
        await harness.say(f"I own boat{n} sail{n}.")
    await harness.learn()
    await harness.say("I own boat7 sail7, is that good?")
    await harness.learn()
    last = harness.model.asked[-1].text
    assert "Notes so far that may be related (30 of 41; always name and family):\n" in last
    assert named in last and "Notes so far:\n" not in last


@pytest.mark.parametrize("kind", PROFILES)
async def test_a_profile_has_few_keys_and_only_what_the_user_said(
    harness: Harness, kind: str
) -> None:
    harness.settings = environment.settings(profile={})
    env = Env(harness)
    env.answers(*PROFILES[kind])
    await converse(harness)
    document = await env.document()
    found = {key: each if isinstance(each, str) else list(each) for key, each in document.items()}
    wanted = TALKS["profile"]
    for key, value in wanted.items():
        assert found[key] in (value, "".join(value)), (key, found[key])
    assert found.keys() == wanted.keys()
    assert len(env.asked) == len(SESSIONS) and not harness.skipped


async def test_a_profile_that_drifts_stays_within_its_keys(harness: Harness) -> None:
    harness.settings = environment.settings(profile={})
    env = Env(harness)
    names = [*KEYS, "job", "city", "hobby", "pets", "dreams", "interests"]
    drifting = [{"key": key, "value": "bakery", "quote": "at the bakery"} for key in names]
    env.answers(json.dumps({"set": drifting}), '{"set": [], "append": [], "remove": []}')
    await converse(harness)
    assert len(await env.document()) == MAX_KEYS
    assert set(KEYS) <= (await env.document()).keys()
