"""A person's profile over the memory API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.settings import Settings
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, Site, error_of

PROFILE = "/memory/v1/users/kai/profile"
JSON_PATCH = {"content-type": "application/json-patch+json"}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "additionalProperties": False,
}


async def merge(client: httpx.AsyncClient, **members: Any) -> dict[str, Any]:
    response = await client.patch(PROFILE, json=members)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def patch(client: httpx.AsyncClient, *operations: dict[str, Any]) -> httpx.Response:
    return await client.patch(PROFILE, content=json.dumps(operations), headers=JSON_PATCH)


async def versions(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    response = await client.get(f"{PROFILE}/versions", params=query)
    assert response.status_code == 200
    found: list[dict[str, Any]] = response.json()["data"]
    return found


async def test_of_somebody_unknown_the_profile_is_empty(client: httpx.AsyncClient) -> None:
    assert (await client.get(PROFILE)).json() == {
        "object": "profile",
        "user_id": "kai",
        "document": {},
        "version": 0,
        "updated_at": None,
    }
    assert await versions(client) == []


async def test_a_merge_patch_changes_what_it_names(client: httpx.AsyncClient) -> None:
    await merge(client, name="Kai", home={"city": "Bonn", "zip": "53111"})
    changed = await merge(client, home={"zip": None}, age=34)
    assert changed["document"] == {"name": "Kai", "home": {"city": "Bonn"}, "age": 34}
    assert changed["version"] == 2 and changed["updated_at"] > 0
    assert (await client.get(PROFILE)).json() == changed


@pytest.mark.parametrize(
    "kind", ["application/merge-patch+json", "application/json; charset=utf-8"]
)
async def test_a_merge_patch_has_several_types(client: httpx.AsyncClient, kind: str) -> None:
    response = await client.patch(PROFILE, content=b'{"a": 1}', headers={"content-type": kind})
    assert response.json()["document"] == {"a": 1}


async def test_a_json_patch_changes_the_document(client: httpx.AsyncClient) -> None:
    await merge(client, name="Kai", likes=["tea"])
    response = await patch(
        client,
        {"op": "test", "path": "/name", "value": "Kai"},
        {"op": "add", "path": "/likes/-", "value": "rain"},
        {"op": "move", "from": "/name", "path": "/called"},
    )
    assert response.status_code == 200
    assert response.json()["document"] == {"likes": ["tea", "rain"], "called": "Kai"}


@pytest.mark.parametrize(
    ("body", "headers", "param"),
    [
        (b"nonsense", {}, None),
        (b"[]", {}, None),
        (b"{}", JSON_PATCH, None),
        (b"[" * 3000, JSON_PATCH, None),
        (b'{"a": ' * 3000, {}, None),
        (b'[{"op": "test", "path": "/name", "value": "Eve"}]', JSON_PATCH, "/name"),
        (b'[{"op": "remove", "path": "/x"}]', JSON_PATCH, "/x"),
        (b'[{"op": "add", "path": "/x/y", "value": 1}]', JSON_PATCH, "/x/y"),
        (b'[{"op": "replace", "path": "", "value": 1}]', JSON_PATCH, ""),
        (b'["op"]', JSON_PATCH, None),
        (rb'{"name": "\ud83d"}', {}, "/name"),
        (rb'{"\ud83d": 1}', {}, r"/\ud83d"),
        (rb'{"a": {"b": ["\ud83d"]}}', {}, "/a/b"),
        (rb'[{"op": "add", "path": "/a", "value": "\ud83d"}]', JSON_PATCH, "/a"),
        (rb'[{"op": "remove", "path": "/\ud83d"}]', JSON_PATCH, r"/\ud83d"),
        (rb'[{"op": "\ud83d", "path": "/a"}]', JSON_PATCH, "/a"),
        (rb'[{"op": "add", "path": "/a", "value": 1, "why": "\ud83d"}]', JSON_PATCH, "/a"),
        (json.dumps({"a": "x" * 9000}).encode(), {}, "/a"),
        (json.dumps({"a": "x" * 90_000}).encode(), {}, None),
    ],
)
async def test_a_wrong_patch_is_refused_by_its_path_and_changes_nothing(
    client: httpx.AsyncClient, body: bytes, headers: dict[str, str], param: str | None
) -> None:
    before = await merge(client, name="Kai")
    response = await client.patch(PROFILE, content=body, headers=headers)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["code"], error["param"]) == ("invalid_value", param)
    assert (await client.get(PROFILE)).json() == before and len(await versions(client)) == 1


async def test_versions_say_who_changed_what(client: httpx.AsyncClient) -> None:
    await merge(client, name="Kai")
    await patch(client, {"op": "replace", "path": "/name", "value": "Kay"})
    first, second = await versions(client)
    assert first["document"] == {"name": "Kai"} and first["version"] == 1
    assert second["patch"] == [{"op": "replace", "path": "/name", "value": "Kay"}]
    for each in (first, second):
        assert (each["object"], each["origin"], each["sources"]) == (
            "profile.version",
            "edited",
            [],
        )
        assert each["rolled_back_to"] is None and each["created_at"] > 0


async def test_versions_come_in_pages(client: httpx.AsyncClient) -> None:
    for age in range(5):
        await merge(client, age=age)
    page = (await client.get(f"{PROFILE}/versions", params={"limit": 2})).json()
    assert [each["version"] for each in page["data"]] == [1, 2] and page["has_more"]
    rest = await versions(client, after=page["next"])
    assert [each["version"] for each in rest] == [3, 4, 5]


async def test_an_earlier_version_is_made_the_current_one(client: httpx.AsyncClient) -> None:
    await merge(client, name="Kai")
    await merge(client, name="Kay", age=34)
    response = await client.post(f"{PROFILE}/rollback", json={"version": 1})
    assert response.status_code == 200
    assert (response.json()["document"], response.json()["version"]) == ({"name": "Kai"}, 3)
    assert (await versions(client))[-1]["rolled_back_to"] == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"nonsense", 400),
        (b"{}", 400),
        (b'{"version": "1"}', 400),
        (b'{"version": 0}', 400),
        (b'{"version": 9}', 404),
    ],
)
async def test_a_version_that_is_none_is_refused(
    client: httpx.AsyncClient, body: bytes, status: int
) -> None:
    await merge(client, name="Kai")
    response = await client.post(f"{PROFILE}/rollback", content=body)
    assert response.status_code == status
    assert error_of(response)["code"] == ("version_not_found" if status == 404 else "invalid_value")


async def test_people_and_tenants_have_profiles_of_their_own(
    site: Site, client: httpx.AsyncClient
) -> None:
    await merge(client, name="Kai")
    assert (await client.get(PROFILE.replace("kai", "eve"))).json()["document"] == {}
    async with site.client("bob") as other:
        assert (await other.get(PROFILE)).json()["document"] == {}
    async with site.client(ADMIN_KEY) as admin:
        query = {"tenant": digest_of(b"alice")}
        found = await admin.get(PROFILE, params=query)
        assert found.json()["document"] == {"name": "Kai"}
    async with site.client(peer="192.0.2.1") as stranger:
        assert (await stranger.get(PROFILE)).status_code == 401
        assert (await stranger.patch(PROFILE, json={})).status_code == 401


async def test_methods_that_are_not_there_are_refused(client: httpx.AsyncClient) -> None:
    assert (await client.put(PROFILE, json={})).status_code == 405
    assert (await client.get(f"{PROFILE}/rollback")).status_code == 405
    assert (await client.get("/memory/v1/users/a%20b/profile")).status_code == 400


class TestWithASchema:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        path = tmp_path / "person.json"
        path.write_text(json.dumps(PERSON))
        return Settings.model_validate(
            {
                "server": {"admin_key": ADMIN_KEY},
                "store": {"timeout": 5},
                "memory": {"profile": {"schema": str(path)}},
                "profiles": {"free": {"profile": {"schema": ""}}},
            }
        )

    @pytest.mark.parametrize(("members", "param"), [({"age": "old"}, "/age"), ({"shoe": 43}, "")])
    async def test_what_it_forbids_is_refused(
        self, client: httpx.AsyncClient, members: dict[str, Any], param: str
    ) -> None:
        await merge(client, name="Kai")
        response = await client.patch(PROFILE, json=members)
        assert response.status_code == 400
        assert error_of(response)["param"] == param
        assert (await client.get(PROFILE)).json()["document"] == {"name": "Kai"}

    async def test_it_is_that_of_the_profile_that_is_named(self, client: httpx.AsyncClient) -> None:
        free = {"profile": "free"}
        assert (await client.patch(PROFILE, json={"shoe": 43}, params=free)).status_code == 200
        response = await client.patch(PROFILE, json={}, params={"profile": "nobody"})
        assert (response.status_code, error_of(response)["code"]) == (400, "unknown_profile")
