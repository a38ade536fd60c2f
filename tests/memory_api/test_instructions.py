"""An application's instructions over the memory API."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from proxy.learning.instructions.document import FeedbackSource, Proposal
from proxy.learning.instructions.store import InstructionStore
from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey
from proxy.settings import Settings
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of
from tests.support.store.commits import chat

SHOP = "/memory/v1/instructions/shop"
TENANT = digest_of(b"alice")
LATER = 9e9


@pytest.fixture
def settings() -> Settings:
    return Settings.model_validate(
        {
            "server": {"admin_key": ADMIN_KEY},
            "store": {"timeout": 5},
            "profiles": {"shop": {"instructions": {"enabled": True, "after_feedback": 2}}},
        }
    )


async def put(client: httpx.AsyncClient, text: str) -> dict[str, Any]:
    response = await client.put(SHOP, json={"text": text})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def propose(site: Site, text: str, base: int = 0, id: str = "proposal_1") -> None:
    proposal = Proposal(
        id=id,
        text=text,
        why="Shorter.",
        base=base,
        feedback=3,
        doubts=("it is odd",),
        sources=(FeedbackSource(user="kai", session="s", message="ex_1.1", at=4.0),),
        created_at=5.0,
    )
    owner = ItemOwner(TENANT)
    changes = await InstructionStore(site.store, len, time.time).propose_changes(
        owner, "shop", proposal
    )
    assert await site.store.change_items(owner, changes)


async def test_without_instructions_the_text_is_empty(client: httpx.AsyncClient) -> None:
    assert (await client.get(SHOP)).json() == {
        "object": "instructions",
        "application": "shop",
        "text": "",
        "version": 0,
        "updated_at": None,
    }


async def test_what_is_put_is_in_force_and_every_version_stays(client: httpx.AsyncClient) -> None:
    await put(client, "Be kind.")
    written = await put(client, " Be brief. ")
    assert (written["text"], written["version"]) == ("Be brief.", 2)
    assert (await client.get(SHOP)).json() == written
    listed = (await client.get(f"{SHOP}/versions")).json()
    assert listed["object"] == "list" and not listed["has_more"]
    assert [(v["version"], v["text"], v["origin"]) for v in listed["data"]] == [
        (1, "Be kind.", "edited"),
        (2, "Be brief.", "edited"),
    ]
    page = (await client.get(f"{SHOP}/versions", params={"limit": 1})).json()
    rest = (await client.get(f"{SHOP}/versions", params={"after": page["next"]})).json()
    assert [v["version"] for v in rest["data"]] == [2]


@pytest.mark.parametrize(
    "body", [b"nonsense", b"{}", b'{"text": 7}', b'{"text": "' + b"x" * 20_001 + b'"}']
)
async def test_a_wrong_text_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    response = await client.put(SHOP, content=body)
    assert (response.status_code, error_of(response)["code"]) == (400, "invalid_value")
    assert (await client.get(SHOP)).json()["version"] == 0


async def test_instructions_are_rolled_back(client: httpx.AsyncClient) -> None:
    await put(client, "Be kind.")
    await put(client, "Be brief.")
    response = await client.post(f"{SHOP}/rollback", json={"version": 1})
    assert (response.json()["text"], response.json()["version"]) == ("Be kind.", 3)
    response = await client.post(f"{SHOP}/rollback", json={"version": 9})
    assert (response.status_code, error_of(response)["code"]) == (404, "version_not_found")
    assert (await client.post(f"{SHOP}/rollback", json={})).status_code == 400


async def test_a_proposal_is_listed_approved_and_then_in_force(
    site: Site, client: httpx.AsyncClient
) -> None:
    await propose(site, "Be brief.")
    (proposal,) = (await client.get(f"{SHOP}/proposals")).json()["data"]
    assert proposal == {
        "object": "instructions.proposal",
        "id": "proposal_1",
        "application": "shop",
        "text": "Be brief.",
        "why": "Shorter.",
        "state": "pending",
        "doubts": ["it is odd"],
        "base_version": 0,
        "feedback": 3,
        "sources": [
            {"session_id": "s", "message_id": "ex_1.1", "exchange_id": "ex_1", "created_at": 4.0}
        ],
        "created_at": 5.0,
        "decided_at": None,
    }
    path = f"{SHOP}/proposals/proposal_1"
    approved = await client.post(f"{path}/approve")
    assert (approved.status_code, approved.json()["state"]) == (200, "approved")
    assert (await client.get(SHOP)).json()["text"] == "Be brief."
    (version,) = (await client.get(f"{SHOP}/versions")).json()["data"]
    assert (version["origin"], version["proposal_id"]) == ("learned", "proposal_1")
    again = await client.post(f"{path}/reject")
    assert (again.status_code, error_of(again)["code"]) == (409, "proposal_outdated")


async def test_a_rejected_proposal_changes_nothing(site: Site, client: httpx.AsyncClient) -> None:
    await propose(site, "Be brief.")
    rejected = await client.post(f"{SHOP}/proposals/proposal_1/reject")
    assert rejected.json()["state"] == "rejected" and rejected.json()["decided_at"] > 0
    assert (await client.get(SHOP)).json()["version"] == 0


async def test_a_proposal_for_an_older_text_is_outdated(
    site: Site, client: httpx.AsyncClient
) -> None:
    await propose(site, "Be brief.")
    await put(client, "Be kind.")
    response = await client.post(f"{SHOP}/proposals/proposal_1/approve")
    assert (response.status_code, error_of(response)["code"]) == (409, "proposal_outdated")
    assert (await client.get(SHOP)).json()["text"] == "Be kind."


@pytest.mark.parametrize("id", ["x", "%00", "%ff"])
async def test_a_proposal_that_is_not_there_is_not_found(
    client: httpx.AsyncClient, id: str
) -> None:
    for what in ("approve", "reject"):
        response = await client.post(f"{SHOP}/proposals/{id}/{what}")
        assert (response.status_code, error_of(response)["code"]) == (404, "proposal_not_found")


async def test_a_reflection_is_asked_for_where_there_is_feedback(
    site: Site, client: httpx.AsyncClient
) -> None:
    asked = await client.post(f"{SHOP}/reflect")
    assert (asked.status_code, asked.json()) == (
        202,
        {"object": "instructions.reflection", "application": "shop", "feedback": False},
    )
    key = SessionKey(TENANT, "s")
    assert await site.store.commit(key, chat("ex_1", profile="shop", user="kai")) == "recorded"
    feedback = f"{SESSIONS}/s/messages/ex_1.1/feedback"
    assert (await client.post(feedback, json={"score": -1})).status_code == 200
    assert not await site.store.waiting(LATER, 10), "one piece is not enough"
    asked = await client.post(f"{SHOP}/reflect")
    assert (asked.status_code, asked.json()["feedback"]) == (202, True)
    (work,) = await site.store.waiting(LATER, 10)
    assert (work.session, work.kind, work.profile) == ("s", "learning", "shop")


async def test_an_application_that_nobody_learns_for_is_not_found(
    client: httpx.AsyncClient,
) -> None:
    response = await client.post(SHOP.replace("shop", "default") + "/reflect")
    assert (response.status_code, error_of(response)["code"]) == (404, "application_not_found")


@pytest.mark.parametrize("name", ["a%20b", "%C3%A9", "x" * 65, "%2Ffeedback"])
async def test_an_application_that_cannot_be_one_is_refused(
    client: httpx.AsyncClient, name: str
) -> None:
    response = await client.get(f"/memory/v1/instructions/{name}")
    assert (response.status_code, error_of(response)["param"]) == (400, "application")


async def test_tenants_have_instructions_of_their_own(
    site: Site, client: httpx.AsyncClient
) -> None:
    await put(client, "Be kind.")
    async with site.client("bob") as other:
        assert (await other.get(SHOP)).json()["text"] == ""
    async with site.client(ADMIN_KEY) as admin:
        found = await admin.get(SHOP, params={"tenant": TENANT})
        assert found.json()["text"] == "Be kind."
    async with site.client(peer="192.0.2.1") as stranger:
        assert (await stranger.get(SHOP)).status_code == 401
        assert (await stranger.put(SHOP, json={"text": "x"})).status_code == 401
