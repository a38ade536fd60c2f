"""A message that goes on about what is in sight needs nothing older.

``bench/data/follow_ups.jsonl``: a hundred, in five languages, behind what their people said before,
and behind the long histories of ``conversations.jsonl``.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from proxy.memory.model import SessionKey
from proxy.recall.query.continuation import asks_about_past
from proxy.recall.query.query import RecallOptions, RecallQuery
from proxy.recall.query.question import read_question
from proxy.recall.query.words import tokenize
from proxy.recall.recaller import Recaller
from proxy.recall.results import Recollection
from tests.support.store.passages import TENANT, Memory, said

DATA = Path(__file__).parents[2] / "bench" / "data"


def _read(name: str) -> list[dict[str, Any]]:
    return list(map(json.loads, (DATA / name).read_text("utf-8").splitlines()))


PEOPLE = _read("follow_ups.jsonl")
OTHERS = _read("conversations.jsonl")
MAX_ANSWERED, MAX_TOKENS = 10, 40
MAX_BEHIND_MUCH = 12


async def told(remembering: Memory, person: dict[str, Any]) -> None:
    for number, texts in enumerate(person["old"]):
        commit = said(f"{person['lang']}{number}", *texts, user=person["lang"])
        await remembering.commit(f"{person['lang']}-{number}", commit)


def tokens(text: str) -> int:
    return len(text) // 3 if text.isascii() else len(text)


async def asked(recaller: Recaller, user: str, text: str, *before: str) -> Recollection:
    return await recaller.recall(
        RecallQuery(
            key=SessionKey(TENANT, "now"),
            user=user,
            session_owner=None,
            text=text,
            previous_texts=before,
            budget=1500,
            count=tokens,
            options=RecallOptions(),
        )
    )


async def told_much(remembering: Memory, user: str) -> None:
    """What six people said in months, by one."""
    for person in OTHERS:
        for session in person["sessions"]:
            texts = [text for _, _, text in session["turns"]]
            name = f"{user}-{person['id']}-{session['sid']}"
            await remembering.commit(name, said(name, *texts, user=user))


async def all_asked(remembering: Memory) -> list[Recollection]:
    return [
        await asked(remembering.recaller, person["lang"], text, *topic["before"])
        for person in PEOPLE
        for topic in person["topics"]
        for text in topic["asks"]
    ]


@pytest.mark.parametrize("long", [False, True], ids=["short-history", "long-history"])
async def test_what_is_answered_in_the_window_recalls_next_to_nothing(
    remembering: Memory, long: bool
) -> None:
    for person in PEOPLE:
        await told(remembering, person)
        if long:
            await told_much(remembering, person["lang"])
    found = await all_asked(remembering)
    assert len(found) == 100
    most = MAX_BEHIND_MUCH if long else MAX_ANSWERED
    assert sum(bool(each.passages) for each in found) <= most
    assert fmean(sum(one.tokens for one in each.passages) for each in found) <= MAX_TOKENS


@pytest.mark.parametrize(
    ("text", "before", "there"),
    [
        (
            "And how long did it take?",
            ("Was my train late?", "Yes, on the way to the coast."),
            "five",
        ),
        ("Where was that red bicycle from?", ("Where is Oslo?", "In Norway."), "bicycle"),
        ("And the apple trees, are they ill?", ("Where is Oslo?", "In Norway."), "apple"),
        ("What did you say then of the apple?", ("Where is Oslo?", "In Norway."), "branches"),
        ("And what about April, when?", ("Where is Oslo?", "In Norway."), "April"),
        ("What about my sister?", ("Where is Oslo?", "In Norway."), "Biscuit"),
        ("What about her, is Biscuit well?", ("Where is Oslo?", "In Norway."), "Biscuit"),
        ("So how was the soup?", ("Where is Oslo?", "In Norway."), "soup"),
        ("And who was her cat again?", ("Where is Oslo?", "In Norway."), "Biscuit"),
        ("and biscuit?", ("Where is Oslo?", "In Norway."), "Biscuit"),
    ],
    ids=[
        "goes-on-about-the-past",
        "points-at-a-thing",
        "has-two-words-of-its-own",
        "asks-what-was-said",
        "names-who-is-called-like-a-month",
        "is-about-the-users-own",
        "names-somebody",
        "asks-for-what-was",
        "asks-once-more",
        "names-somebody-in-small-letters",
    ],
)
async def test_what_goes_on_about_the_past_is_found(
    remembering: Memory, text: str, before: tuple[str, ...], there: str
) -> None:
    await told(remembering, PEOPLE[0])
    april = said("april", "My friend April plays the drum.", "Loud!", user="en")
    await remembering.commit("april", april)
    found = await asked(remembering.recaller, "en", text, *before)
    assert any(there in each.text for each in found.passages)


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ("Is it open on Mondays?", True),
        ("Does that work?", True),
        ("Where is that canoe now?", False),
        ("Waar is dat restaurant nu?", False),
        ("Is it what Anna meant?", False),
        ("Dov'è il museo?", False),
        ("¿Dónde vive el gato?", False),
        ("Waar woont hij?", True),
        ("Hoe lang duurt het?", True),
        ("Hvor lang tid tager det?", True),
        ("C'est ouvert ?", True),
    ],
)
def test_a_day_is_nobodys_name_and_an_article_stands_for_nothing(text: str, goes_on: bool) -> None:
    before = ("Tell me about the blue canoe.",)
    assert bool(read_question(text, before, 0.0).context_terms) == goes_on


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("So who was the vet?", True),
        ("Et comment s'appelait le vétérinaire ?", True),
        ("Og hva het tannlegen?", True),
        ("Og hvad hed tandlægen?", True),
        ("Og hva het det?", False),
        ("Und was ist das?", False),
        ("And what was her name again?", True),
        ("Und wer war der Tierarzt?", True),
        ("Und was hat der Tierarzt gekostet?", True),
        ("Und wie hieß sie nochmal?", True),
        ("Und wie war das mit dem Kessel?", True),
        ("Et c'était qui, le vétérinaire ?", True),
        ("¿Y quién era el veterinario?", True),
        ("那个兽医是谁来着？", True),
        ("And the pasta?", False),
        ("Was it open?", False),
        ("So is that what he did?", False),
        ("Can you do it again?", False),
        ("Und kannst du es nochmal machen?", False),
        ("War es offen?", False),
    ],
)
def test_what_asks_for_what_was_and_for_nothing_in_sight_looks_back(text: str, back: bool) -> None:
    assert asks_about_past(tokenize(text)) == back
