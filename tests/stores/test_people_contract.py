"""Whose items a tenant has, on every back end."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.memory.items import ItemOwner
from proxy.stores.open import Backend
from proxy.stores.sqlite import items as sqlite_items
from tests.support.clock import Clock
from tests.support.store.shelves import gone, put

ODD = 'a:b/{c}%*"'
"""An id as people have them."""


async def test_everybody_who_has_items_is_found_once_and_in_order(
    store: Backend, tenant: str
) -> None:
    for user in ("kai", ODD, "eve"):
        for key in ("one", "two"):
            await store.change_items(ItemOwner(tenant, user), [put(("users", user, "notes"), key)])
    await store.change_items(ItemOwner(tenant), [put(("shared",), "k")])
    await store.change_items(ItemOwner(f"{tenant}x", "mallory"), [put(("users", "mallory"), "k")])
    assert await store.people(tenant) == [ODD, "eve", "kai"]
    assert await store.people(f"{tenant}y") == []


async def test_who_has_no_items_any_more_is_not_found(store: Backend, tenant: str) -> None:
    place = ("users", "kai", "notes")
    await store.change_items(ItemOwner(tenant, "kai"), [put(place, "k")])
    await store.change_items(ItemOwner(tenant, "kai"), [gone(place, "k")])
    assert await store.people(tenant) == []


async def test_more_people_than_one_read_looks_for(
    tmp_path: Path, store: Backend, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_items, "PEOPLE_AT_ONCE", 2)
    names = [f"u{number}" for number in range(5)]
    for user in names:
        await store.change_items(ItemOwner(tenant, user), [put(("users", user), "k")])
    assert await store.people(tenant) == names


async def test_somebody_whose_items_have_expired_has_none_if_they_are_found_at_all(
    store: Backend, tenant: str, clock: Clock
) -> None:
    shelf = ItemOwner(tenant, "kai")
    await store.change_items(shelf, [put(("users", "kai"), "k", expires_at=clock() + 5)])
    clock.now += 10
    assert await store.people(tenant) in ([], ["kai"])
    assert (await store.items(shelf, (), None, 10)).items == ()
