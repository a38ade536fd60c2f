"""Every operation with somebody else's ids: nothing of theirs is shown, and nothing of it changes.

The requests are made from the document, so a new route that they do not reach fails here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.memory_api.operations import OPERATIONS
from proxy.tenancy import digest_of
from tests.support.conformance import conforming
from tests.support.jsonrpc import post
from tests.support.memory_api import error_of, said
from tests.support.rig import Rig, rig
from tests.support.store.belongings import (
    ONE,
    ROOT,
    USER,
    Belongings,
    calls_for,
    ordered,
    owning,
)
from tests.support.store.places import IN_CHATS, Places
from tests.support.waiting import PATIENCE

ADMIN = "the-key-of-the-administrator"

SHOWN = {
    *("listSessions", "getSession", "previewContext", "listSummaries", "exportSession"),
    *("listMessages", "getMessage", "getFeedback", "exportUser", "listMemories", "getMemory"),
    *("searchMemories", "getProfile", "listProfileVersions", "getInstructions"),
    *("listInstructionsVersions", "listProposals", "getItem", "searchItems", "exportAll"),
}
"""Operations that show their owner what was written, and must show it to nobody else."""

SHOWN_TO_AGENTS = {
    *("search_memories", "list_sessions", "read_session"),
    *("resources/list", "resources/read"),
}
"""And what of MCP does."""

CLIENTS = {
    "tenancy__mode": "clients",
    "upstream__api_key": "another-key",
    "clients": [
        {"name": name, "key_sha256": [digest_of(f"key-of-{name}".encode())]}
        for name in ("ada", "bob")
    ],
}


@pytest.fixture(params=IN_CHATS)
def url(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> str:
    return places.of(request.param, tmp_path).url


@pytest.fixture
async def proxy(url: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Anybody's key is a tenant of its own."""
    async with rig(tmp_path, store__url=url, server__admin_key=ADMIN, mcp__enabled=True) as ready:
        yield ready


@pytest.fixture
async def named(tmp_path: Path) -> AsyncIterator[Rig]:
    """With named clients, and nobody else."""
    async with rig(tmp_path, server__admin_key=ADMIN, mcp__enabled=True, **CLIENTS) as ready:
        yield ready


@asynccontextmanager
async def calling(proxy: Rig, key: str | None, **query: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(
        base_url=proxy.proxy.url,
        headers=headers,
        params=query,
        timeout=PATIENCE,
        verify=False,
        event_hooks={"response": [conforming]},
    ) as client:
        yield client


@dataclass
class Stranger:
    """Somebody who knows all ids of somebody else's."""

    name: str
    client: httpx.AsyncClient
    query: dict[str, str]

    async def try_all(self, theirs: Belongings) -> dict[int, int]:
        """Try every operation on what is theirs; how often each status was answered."""
        found: dict[int, int] = {}
        for operation in ordered(OPERATIONS):
            for request in theirs.requests(operation):
                for query in ({}, {"tenant": theirs.tenant}):
                    answer = await request.send(self.client, **{**query, **self.query})
                    told = f"{self.name}: {request}: {answer.status_code} {answer.text[:500]}"
                    assert theirs.marker not in answer.text, told
                    assert theirs.marker not in str(answer.headers), told
                    assert answer.status_code < 500, told
                    changed = "if-none-match" in request.headers and answer.status_code == 304
                    assert not changed or operation.id in PUBLIC, f"{told}: {PRIVATE}"
                    found[answer.status_code] = found.get(answer.status_code, 0) + 1
        await self._try_tools(theirs)
        return found

    async def _try_tools(self, theirs: Belongings) -> None:
        """The same through MCP."""
        for message in calls_for(theirs):
            for query in ({}, {"tenant": theirs.tenant}):
                answer = await post(self.client, message, {**query, **self.query})
                told = f"{self.name}: {message}: {answer.status_code} {answer.text[:500]}"
                assert theirs.marker not in answer.text, told
                assert answer.status_code < 500 and "server_error" not in answer.text, told


PUBLIC = {"getOpenApi", "getUsage"}
"""Answers in which nothing is anybody's own, so that they may be the same."""

PRIVATE = "the same for two people; if nothing in it is anybody's own it belongs into PUBLIC"


async def untouched(theirs: Belongings, before: tuple[bytes, dict[str, bytes]]) -> None:
    assert await theirs.export() == before[0]
    answers = await theirs.answers()
    other = [path for path, answer in before[1].items() if answers[path] != answer]
    assert not other, "what goes with the clock belongs into MOVING of tests/support/store"


@pytest.mark.slow
async def test_nobody_reaches_what_is_somebody_else_s(proxy: Rig) -> None:
    async with AsyncExitStack() as opened:
        store = proxy.store.real

        async def caller(key: str | None) -> httpx.AsyncClient:
            return await opened.enter_async_context(calling(proxy, key))

        async def owner(key: str | None, marker: str) -> Belongings:
            tenant = digest_of(key.encode()) if key else "anonymous"
            return await owning(await caller(key), tenant, marker, store)  # type: ignore[arg-type]

        theirs = await owner("key-of-b", "blackberries")
        keyless = await owner(None, "apples")
        mine = await owner("key-of-a", "strawberries")
        kept = [(each, (await each.export(), await each.answers())) for each in (theirs, keyless)]
        assert b"blackberries" in kept[0][1][0]
        strangers = [
            Stranger("newcomer", await caller("key-of-c"), {}),
            Stranger("admin for c", await caller(ADMIN), {"tenant": digest_of(b"key-of-c")}),
            Stranger("same ids", mine.client, {}),
        ]
        for stranger in strangers:
            for each, before in kept:
                found = await stranger.try_all(each)
                assert found[200] > 40 and found[404] > 20, found
                await untouched(each, before)
        await Stranger("anonymous", keyless.client, {}).try_all(theirs)
        await untouched(*kept[0])


async def test_the_owner_is_shown_all_of_it(proxy: Rig) -> None:
    """Else it would say nothing that others are not."""
    async with calling(proxy, "key-of-b") as client:
        tenant = digest_of(b"key-of-b")
        mine = await owning(client, tenant, "blackberries", proxy.store.real)  # type: ignore[arg-type]
        seen: set[str] = set()
        for operation in OPERATIONS:
            if operation.id in SHOWN:
                answers = [await each.send(client) for each in mine.requests(operation)]
                seen |= {operation.id for each in answers if "blackberries" in each.text}
        assert seen == SHOWN
        shown = {
            message["params"].get("name", message["method"])
            for message in calls_for(mine)
            if "blackberries" in (await post(client, message)).text
        }
        assert shown == SHOWN_TO_AGENTS


@pytest.mark.slow
async def test_a_named_client_reaches_nothing_of_another(named: Rig) -> None:
    async with calling(named, "key-of-ada") as ada, calling(named, "key-of-bob") as bob:
        store: Any = named.store.real
        theirs = await owning(bob, "bob", "blackberries", store)
        await owning(ada, "ada", "strawberries", store)
        before = (await theirs.export(), await theirs.answers())
        found = await Stranger("ada", ada, {}).try_all(theirs)
        assert found[200] > 40 and found[404] > 20, found
        await untouched(theirs, before)


@pytest.mark.parametrize("key", ["key-of-eve", None], ids=["unknown", "none"])
async def test_a_key_that_is_not_known_reaches_no_route(named: Rig, key: str | None) -> None:
    async with calling(named, "key-of-bob") as bob, calling(named, key) as stranger:
        store: Any = named.store.real
        theirs = await owning(bob, "bob", "blackberries", store)
        before = (await theirs.export(), await theirs.answers())
        await _refused(stranger, theirs)
        await untouched(theirs, before)


async def test_without_a_key_nothing_is_reached_from_elsewhere(tmp_path: Path) -> None:
    async with (
        rig(tmp_path, server__admin_key=ADMIN, mcp__enabled=True) as proxy,
        calling(proxy, None) as here,
        calling(proxy, None) as elsewhere,
    ):
        store: Any = proxy.store.real
        theirs = await owning(here, "anonymous", "blackberries", store)
        before = (await theirs.export(), await theirs.answers())
        elsewhere.headers["x-forwarded-for"] = "203.0.113.9"
        await _refused(elsewhere, theirs)
        await untouched(theirs, before)


async def _refused(stranger: httpx.AsyncClient, theirs: Belongings) -> None:
    for operation in OPERATIONS:
        for request in theirs.requests(operation):
            for query in ({}, {"tenant": theirs.tenant}):
                answer = await request.send(stranger, **query)
                if operation.open:
                    assert answer.status_code in (200, 304, 412)
                else:
                    assert answer.status_code == 401, f"{request}: {answer.text}"
                    assert error_of(answer)["code"] == "invalid_api_key"
    for message in calls_for(theirs):
        answer = await post(stranger, message)
        assert (answer.status_code, error_of(answer)["code"]) == (401, "invalid_api_key")


async def test_the_administrator_has_to_say_whose_memory_is_meant(proxy: Rig) -> None:
    async with calling(proxy, "key-of-b") as bob, calling(proxy, ADMIN) as admin:
        store: Any = proxy.store.real
        theirs = await owning(bob, digest_of(b"key-of-b"), "blackberries", store)
        for operation in OPERATIONS:
            if operation.open or operation.id in ("whoAmI", "listTenants"):
                continue
            answer = await theirs.requests(operation)[0].send(admin)
            assert (operation.id, answer.status_code) == (operation.id, 400)
            assert error_of(answer)["param"] == "tenant"
        for message in calls_for(theirs):
            answer = await post(admin, message)
            assert (answer.status_code, error_of(answer)["param"]) == (400, "tenant")


@pytest.mark.slow
async def test_a_person_of_the_same_tenant_is_not_another(proxy: Rig) -> None:
    """Whose session it is tells the session: with another user's id nothing of it is found."""
    async with calling(proxy, "key-of-b") as client:
        store: Any = proxy.store.real
        theirs = await owning(client, digest_of(b"key-of-b"), "blackberries", store)
        alone = await client.get(f"{ROOT}/users/zoe/export")
        assert alone.status_code == 200
        for operation in OPERATIONS:
            if "{user}" not in operation.path or operation.method == "DELETE":
                continue
            for request in theirs.requests(operation):
                path = request.path.replace(f"/users/{USER}", "/users/zoe")
                answer = await client.request(
                    operation.method, path, params=dict(request.query), json=request.body
                )
                assert "blackberries" not in answer.text, f"{path}: {answer.text[:500]}"
        client.headers["x-user-id"] = "zoe"
        for message in calls_for(theirs):
            answer = await post(client, message)
            assert "blackberries" not in answer.text, f"{message}: {answer.text[:500]}"
        del client.headers["x-user-id"]
        before = await theirs.answers()
        taken = {"user": "zoe", "messages": [said("user", "This is mine.")]}
        answer = await client.post(f"{ONE}/messages", json=taken)
        assert (answer.status_code, error_of(answer)["code"]) == (403, "session_owner_mismatch")
        assert await theirs.answers() == before
