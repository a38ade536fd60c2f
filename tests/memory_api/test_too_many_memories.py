"""How many facts of one person may be added and imported over the memory API."""

from __future__ import annotations

import time
from typing import Any

import httpx
import msgspec
import pytest

from proxy.learning.facts.fact import MAX_GIVEN, MAX_IMPORTED, Fact, Facts, Origin
from proxy.learning.facts.store import FactStore
from proxy.memory.items import ItemOwner
from proxy.tenancy import digest_of
from tests.support.learning.given import REFUSED, filled
from tests.support.memory_api import Site, error_of
from tests.support.talk.foreign import dumped

API = "/memory/v1"
USER = f"{API}/users/kai/memories"
KAI = ItemOwner(digest_of(b"alice"), "kai")


def facts_of(site: Site) -> FactStore:
    return FactStore(site.store, len, time.time)


async def held(site: Site) -> int:
    return len((await facts_of(site).load(KAI)).facts)


async def test_one_too_many_is_refused_until_another_is_deleted(
    site: Site, client: httpx.AsyncClient
) -> None:
    await facts_of(site).change(KAI, filled)
    for key in ({}, {"idempotency-key": "one"}):
        response = await client.post(USER, json={"text": "Has a dog."}, headers=key)
        assert response.status_code == 422
        error = error_of(response)
        assert (error["code"], error["message"]) == ("too_many_memories", REFUSED)
    changed = await client.patch(f"{USER}/fact_00000", json={"text": "Has a boat."})
    assert changed.json()["text"] == "Has a boat."
    assert (await client.delete(f"{USER}/fact_00001")).status_code == 200
    assert await held(site) == MAX_GIVEN - 1
    headers = {"idempotency-key": "one"}
    response = await client.post(USER, json={"text": "Has a dog."}, headers=headers)
    assert response.status_code == 201


def exported(*facts: Fact) -> bytes:
    """An export with facts of kai."""
    place, times = {"namespace": ["users", "kai", "facts"]}, {"created_at": 1.0, "updated_at": 1.0}
    header = {"format": "memory-proxy", "version": 1, "scope": "tenant", "exported_at": 1.0}
    items = [
        {**place, "key": fact.id, "value": msgspec.to_builtins(fact), "version": 1, **times}
        for fact in facts
    ]
    lines: list[dict[str, Any]] = [
        {"kind": "header", **header},
        {"kind": "shelf", "user": "kai"},
        *({"kind": "item", "item": item} for item in items),
        {"kind": "shelf_end", "items": len(items)},
        {"kind": "end", "sessions": 0, "shelves": 1, "items": len(items)},
    ]
    return b"\n".join(map(dumped, lines))


def some(most: int, origin: Origin = "added") -> list[Fact]:
    return [Fact(id=f"fact_x{n}", text=f"Has {n}.", origin=origin) for n in range(most)]


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_an_import_that_brings_too_many_brings_none_of_them(
    site: Site, client: httpx.AsyncClient, query: str
) -> None:
    await facts_of(site).change(KAI, lambda facts: filled(facts, MAX_GIVEN - 10))
    response = await client.post(f"{API}/import{query}", content=exported(*some(11)))
    error = error_of(response)
    assert (response.status_code, error["code"]) == (400, "invalid_import")
    assert "with those that are there, over 2,000 facts of one person" in error["message"]
    assert await held(site) == MAX_GIVEN - 10


async def test_an_import_of_what_is_there_is_no_addition(
    site: Site, client: httpx.AsyncClient
) -> None:
    content = exported(*some(10))

    def older(facts: Facts) -> None:
        facts.update({fact.id: fact for fact in some(10)})
        filled(facts, MAX_GIVEN + 10)

    await facts_of(site).change(KAI, older)
    answer = (await client.post(f"{API}/import", content=content)).json()
    assert (answer["memories"], answer["skipped"]["memories"]) == (0, 10)


async def test_learned_facts_that_are_imported_have_a_bound_of_their_own(
    site: Site, client: httpx.AsyncClient
) -> None:
    await facts_of(site).change(KAI, filled)
    learned = exported(*some(MAX_IMPORTED - MAX_GIVEN + 1, "learned"))
    response = await client.post(f"{API}/import", content=learned)
    assert "over 10,000 facts of one person" in error_of(response)["message"]
    answer = await client.post(f"{API}/import", content=exported(*some(10, "learned")))
    assert answer.json()["memories"] == 10


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_other_programs_memories_that_become_facts_have_the_same_bound(
    client: httpx.AsyncClient, query: str
) -> None:
    many = [{"id": str(n), "memory": f"m{n}", "user_id": "kai"} for n in range(MAX_GIVEN + 1)]
    response = await client.post(f"{API}/import{query}", content=dumped(many))
    assert response.status_code == 400
    assert "over 2,000 facts of one person" in error_of(response)["message"]
