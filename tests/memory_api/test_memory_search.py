"""The search of what is remembered of a person: best first, whatever it is that was found."""

from __future__ import annotations

from typing import Any

import httpx

from proxy.memory.model import SessionKey
from tests.memory_api.test_memories import KAI, USER, fact, learned, search
from tests.support.memory_api import Site, error_of, seed, talk
from tests.support.talk.recalling import index

SAID = (
    "Please always answer in short sentences.",
    "I will.",
    "I prefer metric units.",
    "Noted.",
    "Peanuts grow under the ground, do they not?",
    "They do: the peanuts ripen in the soil, and each plant has about forty of them.",
    "I fly to Lisbon in May.",
    "How nice.",
)
ALLERGY = fact("allergy", "The user is allergic to peanuts.")
HOME = fact("home", "The user lives in Porto.")
OLD = fact("old", "The user lives in Lisbon.", state="superseded")
DOUBTED = fact("doubted", "The user lives in Paris.", state="quarantined")


async def known(site: Site, client: httpx.AsyncClient) -> None:
    """Wishes, passages and facts."""
    await learned(site, ALLERGY, HOME, OLD, DOUBTED)
    await seed(client, "s", *talk(*SAID), user="kai")
    await index(site.store, SessionKey(KAI.tenant, "s"))


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in found]


async def test_an_exact_fact_is_first_and_wishes_without_the_words_are_behind_it(
    site: Site, client: httpx.AsyncClient
) -> None:
    await known(site, client)
    for query, first in [("peanuts", ALLERGY), ("Where does the user live?", HOME)]:
        found = await search(client, query)
        assert found[0]["id"] == first.id
        assert len(found) > 1
    found = await search(client, "peanuts")
    with_word = ["peanut" in each["text"].lower() for each in found]
    assert with_word == sorted(with_word, reverse=True), "what has the word comes first"


async def test_scores_of_all_kinds_are_one_measure_and_descend(
    site: Site, client: httpx.AsyncClient
) -> None:
    await known(site, client)
    found = await search(client, "peanuts in short sentences", limit=50)
    scores = [each["score"] for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1.000001 for score in scores)
    for each in found:
        assert abs(sum(each["parts"].values()) - each["score"]) < 1e-9


async def test_what_was_said_is_found_by_its_own_words(
    site: Site, client: httpx.AsyncClient
) -> None:
    await known(site, client)
    assert (await search(client, "I fly to Lisbon in May."))[0]["text"] == "I fly to Lisbon in May."


async def test_a_wish_that_is_asked_for_is_first(site: Site, client: httpx.AsyncClient) -> None:
    await known(site, client)
    found = await search(client, "metric units")
    assert found[0]["kind"] in ("preference", "instruction", "passage")
    assert "metric" in found[0]["text"]


async def test_facts_of_other_states_are_found_if_they_are_asked_for(
    site: Site, client: httpx.AsyncClient
) -> None:
    await known(site, client)
    query = "Where does the user live?"
    assert ids(await search(client, query, kinds=["fact"]))[0] == HOME.id
    assert ids(await search(client, query, states=["superseded"])) == [OLD.id]
    every = await search(client, query, kinds=["fact"], states=["current", "quarantined"])
    assert set(ids(every)[:2]) == {HOME.id, DOUBTED.id}
    refused = await client.post(f"{USER}/search", json={"query": "x", "states": ["gone"]})
    assert (refused.status_code, error_of(refused)["param"]) == (400, "states")


async def test_a_fact_without_any_of_the_words_is_not_found(
    site: Site, client: httpx.AsyncClient
) -> None:
    await known(site, client)
    assert HOME.id not in ids(await search(client, "peanuts"))
    assert await search(client, "zeppelin", kinds=["fact"]) == []


async def test_a_fact_is_found_by_its_own_words_whatever_these_are(
    site: Site, client: httpx.AsyncClient
) -> None:
    await known(site, client)
    await learned(site, ALLERGY, HOME, fact("pronouns", "Is she/her."), fact("thumb", "👍"))
    assert ids(await search(client, " is she/her.\n")) == ["fact_pronouns"]
    assert ids(await search(client, "\uff29\uff33 she/her.")) == ["fact_pronouns"]
    (found,) = await search(client, "👍")
    assert (found["id"], found["score"], found["parts"]) == ("fact_thumb", 1.0, {"lexical": 1.0})


async def test_to_release_a_fact_is_not_to_edit_it(site: Site, client: httpx.AsyncClient) -> None:
    await known(site, client)
    released = await client.patch(f"{USER}/{DOUBTED.id}", json={"state": "current"})
    assert (released.json()["state"], released.json()["edited"]) == ("current", False)
    corrected = await client.patch(f"{USER}/{DOUBTED.id}", json={"text": "The user loves Paris."})
    assert corrected.json()["edited"] is True


async def test_what_has_nothing_to_do_with_the_question_is_not_found(
    site: Site, client: httpx.AsyncClient
) -> None:
    await known(site, client)
    assert await search(client, "zeppelin") == []
