"""A value that another session changes is often named there, and nothing of what is asked."""

from __future__ import annotations

import pytest

from proxy.recall.index_cache import IndexCache
from proxy.recall.query.query import RecallOptions
from proxy.recall.ranking.updates import MAX_RARE_PASSAGES
from tests.support.store.passages import Memory, said

TOLD = "My blood pressure is high, so I got ramipril 5 mg."
CHANGED = "The cough from ramipril was awful, they changed it to losartan 50."
ASKED = "What do I take for my blood pressure?"
BETWEEN = ("We had lasagna.", "The train was late again.", "It rains.", "I fixed the fence.")
PAIRS = [
    (TOLD, CHANGED, ASKED),
    ("Our CI runs on GitLab.", "We left GitLab for Buildkite.", "What does our CI run on?"),
    ("My dentist is Dr. Weber.", "Weber retired, I go to Dr. Sahin now.", "Who is my dentist?"),
    (
        "I drive a Golf to work.",
        "Sold the Golf, I have a Kia Niro now.",
        "What do I drive to work?",
    ),
    ("Mein Hausarzt ist Dr. Kern.", "Kern ist in Rente, ich gehe zu Aydin.", "Mein Hausarzt?"),
    ("我的牙医是魏伯恩。", "魏伯恩退休了，现在去找李明。", "我的牙医是谁？"),
]


async def talked(remembering: Memory, told: str, changed: str) -> None:
    """Told in one session, and changed in another that shares nothing else with it."""
    await remembering.commit("a", said("a1", told, "Noted.", user="kai"))
    for number, text in enumerate(BETWEEN * 6):
        await remembering.commit("b", said(f"b{number}", f"{text} {number}", "Yes.", user="kai"))
    await remembering.commit("c", said("c1", "Hi there!", "Hello!", user="kai"))
    await remembering.commit("c", said("c2", changed, "Okay.", user="kai"))


async def texts(remembering: Memory, asked: str = ASKED, **fields: object) -> list[str]:
    found = await remembering.recall(asked, **({"options": RecallOptions()} | fields))
    return [one.text for one in found.passages]


@pytest.mark.parametrize(("told", "changed", "asked"), PAIRS)
async def test_a_newer_value_is_found_by_the_name_of_the_older_one(
    remembering: Memory, told: str, changed: str, asked: str
) -> None:
    await talked(remembering, told, changed)
    found = await texts(remembering, asked)
    assert told in found and found[-1] == changed


@pytest.mark.parametrize(
    "fields",
    [
        {"budget": 70},
        {"is_search": True},
        {"asked": "How do I lower blood pressure?"},
        {"options": RecallOptions(roles=("assistant",))},
    ],
)
async def test_it_is_not_found_without_room_nor_for_who_searches_or_asks_what_anybody_might(
    remembering: Memory, fields: dict[str, object]
) -> None:
    await talked(remembering, TOLD, CHANGED)
    assert CHANGED not in await texts(remembering, **fields)  # type: ignore[arg-type]


async def test_what_was_said_before_it_or_asks_or_is_gone_does_not_come(
    remembering: Memory,
) -> None:
    before, asks = "Grandma had ramipril.", "What is ramipril?"
    await remembering.commit("0", said("o", before, *BETWEEN, user="kai"))
    await talked(remembering, TOLD, asks)
    key = await remembering.commit("d", said("d", CHANGED, user="kai"))
    assert not {before, asks} & set(await texts(remembering))
    assert CHANGED in await texts(remembering)
    await remembering.store.delete(key)
    assert CHANGED not in await texts(remembering)


async def test_a_word_that_many_messages_have_does_not_lead_to_any(remembering: Memory) -> None:
    await talked(remembering, TOLD, CHANGED)
    for number in range(MAX_RARE_PASSAGES):
        await remembering.commit("d", said(f"d{number}", f"Ramipril, day {number}.", user="kai"))
    assert CHANGED not in await texts(remembering)


async def test_each_round_of_a_turn_gets_the_newer_value(remembering: Memory) -> None:
    await talked(remembering, TOLD, CHANGED)
    first = await remembering.recall(ASKED, options=RecallOptions())
    refs = tuple([one.recalled for one in first.passages])
    assert CHANGED in [one.text for one in first.passages]
    assert await remembering.recall(ASKED, options=RecallOptions(), replayed=refs) == first


async def test_looking_for_it_costs_one_look_at_the_store_and_none_where_words_are_known(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talked(remembering, TOLD, "It is a cough, no more.")
    asked: list[str] = []

    class Watching:
        def __getattr__(self, name: str) -> object:
            asked.append(name)
            return getattr(remembering.store, name)

    store: object = Watching()
    monkeypatch.setattr(remembering.recaller, "_index", IndexCache(store))  # type: ignore[arg-type]
    monkeypatch.setattr(remembering.recaller, "_history", store)
    assert TOLD in await texts(remembering)
    assert sorted(asked) == ["lookup", "lookup", "passages", "rows"]
    asked.clear()
    assert TOLD in await texts(remembering)
    assert sorted(asked) == ["lookup", "passages"]
