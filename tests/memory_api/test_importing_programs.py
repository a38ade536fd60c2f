"""What other programs have kept is imported over the memory API, on both kinds of store."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.settings import Settings
from proxy.stores.open import Backend, open_store
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of
from tests.support.processes import redis as servers
from tests.support.talk.foreign import dumped, sample
from tests.support.waiting import PATIENCE, eventually

API = "/memory/v1"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with servers.standalone() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    sqlite = f"sqlite:///{tmp_path}/memory.db"
    url = sqlite if request.param == "sqlite" else request.getfixturevalue("redis_url")
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def client(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """A tenant of its own: the server in Redis outlives the test."""
    async with site.client(f"key-{uuid.uuid4().hex}") as client:
        yield client


async def imported(client: httpx.AsyncClient, content: bytes, **params: str) -> Json:
    response = await client.post(f"{API}/import", content=content, params=params)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


async def everything(client: httpx.AsyncClient) -> list[bytes]:
    """All that an export has, but for when it was made."""
    return (await client.get(f"{API}/export")).content.splitlines()[1:]


FILES = [
    ("claude.json", "claude", 2, 8, 0),
    ("claude_code.jsonl", "claude_code", 1, 9, 0),
    ("codex.jsonl", "codex", 1, 9, 0),
    ("open_webui.json", "open_webui", 2, 10, 0),
    ("librechat_tree.json", "librechat", 1, 7, 0),
    ("librechat_flat.json", "librechat", 1, 2, 0),
    ("mem0.json", "mem0", 0, 0, 2),
    ("langmem.json", "langmem", 0, 0, 3),
]


@pytest.mark.parametrize(("name", "format", "sessions", "messages", "memories"), FILES)
async def test_a_file_twice_changes_nothing_more_and_a_dry_run_nothing_at_all(
    client: httpx.AsyncClient, name: str, format: str, sessions: int, messages: int, memories: int
) -> None:
    content = sample(name)
    counts = {"sessions": sessions, "messages": messages, "memories": memories}
    before = await everything(client)

    tried = await imported(client, content, dry_run="true")

    assert (tried["format"], tried["dry_run"]) == (format, True)
    assert {what: tried[what] for what in counts} == counts
    assert await everything(client) == before

    done = await imported(client, content)

    assert done == {**tried, "dry_run": False}
    after = await everything(client)
    again = await imported(client, content, format=format)
    assert {what: again[what] for what in counts} == dict.fromkeys(counts, 0)
    assert again["skipped"] == {"sessions": sessions, "memories": memories}
    assert (await imported(client, content, dry_run="true"))["skipped"] == again["skipped"]
    assert await everything(client) == after


async def test_branches_titles_and_dates_are_in_the_store(client: httpx.AsyncClient) -> None:
    await imported(client, sample("claude_code.jsonl"), user="kai")
    at = f"{SESSIONS}/22222222-0000-4000-8000-000000000001"
    session = (await client.get(at)).json()
    assert (session["title"], session["user_id"]) == ("Port of the harbour service", "kai")
    assert session["created_at"] == 1759305600.0
    listed = (await client.get(f"{at}/messages?state=active,superseded&limit=100")).json()["data"]
    assert [each["state"] for each in listed].count("superseded") == 2
    assert listed[0]["created_at"] == 1759305601.0
    assert {each["origin"] for each in listed} == {"import"}


async def test_chats_are_of_the_people_that_the_file_names(client: httpx.AsyncClient) -> None:
    await imported(client, sample("open_webui.json"))
    listed = (await client.get(SESSIONS)).json()["data"]
    assert {each["user_id"] for each in listed} == {"walker-1", "walker-2"}


async def test_one_name_is_not_given_to_what_is_of_two_people(client: httpx.AsyncClient) -> None:
    response = await client.post(f"{API}/import?user=kai", content=sample("open_webui.json"))
    assert response.status_code == 400
    assert error_of(response)["message"] == (
        "The file is of more than one person, and ?user= names only one. "
        "1 session was imported before that, and stay."
    )


async def memories(client: httpx.AsyncClient, user: str) -> list[Json]:
    found: list[Json] = (await client.get(f"{API}/users/{user}/memories")).json()["data"]
    return found


async def test_what_mem0_remembers_are_facts_with_their_dates(client: httpx.AsyncClient) -> None:
    await imported(client, sample("mem0.json"))
    facts = {each["text"]: each for each in await memories(client, "keeper")}
    bees, tea = facts["Keeps bees behind the house."], facts["Drinks tea without sugar."]
    assert (bees["valid_from"], bees["last_confirmed"]) == (1711983600.0, 1714575600.0)
    assert (bees["created_at"], bees["updated_at"]) == (1711983600.0, 1714575600.0)
    assert (bees["origin"], bees["metadata"]["room"]) == ("added", "garden")
    assert tea["expires_at"] == 1924992000.0


async def test_facts_go_to_the_person_who_is_named_and_stand_beside_others(
    client: httpx.AsyncClient,
) -> None:
    await client.post(f"{API}/users/kai/memories", json={"text": "Has a boat."})
    await imported(client, sample("mem0.json"), user="kai")
    assert len(await memories(client, "kai")) == 3
    assert await memories(client, "keeper") == []
    query = {"query": "What is behind the house?"}
    found = await client.post(f"{API}/users/kai/memories/search", json=query)
    assert found.json()["data"][0]["text"] == "Keeps bees behind the house."


async def test_values_of_langmem_are_saved_items(client: httpx.AsyncClient) -> None:
    await imported(client, sample("langmem.json"))
    facts = {each["text"] for each in await memories(client, "keeper")}
    assert facts == {"Sails on Sundays.", "Has a red kite."}
    wanted = {"namespace_prefix": ["users", "keeper", "langmem"]}
    (item,) = (await client.post(f"{API}/store/items/search", json=wanted)).json()["data"]
    assert item["namespace"] == ["users", "keeper", "langmem", "memories", "profile"]
    assert item["value"]["content"] == {"town": "Bergen", "boats": 2}


async def test_memories_too_long_for_a_fact_are_saved_items(client: httpx.AsyncClient) -> None:
    await imported(client, dumped([{"id": "a", "memory": "x" * 600, "user_id": "kai"}]))
    assert await memories(client, "kai") == []
    wanted = {"namespace_prefix": ["users", "kai", "mem0"]}
    (item,) = (await client.post(f"{API}/store/items/search", json=wanted)).json()["data"]
    assert (item["key"], len(item["value"]["memory"])) == ("a", 600)


@pytest.mark.parametrize("user", [None, "two words"])
async def test_memories_of_nobody_are_refused(client: httpx.AsyncClient, user: str | None) -> None:
    content = dumped([{"id": "a", "memory": "x", "user_id": user}])
    response = await client.post(f"{API}/import", content=content)
    assert response.status_code == 400
    assert "name the person, ?user=" in error_of(response)["message"]
    assert (await imported(client, content, user="kai"))["memories"] == 1


async def test_memories_are_no_session_and_have_a_bound(client: httpx.AsyncClient) -> None:
    response = await client.post(f"{API}/import?session=s", content=sample("mem0.json"))
    assert "?session= names one" in error_of(response)["message"]
    many = [{"id": str(n), "memory": "x" * 501, "user_id": "kai"} for n in range(5001)]
    response = await client.post(f"{API}/import?dry_run=true", content=dumped(many))
    assert "over 5000 memories of one person" in error_of(response)["message"]


async def test_what_is_complete_before_something_broken_stays(client: httpx.AsyncClient) -> None:
    content = sample("claude.json").rstrip()[:-200]
    response = await client.post(f"{API}/import", content=content)
    assert error_of(response)["message"] == (
        "The file has no end: it is cut off, behind conversation 2. "
        "2 sessions were imported before that, and stay."
    )
    assert len((await client.get(SESSIONS)).json()["data"]) == 2


async def test_a_broken_transcript_puts_nothing(client: httpx.AsyncClient) -> None:
    content = sample("codex.jsonl")[:-50]
    response = await client.post(f"{API}/import", content=content)
    assert error_of(response)["message"].startswith("Line 19 has what is no JSON")
    assert (await client.get(SESSIONS)).json()["data"] == []


async def test_what_was_said_elsewhere_is_recalled(client: httpx.AsyncClient) -> None:
    await imported(client, sample("claude.json"), user="kai")
    query = {"query": "What is my boat called?"}

    async def found() -> bool:
        response = await client.post(f"{API}/users/kai/memories/search", json=query)
        return any("Heron" in each["text"] for each in response.json()["data"])

    await eventually(found)


class TestWithSmallLimits:
    @pytest.fixture
    def settings(self) -> Settings:
        server = {"admin_key": ADMIN_KEY, "max_body_bytes": 1000, "max_import_bytes": 20_000}
        return Settings.model_validate({"server": server, "store": {"timeout": 5}})

    async def test_a_file_may_be_of_any_size_and_a_conversation_may_not(
        self, client: httpx.AsyncClient
    ) -> None:
        message = {"uuid": "m", "sender": "human", "text": "x" * 900}
        chats = [{"uuid": f"c{n}", "chat_messages": [message]} for n in range(60)]
        assert (await imported(client, dumped(chats)))["sessions"] == 60
        long = [{"uuid": "long", "chat_messages": [message] * 30}]
        response = await client.post(f"{API}/import", content=dumped(long))
        assert "more than 20000 bytes of item 1" in error_of(response)["message"]


HALF = "\ud800 and \x00 x"
"""Half a surrogate pair, which no store can write."""


@pytest.mark.parametrize(
    "content",
    [
        {"uuid": HALF, "name": HALF, "chat_messages": [{"uuid": HALF, "text": HALF}]},
        {"memory": HALF, "id": HALF, "user_id": "kai", "metadata": {HALF: HALF}},
        {"memory": HALF * 100, "id": HALF, "user_id": "kai"},
        {"namespace": ["memories", "kai", HALF], "key": HALF, "value": {HALF: [HALF]}},
        {
            "title": HALF,
            "mapping": {
                HALF: {"message": {"author": {"role": "user"}, "content": {"parts": [HALF]}}}
            },
        },
        {"id": HALF, "title": HALF, "chat": {"messages": [{"role": "user", "content": HALF}]}},
    ],
    ids=["claude", "mem0", "a long one", "langmem", "chatgpt", "open_webui"],
)
async def test_what_no_store_can_write_is_imported_as_it_can(
    client: httpx.AsyncClient, content: Json
) -> None:
    done = await imported(client, dumped([content]))
    assert done["sessions"] + done["memories"] == 1
    again = await imported(client, dumped([content]))
    assert sum(again["skipped"].values()) == 1
    assert await everything(client)
