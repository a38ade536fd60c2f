"""What the user changes some turns later is recalled with what it changes, where there is room."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proxy.recall.query.query import RecallOptions
from tests.support.store.passages import Memory, said

ASKED = "What was on my packing list for Iceland?"
LIST = ("Packing list for Iceland please.", "Jacket, wool hat, hiking boots, swimsuit, power bank.")
TURNS = (
    LIST,
    ("nice", "Glad you like it!"),
    ("Which of these is the heaviest?", "The shoes, I think."),
    ("no boots, mine are broken", "Done."),
    ("take the swimsuit out too", "Done."),
    ("thermal underwear instead", "Added."),
)
CHANGES = [text for text, _ in TURNS[3:]]


async def packed(remembering: Memory, turns: Sequence[tuple[str, str]] = TURNS) -> None:
    for number, texts in enumerate(turns):
        await remembering.commit("a", said(f"x{number}", *texts, user="kai"))


async def texts(remembering: Memory, **fields: object) -> list[str]:
    found = await remembering.recall(ASKED, options=RecallOptions(), **fields)
    return [one.text for one in found.passages]


async def test_what_was_changed_later_comes_along_behind_what_was_found(
    remembering: Memory,
) -> None:
    await packed(remembering)
    found = await texts(remembering)
    assert set(LIST) <= set(found)
    assert found[-3:] == CHANGES


async def test_what_asks_and_what_says_nothing_stays_behind(remembering: Memory) -> None:
    await packed(remembering)
    assert not {"nice", TURNS[2][0]} & set(await texts(remembering))


@pytest.mark.parametrize(
    "fields",
    [{"budget": 40}, {"is_search": True}, {"options": RecallOptions(roles=("assistant",))}],
)
async def test_it_does_not_come_without_room_nor_for_who_searches(
    remembering: Memory, fields: dict[str, object]
) -> None:
    await packed(remembering)
    found = await remembering.recall(ASKED, **fields)
    assert not set(CHANGES) & {one.text for one in found.passages}


async def test_what_another_session_says_does_not_follow(remembering: Memory) -> None:
    await packed(remembering, TURNS[:3])
    await remembering.commit("b", said("y", "no boots, mine are broken", "Done.", user="kai"))
    assert not set(CHANGES) & set(await texts(remembering))


async def test_each_round_of_a_turn_gets_the_same(remembering: Memory) -> None:
    await packed(remembering)
    first = await remembering.recall(ASKED)
    refs = tuple([one.recalled for one in first.passages])
    assert await remembering.recall(ASKED, replayed=refs) == first
