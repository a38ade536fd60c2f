"""Who may see whose memory."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from proxy.memory.items import Change, ItemOwner
from proxy.memory.model import SessionKey
from proxy.memory.usage import UsageKey, UsageTotals
from proxy.memory_api.operations import OPERATIONS
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of, open_site, seed, talk
from tests.support.store.commits import chat

ALICE = digest_of(b"alice")

EVERY_ROUTE = [
    ("GET", SESSIONS),
    ("GET", f"{SESSIONS}/s"),
    ("DELETE", f"{SESSIONS}/s"),
    ("GET", f"{SESSIONS}/s/messages"),
    ("POST", f"{SESSIONS}/s/messages"),
    ("POST", f"{SESSIONS}/s/context"),
    ("GET", f"{SESSIONS}/s/exchanges/e"),
]
ROUTES = pytest.mark.parametrize(("method", "path"), EVERY_ROUTE)


async def ask(client: httpx.AsyncClient, method: str, path: str) -> httpx.Response:
    body = {"messages": talk("hello")} if method == "POST" else None
    return await client.request(method, path, json=body)


@pytest.fixture
async def stored(store: Backend) -> Backend:
    """One session of each of these tenants, all under the same name."""
    for tenant in (ALICE, "anonymous", "single", "shop"):
        await store.commit(SessionKey(tenant, "s"), chat("e"))
    return store


@ROUTES
async def test_a_tenant_sees_its_own(site: Site, stored: Backend, method: str, path: str) -> None:
    async with site.client("alice", peer="203.0.113.7", host="memory.example") as client:
        response = await ask(client, method, path)
    assert response.status_code == 200


@ROUTES
@pytest.mark.parametrize("key", ["bob", ""], ids=["another key", "no key"])
async def test_a_tenant_never_sees_anothers(
    site: Site, store: Backend, method: str, path: str, key: str
) -> None:
    await store.commit(SessionKey(ALICE, "s"), chat("e", user="ann"))

    async with site.client(key) as client:
        response = await ask(client, method, path)

    if (method, path) == ("GET", SESSIONS):
        assert response.json()["data"] == []
    elif path.endswith("/messages") and method == "POST":
        assert [item["message"] for item in response.json()["data"]] == talk("hello")
    else:
        assert response.status_code == 404
        assert error_of(response)["code"] == "session_not_found"
    theirs = await store.session(SessionKey(ALICE, "s"))
    assert theirs is not None
    assert theirs.messages == 2


OF_A_TENANT = [
    (operation.method, re.sub(r"\{\w+\}", "s", operation.path), operation.creates_tenant)
    for operation in OPERATIONS
    if operation.of_a_tenant
]


@pytest.mark.parametrize("key", ["bob", "", f"{ADMIN_KEY}x"], ids=["bob", "no key", "mistyped"])
async def test_who_is_not_the_administrator_is_refused_another_tenant(
    site: Site, store: Backend, key: str
) -> None:
    await store.commit(SessionKey(ALICE, "s"), chat("e", user="s"))
    own = digest_of(key.encode())
    async with site.client(key) as client:
        for method, path, _ in OF_A_TENANT:
            refused = await client.request(method, f"{path}?tenant={ALICE}")
            assert refused.status_code == 403, path
            assert error_of(refused)["code"] == "admin_key_required"
            assert "server.admin_key" in error_of(refused)["message"]
            mixed = await client.request(method, f"{path}?tenant={ALICE}&tenant={own}")
            assert mixed.status_code == 403, path
    assert await store.tenants() == [ALICE]


async def test_without_an_admin_key_nobody_is_the_administrator(
    store: Backend, tmp_path: Path
) -> None:
    await store.commit(SessionKey(ALICE, "s"), chat("e"))
    async with open_site(Settings(), store, tmp_path) as site, site.client("adm") as client:
        response = await client.delete(f"{SESSIONS}/s?tenant={ALICE}")
        assert (response.status_code, error_of(response)["code"]) == (403, "admin_key_required")
    assert await store.session(SessionKey(ALICE, "s")) is not None


@pytest.mark.parametrize("named", [f"tenant={ALICE}", "tenant=", f"tenant={ALICE}&tenant={ALICE}"])
async def test_everybody_may_name_their_own_tenant(site: Site, stored: Backend, named: str) -> None:
    async with site.client("alice", peer="203.0.113.7") as client:
        response = await client.get(f"{SESSIONS}?{named}")
    assert [session["id"] for session in response.json()["data"]] == ["s"]


async def test_a_tenant_of_nobody_is_not_found_but_where_something_may_be_its_first(
    site: Site, stored: Backend
) -> None:
    async with site.client(ADMIN_KEY, peer="203.0.113.7", host="memory.example") as client:
        for method, path, founds in OF_A_TENANT:
            response = await client.request(method, f"{path}?tenant=shpo")
            code = None if response.is_success else error_of(response)["code"]
            assert (code == "tenant_not_found") is not founds, path
            if not founds:
                assert response.status_code == 404
                assert "'shpo'" in error_of(response)["message"]


async def test_what_the_administrator_imports_founds_a_tenant(site: Site, stored: Backend) -> None:
    async with site.client("alice") as client:
        exported = await client.get("/memory/v1/export")
    async with site.client(ADMIN_KEY) as client:
        missing = await client.get(f"{SESSIONS}?tenant=new")
        assert error_of(missing)["code"] == "tenant_not_found"
        put = await client.post("/memory/v1/import?tenant=new", content=exported.content)
        assert put.json()["sessions"] == 1
        listed = await client.get(f"{SESSIONS}?tenant=new")
    assert [session["id"] for session in listed.json()["data"]] == ["s"]


async def test_who_has_been_erased_is_no_mistyped_name(site: Site, stored: Backend) -> None:
    async with site.client(ADMIN_KEY) as client:
        receipt = await client.delete(f"{SESSIONS}/s?tenant=shop")
        assert receipt.json()["counts"]["sessions"] == 1
        again = await client.delete(f"{SESSIONS}/s?tenant=shop")
        assert error_of(again)["code"] == "session_not_found"
        assert (await client.get(f"{SESSIONS}?tenant=shop")).json()["data"] == []


@pytest.mark.parametrize("kept", ["an item", "an item of a person", "costs", "a spooled exchange"])
async def test_a_tenant_of_whom_anything_is_kept_exists(
    site: Site, store: Backend, kept: str
) -> None:
    key = SessionKey("shop", "s")
    if kept == "costs":
        today = datetime.now(UTC).date().isoformat()
        await store.add_usage("shop", UsageKey(today, "facts"), UsageTotals(calls=1))
    elif kept == "a spooled exchange":
        site.spool.put(key, "e", "commit", b"{}")
    else:
        owner = ItemOwner("shop", "ann" if "person" in kept else "")
        await store.change_items(owner, [Change(namespace=("n",), key="k", value=b"{}")])
    async with site.client(ADMIN_KEY) as client:
        assert (await client.get(f"{SESSIONS}?tenant=shop")).status_code == 200
        assert (await client.get(f"{SESSIONS}?tenant=shpo")).status_code == 404


async def test_the_administrator_names_one_tenant_at_a_time(site: Site, stored: Backend) -> None:
    async with site.client(ADMIN_KEY) as client:
        response = await client.delete(f"{SESSIONS}/s?tenant=shop&tenant={ALICE}")
        assert (response.status_code, error_of(response)["param"]) == (400, "tenant")
    assert await stored.session(SessionKey("shop", "s")) is not None


@ROUTES
async def test_the_administrator_sees_the_tenant_that_is_named(
    site: Site, stored: Backend, method: str, path: str
) -> None:
    async with site.client(ADMIN_KEY, peer="203.0.113.7", host="memory.example") as client:
        response = await ask(client, method, f"{path}?tenant={ALICE}")
        assert response.status_code == 200
    if (method, path) == ("GET", SESSIONS):
        assert [x["id"] for x in response.json()["data"]] == ["s"]


@ROUTES
async def test_the_administrator_must_say_whose(
    site: Site, stored: Backend, method: str, path: str
) -> None:
    async with site.client(ADMIN_KEY) as client:
        response = await ask(client, method, path)
    assert response.status_code == 400
    assert error_of(response)["param"] == "tenant"


@ROUTES
async def test_the_anonymous_need_the_administrators_key_from_elsewhere(
    site: Site, stored: Backend, method: str, path: str
) -> None:
    async with site.client(peer="203.0.113.7", host="memory.example") as client:
        refused = await ask(client, method, path)
        assert refused.status_code == 401
        assert error_of(refused)["code"] == "invalid_api_key"
        client.headers["authorization"] = f"Bearer {ADMIN_KEY}"
        response = await ask(client, method, f"{path}?tenant=anonymous")
    assert response.status_code == 200


@ROUTES
async def test_the_anonymous_see_their_own_on_this_machine(
    site: Site, stored: Backend, method: str, path: str
) -> None:
    async with site.client() as client:
        assert (await ask(client, method, path)).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "127.8.9.1", "[::1]"])
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "127.3.2.1", "::ffff:127.0.0.1"])
async def test_every_loopback_address_is_this_machine(site: Site, host: str, peer: str) -> None:
    async with site.client(peer=peer) as client:
        response = await client.get(SESSIONS, headers={"host": host})
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        pytest.param("192.168.1.5", {}, id="a neighbour"),
        pytest.param("::ffff:192.168.1.5", {}, id="a neighbour as IPv6 writes it"),
        pytest.param("unix", {}, id="no address"),
        pytest.param("127.0.0.1", {"host": "evil.example"}, id="a rebound name"),
        pytest.param("127.0.0.1", {"host": "localhost.evil.example"}, id="a name like ours"),
        pytest.param("127.0.0.1", {"host": "127.0.0.1.evil.example"}, id="a name like an address"),
        pytest.param("127.0.0.1", {"host": "evil@localhost"}, id="a user before it"),
        pytest.param("127.0.0.1", {"host": "0.0.0.0"}, id="any address"),
        pytest.param("127.0.0.1", {"host": ""}, id="no host"),
        pytest.param("127.0.0.1", {"host": "[::1"}, id="half an address"),
        pytest.param("127.0.0.1", {"sec-fetch-site": "cross-site"}, id="another site's page"),
        pytest.param("127.0.0.1", {"sec-fetch-site": "same-site"}, id="another port's page"),
        pytest.param("127.0.0.1", {"sec-fetch-site": "new-word"}, id="an unknown word"),
        pytest.param("127.0.0.1", {"x-forwarded-for": "203.0.113.7"}, id="passed on"),
        pytest.param("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, id="passed on, it claims"),
        pytest.param("127.0.0.1", {"forwarded": "for=203.0.113.7"}, id="passed on by the book"),
        pytest.param("127.0.0.1", {"x-real-ip": "203.0.113.7"}, id="passed on by nginx"),
        pytest.param("127.0.0.1", {"true-client-ip": "203.0.113.7"}, id="passed on by a CDN"),
        pytest.param("127.0.0.1", {"cf-connecting-ip": "127.0.0.1"}, id="passed on by a tunnel"),
        pytest.param("127.0.0.1", {"x-forwarded-port": "443"}, id="passed on, in another word"),
        pytest.param("127.0.0.1", {"x-amzn-trace-id": "Root=1-2"}, id="passed on by a balancer"),
        pytest.param("127.0.0.1", {"origin": "http://evil.example"}, id="an old browser's page"),
        pytest.param("127.0.0.1", {"origin": "null"}, id="a page without an origin"),
        pytest.param("127.0.0.1", {"origin": "http://localhost:3000"}, id="an old one's neighbour"),
    ],
)
async def test_everything_else_is_not(site: Site, peer: str, headers: dict[str, str]) -> None:
    async with site.client(peer=peer) as client:
        response = await client.get(SESSIONS, headers=headers)
    assert response.status_code == 401
    assert error_of(response)["code"] == "invalid_api_key"


@pytest.mark.parametrize("site_word", ["same-origin", "none"])
async def test_a_page_of_our_own_may_ask(site: Site, site_word: str) -> None:
    async with site.client() as client:
        response = await client.get(SESSIONS, headers={"sec-fetch-site": site_word})
    assert response.status_code == 200


async def test_two_hosts_are_no_loopback_host(site: Site) -> None:
    hosts = [("host", "localhost"), ("host", "evil.example")]
    async with site.client() as client:
        response = await client.get(SESSIONS, headers=hosts)
    assert response.status_code == 401


async def test_two_different_keys_are_refused(site: Site) -> None:
    async with site.client("alice") as client:
        response = await client.get(SESSIONS, headers={"api-key": ADMIN_KEY})
    assert response.status_code == 400
    assert error_of(response)["code"] == "invalid_header"


async def test_a_single_tenant_needs_no_name(store: Backend, tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"tenancy": {"mode": "single"}, "server": {"admin_key": ADMIN_KEY}, "store": {"timeout": 5}}
    )
    async with open_site(settings, store, tmp_path) as site:
        async with site.client("whatever") as client:
            await seed(client, "s", *talk("hello"))
        async with site.client("whatever", peer="203.0.113.7") as client:
            assert (await client.get(SESSIONS)).status_code == 401
        async with site.client(ADMIN_KEY, peer="203.0.113.7") as client:
            listed = (await client.get(SESSIONS)).json()["data"]
    assert [session["id"] for session in listed] == ["s"]


async def test_named_clients_need_a_key_that_is_known(store: Backend, tmp_path: Path) -> None:
    digest = hashlib.sha256(b"shop-key").hexdigest()
    settings = Settings.model_validate(
        {
            "tenancy": {"mode": "clients"},
            "clients": [{"name": "shop", "key_sha256": [digest], "profiles": ["short"]}],
            "profiles": {"short": {"max_tokens": 100}, "long": {"max_tokens": 9000}},
            "upstream": {"api_key": "sk-upstream"},
            "store": {"timeout": 5},
        }
    )
    await store.commit(SessionKey("shop", "s"), chat("e"))
    async with open_site(settings, store, tmp_path) as site:
        for key in ("", "guessed"):
            async with site.client(key) as client:
                assert (await client.get(SESSIONS)).status_code == 401
        async with site.client("shop-key", peer="203.0.113.7", host="x.example") as client:
            assert len((await client.get(SESSIONS)).json()["data"]) == 1
            body = {"messages": talk("hi"), "profile": "short"}
            assert (await client.post(f"{SESSIONS}/s/context", json=body)).status_code == 200
            body["profile"] = "long"
            refused = await client.post(f"{SESSIONS}/s/context", json=body)
    assert refused.status_code == 403
    assert error_of(refused)["code"] == "profile_not_allowed"


async def test_a_client_that_the_configuration_names_exists_without_memory(
    store: Backend, tmp_path: Path
) -> None:
    digest = hashlib.sha256(b"shop-key").hexdigest()
    settings = Settings.model_validate(
        {
            "tenancy": {"mode": "clients"},
            "clients": [{"name": "shop", "key_sha256": [digest]}],
            "server": {"admin_key": ADMIN_KEY},
            "upstream": {"api_key": "sk-upstream"},
            "store": {"timeout": 5},
        }
    )
    async with open_site(settings, store, tmp_path) as site, site.client(ADMIN_KEY) as client:
        assert (await client.get(f"{SESSIONS}?tenant=shop")).json()["data"] == []
        for name in ("shpo", "anonymous"):
            missing = await client.get(f"{SESSIONS}?tenant={name}")
            assert (missing.status_code, error_of(missing)["code"]) == (404, "tenant_not_found")
