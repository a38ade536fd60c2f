"""Who asks, and whose memory there is."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx
import pytest

import proxy
from proxy.memory.model import SessionKey
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, Site, error_of, open_site, seed, talk
from tests.support.store.commits import chat

WHOAMI = "/memory/v1/whoami"
TENANTS = "/memory/v1/tenants"
ALICE = digest_of(b"alice")
PROFILES = {"brief": {"max_tokens": 100}, "long": {"max_tokens": 9000}}


def settings_of(mode: str) -> Settings:
    keys = [hashlib.sha256(b"web-key").hexdigest()]
    clients = [{"name": "web", "key_sha256": keys, "profiles": ["long"]}]
    return Settings.model_validate(
        {
            "server": {"admin_key": ADMIN_KEY},
            "store": {"timeout": 5},
            "tenancy": {"mode": mode},
            "upstream": {"api_key": "sk-up"} if mode == "clients" else {},
            "profiles": PROFILES,
            "clients": clients if mode == "clients" else [],
        }
    )


@pytest.fixture
def settings() -> Settings:
    return settings_of("key")


async def whoami(site: Site, key: str | None = None, query: str = "") -> httpx.Response:
    async with site.client(key) as client:
        return await client.get(f"{WHOAMI}{query}")


async def test_a_key_is_told_its_tenant_and_its_profiles(site: Site) -> None:
    assert (await whoami(site, "alice")).json() == {
        "object": "caller",
        "tenant": ALICE,
        "admin": False,
        "client": None,
        "profiles": ["brief", "long"],
        "version": proxy.__version__,
    }


async def test_the_administrator_need_not_have_chosen_a_tenant(site: Site, store: Backend) -> None:
    await store.commit(SessionKey(ALICE, "s"), chat("e"))
    nobody = (await whoami(site, ADMIN_KEY)).json()
    assert (nobody["admin"], nobody["tenant"]) == (True, None)
    somebody = (await whoami(site, ADMIN_KEY, f"?tenant={ALICE}")).json()
    assert (somebody["admin"], somebody["tenant"]) == (True, ALICE)


async def test_without_a_key_one_is_anonymous_on_this_machine_alone(site: Site) -> None:
    assert (await whoami(site)).json()["tenant"] == "anonymous"
    async with site.client(peer="10.0.0.7") as client:
        response = await client.get(WHOAMI)
    assert (response.status_code, error_of(response)["code"]) == (401, "invalid_api_key")


async def test_a_client_is_told_its_name_and_its_profiles_alone(
    store: Backend, tmp_path: Path
) -> None:
    async with open_site(settings_of("clients"), store, tmp_path) as site:
        caller = (await whoami(site, "web-key")).json()
        assert (caller["tenant"], caller["client"]) == ("web", "web")
        assert caller["profiles"] == ["long"]
        unknown = await whoami(site, "alice")
        assert (unknown.status_code, error_of(unknown)["code"]) == (401, "invalid_api_key")


async def test_with_one_tenant_the_administrator_means_that(store: Backend, tmp_path: Path) -> None:
    async with open_site(settings_of("single"), store, tmp_path) as site:
        caller = (await whoami(site, ADMIN_KEY)).json()
        assert (caller["tenant"], caller["admin"]) == ("single", True)


async def test_all_tenants_are_listed_to_the_administrator(site: Site) -> None:
    for key in ("alice", "bob"):
        async with site.client(key) as client:
            await seed(client, "s", *talk("Hello."))
    async with site.client(ADMIN_KEY) as admin:
        answer = (await admin.get(TENANTS)).json()
    assert answer == {
        "object": "list",
        "data": [{"object": "tenant", "id": id} for id in sorted([ALICE, digest_of(b"bob")])],
        "has_more": False,
        "next": None,
    }


async def test_tenants_are_listed_part_by_part(site: Site) -> None:
    for key in ("alice", "bob"):
        async with site.client(key) as client:
            await seed(client, "s", *talk("Hello."))
    async with site.client(ADMIN_KEY) as admin:
        first = (await admin.get(f"{TENANTS}?limit=1")).json()
        second = (await admin.get(f"{TENANTS}?limit=1&after={first['next']}")).json()
    assert (first["has_more"], second["has_more"]) == (True, False)
    ids = [each["id"] for part in (first, second) for each in part["data"]]
    assert ids == sorted([ALICE, digest_of(b"bob")])


async def test_clients_that_have_said_nothing_yet_are_listed_too(
    store: Backend, tmp_path: Path
) -> None:
    async with (
        open_site(settings_of("clients"), store, tmp_path) as site,
        site.client(ADMIN_KEY) as admin,
    ):
        assert (await admin.get(TENANTS)).json()["data"] == [{"object": "tenant", "id": "web"}]


@pytest.mark.parametrize("key", [None, "alice"])
async def test_nobody_else_may_see_who_there_is(site: Site, key: str | None) -> None:
    async with site.client(key) as client:
        response = await client.get(TENANTS)
    assert (response.status_code, error_of(response)["code"]) == (401, "invalid_api_key")
