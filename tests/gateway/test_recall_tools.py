"""Recall in a tool loop: all rounds of one turn get the same, the next turn gets its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.recalling import Json, Person, blocks_in, index, marker, somebody, user_said
from tests.support.upstream.answers import chat_completion, json_answer, tool_call

pytestmark = pytest.mark.asyncio(loop_scope="session")

EXCUSE = "I have a reservation under that name, and we should look at it together with care. "
LONG = [EXCUSE * 12, EXCUSE.replace("reservation", "seat").replace("look", "peer") * 12]


def calling(id: str) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": [tool_call("find", "{}", id)]}


def result(id: str, text: str = "42") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": text}


class Loop:
    """One turn of a person who resends everything, or only what is new."""

    def __init__(self, person: Person, talk: Talk, question: str, *, resends: bool) -> None:
        self.person, self.talk, self.resends = person, talk, resends
        self.said: list[Json] = [user_said(question)]
        self.new = list(self.said)

    async def round(self, id: str) -> list[Json]:
        """What the upstream sees; it answers with a call, which is answered next."""
        rig = self.talk.rig
        call = json_answer(chat_completion(None, tool_calls=[tool_call("find", "{}", id)]))
        sent = self.said if self.resends else self.new
        response = await self.talk.ask(sent, call)
        assert response.status_code == 200 and not rig.up.refused
        self.new = [result(id)]
        self.said += [calling(id), *self.new]
        await index(rig.store.real, self.talk.key)  # type: ignore[arg-type]
        return rig.up.requests[-1].messages


@pytest.mark.parametrize("resends", [True, False], ids=["resends-all", "sends-results-only"])
@pytest.mark.parametrize("long", [False, True], ids=["short", "cut"])
async def test_all_rounds_of_a_turn_see_the_same_prompt_so_far(
    every: Rig, resends: bool, long: bool
) -> None:
    person, word = somebody(every), marker()
    more = LONG if long else ["", ""]
    await person.tells(f"My boat is called {word}. {more[0]}", f"{more[1]} The red {word}!")
    await person.tells("Always answer in French. Never use emoji.")
    loop = Loop(person, person.talk(), f"What about the reservation of {word}?", resends=resends)
    before = await loop.round("c1")
    assert word in blocks_in(before)["recall"] and "French" in blocks_in(before)["wishes"]
    for id in ("c2", "c3"):
        await person.tells(f"And {id}: {word} has a reservation, and a seat, and a boat.")
        after = await loop.round(id)
        assert after[: len(before)] == before
        before = after


@pytest.mark.parametrize("resends", [True, False], ids=["resends-all", "sends-results-only"])
async def test_a_turn_that_began_without_recall_goes_on_without(one: Rig, resends: bool) -> None:
    person, word = somebody(one), marker()
    loop = Loop(person, person.talk(), f"What about {word}?", resends=resends)
    assert not blocks_in(await loop.round("c1"))
    await person.tells(f"My boat is called {word}.")
    assert not blocks_in(await loop.round("c2"))


@pytest.mark.parametrize("resends", [True, False], ids=["resends-all", "sends-results-only"])
async def test_the_next_turn_is_recalled_for_anew(every: Rig, resends: bool) -> None:
    person, boat, cat = somebody(every), marker(), marker()
    await person.tells(f"My boat is called {boat}.")
    await person.tells(f"My cat is called {cat}.")
    loop = Loop(person, person.talk(), f"What about {boat}?", resends=resends)
    assert boat in blocks_in(await loop.round("c1"))["recall"]
    answered = {"role": "assistant", "content": "Noted."}
    await person.says(loop.talk, loop.said if resends else loop.new)
    sent = [*loop.said, answered] if resends else []
    found = await person.asks([*sent, user_said(f"What about {cat}?")], loop.talk)
    assert f"called {cat}" in found["recall"] and f"called {boat}" not in found["recall"]


async def test_what_is_deleted_within_a_turn_is_not_seen_by_its_next_round(every: Rig) -> None:
    person, word = somebody(every), marker()
    talk = await person.tells(f"My boat is called {word}.")
    loop = Loop(person, person.talk(), f"What about {word}?", resends=False)
    assert f"called {word}" in blocks_in(await loop.round("c1"))["recall"]
    assert await every.store.real.delete(talk.key)
    assert f"called {word}" not in str(await loop.round("c2"))


async def test_a_wish_that_was_removed_does_not_come_back_in_a_later_round(one: Rig) -> None:
    person = somebody(one)
    talk = await person.tells("Always answer in French. Never use emoji.")
    path = f"/memory/v1/users/{person.user}/memories"
    wishes = (await one.client.get(path, headers=talk.all_headers)).json()["data"]
    (french,) = [wish["id"] for wish in wishes if "French" in wish["text"]]
    removed = await one.client.delete(f"{path}/{french}", headers=talk.all_headers)
    assert removed.status_code == 200
    loop = Loop(person, person.talk(), "What is the weather in Rome?", resends=True)
    for id in ("c1", "c2"):
        found = blocks_in(await loop.round(id))
        assert "emoji" in found["wishes"] and "French" not in found["wishes"]


async def test_rounds_say_in_their_records_what_they_were_given(one: Rig) -> None:
    person, word = somebody(one), marker()
    await person.tells(f"My boat is called {word}.")
    loop = Loop(person, person.talk(), f"What about {word}?", resends=False)
    recalled: list[Any] = []
    for id in ("c1", "c2"):
        await loop.round(id)
        last = one.store.commits[-1].exchange
        recalled.append([each.message for each in last.memory.all_recalled()])
    assert recalled[0] == recalled[1] and len(recalled[0]) > 0
