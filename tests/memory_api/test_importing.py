"""Imports over the memory API: ours and others', whole and broken, beside what is there."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from proxy.memory.archive import SessionArchive
from proxy.memory.erasure import Subject
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreTimeout
from proxy.portable.detection import DETECTION_BYTES
from proxy.recall.index import Owner
from proxy.recall.indexing.index_updater import IndexUpdater
from proxy.recall.indexing.state import State, read_state
from proxy.recall.recaller import RecallAdmin
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of, seed, talk
from tests.support.store.commits import chat
from tests.support.talk.foreign import conversation, dumped, node
from tests.support.waiting import PATIENCE, eventually

API = "/memory/v1"
TENANT = digest_of(b"alice")
TALK = talk("Hello", "Hi")
Json = dict[str, Any]


async def imported(client: httpx.AsyncClient, content: bytes, query: str = "") -> Json:
    response = await client.post(f"{API}/import{query}", content=content)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


async def refused(client: httpx.AsyncClient, content: bytes, query: str = "") -> Json:
    response = await client.post(f"{API}/import{query}", content=content)
    assert response.status_code in (400, 409), response.text
    return error_of(response)


async def messages(client: httpx.AsyncClient, session: str) -> list[Json]:
    listed = (await client.get(f"{SESSIONS}/{session}/messages?state=active,superseded")).json()
    return [each["message"] for each in listed["data"]]


async def sessions(client: httpx.AsyncClient) -> list[Json]:
    found: list[Json] = (await client.get(SESSIONS)).json()["data"]
    return found


async def test_the_answer_says_what_was_put(client: httpx.AsyncClient) -> None:
    answer = await imported(client, dumped(TALK), "?session=mine&user=kai")
    assert answer == {
        "object": "import",
        "format": "openai",
        "dry_run": False,
        "sessions": 1,
        "messages": 2,
        "exchanges": 1,
        "memories": 0,
        "skipped": {"sessions": 0, "memories": 0},
        "warnings": [],
    }
    assert await messages(client, "mine") == TALK
    (session,) = await sessions(client)
    assert (session["user_id"], session["messages"]) == ("kai", 2)


BRANCHES = [
    node("u1", None, "user", "one", at=10, children=["a1", "a1b"]),
    node("a1", "u1", "assistant", "first", at=11),
    node("a1b", "u1", "assistant", "second", at=12),
]


@pytest.mark.parametrize(
    ("content", "format", "count"),
    [
        pytest.param(dumped(TALK), "openai", 1, id="openai"),
        pytest.param(
            b"\n".join(dumped({"messages": talk(x, "Hi")}) for x in "abc"),
            "chat_jsonl",
            3,
            id="lines",
        ),
        pytest.param(
            dumped([conversation(*BRANCHES, id=f"c{i}") for i in range(3)]),
            "chatgpt",
            3,
            id="chatgpt",
        ),
        pytest.param(
            dumped([{"type": "human", "data": {"content": "x"}}]), "langchain", 1, id="langchain"
        ),
    ],
)
async def test_every_format_is_found_out_and_importing_twice_changes_nothing(
    client: httpx.AsyncClient, content: bytes, format: str, count: int
) -> None:
    answer = await imported(client, content)
    assert (answer["format"], answer["sessions"]) == (format, count)
    before = await sessions(client)
    again = await imported(client, content, f"?format={format}")
    assert (again["sessions"], again["skipped"]["sessions"]) == (0, count)
    assert await sessions(client) == before
    assert len(before) == count


async def test_branches_are_in_history_as_superseded(client: httpx.AsyncClient) -> None:
    await imported(client, dumped([conversation(*BRANCHES)]), "?user=kai")
    listed = (await client.get(f"{SESSIONS}/c-1/messages?state=active,superseded")).json()["data"]
    assert [(each["message"]["content"], each["state"]) for each in listed] == [
        ("one", "active"),
        ("first", "superseded"),
        ("second", "active"),
    ]
    assert {each["origin"] for each in listed} == {"import"}
    assert [each["created_at"] for each in listed] == [10, 11, 12]
    found = (await client.get(f"{SESSIONS}/c-1")).json()
    assert (found["title"], found["user_id"]) == ("Dogs", "kai")


async def test_what_is_imported_can_be_recalled(client: httpx.AsyncClient, site: Site) -> None:
    content = dumped(talk("My dog is called Bello.", "Nice."))
    await imported(client, content, "?user=kai&session=s1")
    path = f"{API}/users/kai/memories/search"

    async def found() -> bool:
        data = (await client.post(path, json={"query": "What is my dog called?"})).json()["data"]
        return any("Bello" in each["text"] for each in data)

    await eventually(found)


async def test_an_old_session_is_recalled_though_nobody_told_the_index_of_it(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the process is killed before it gets there."""
    await seed(client, "new", *talk("My cat is called Misha.", "Nice."), user="kai")
    owner = Owner(TENANT, user="kai")

    async def level() -> bool:
        await client.post(f"{API}/users/kai/memories/search", json={"query": "What is my cat?"})
        state = read_state((await store.lookup(owner, (), 0)).state) or State()
        return state.caught_up_at > 0

    await eventually(level)
    add = IndexUpdater._add
    monkeypatch.setattr(
        IndexUpdater, "_add", lambda self, work: isinstance(work, Owner) and add(self, work)
    )
    old = conversation(node("u", None, "user", "My dog is called Bello.", at=10), id="old")

    await imported(client, dumped([old]), "?user=kai")

    async def found() -> bool:
        query = {"query": "What is my dog called?"}
        data = (await client.post(f"{API}/users/kai/memories/search", json=query)).json()["data"]
        return any("Bello" in each["text"] for each in data)

    await eventually(found)


async def export_of(client: httpx.AsyncClient) -> bytes:
    return (await client.get(f"{API}/export")).content


async def test_a_session_that_is_there_is_kept_or_with_error_ends_the_import(
    client: httpx.AsyncClient,
) -> None:
    for name in ("one", "two", "three"):
        await seed(client, name, *TALK)
    export = await export_of(client)  # three, two, one
    for name in ("three", "one"):
        await client.delete(f"{SESSIONS}/{name}")
    await seed(client, "two", *talk("More", "Yes"))
    error = await refused(client, export, "?conflict=error")
    assert error["code"] == "session_exists"
    assert error["message"] == (
        'The session "two" is there already. 1 session was imported before that, and stay.'
    )
    assert {session["id"] for session in await sessions(client)} == {"two", "three"}
    answer = await imported(client, export)
    assert (answer["sessions"], answer["skipped"]["sessions"]) == (1, 2)
    assert len(await messages(client, "two")) == 4


async def test_sessions_before_a_broken_line_stay_and_the_error_says_how_many(
    client: httpx.AsyncClient,
) -> None:
    for name in ("one", "two"):
        await seed(client, name, *TALK)
    export = await export_of(client)
    lines = export.splitlines(keepends=True)
    for name in ("one", "two"):
        await client.delete(f"{SESSIONS}/{name}")
    error = await refused(client, b"".join([*lines[:8], b"{broken\n", *lines[9:]]))
    assert error["code"] == "invalid_import"
    assert error["message"].startswith("Line 9 is not a JSON object with a kind. 1 session was")
    assert [session["id"] for session in await sessions(client)] == ["two"]
    cut = await refused(client, export[:-5])
    assert "it is cut off" in cut["message"] or "Line 12" in cut["message"]


async def test_an_import_lifts_the_marks_of_erasures(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *TALK, user="kai")
    await client.post(f"{API}/users/kai/memories", json={"text": "likes tea"})
    export = await export_of(client)
    key = SessionKey(TENANT, "s")
    await store.delete(key)
    for subject in (Subject(TENANT, "kai"), Subject(TENANT, session="s")):
        await store.mark([subject], time.time())
    assert await store.commit(key, chat("x1", user="kai")) == "erased"

    answer = await imported(client, export)

    assert (answer["sessions"], answer["warnings"]) == (1, [])

    assert await store.commit(key, chat("x1", user="kai")) == "recorded"


async def test_an_import_does_not_bring_back_who_is_erased_while_it_is_under_way(
    client: httpx.AsyncClient, store: Backend
) -> None:
    for name, user in (("one", "kai"), ("other", "eve"), ("two", "kai")):
        await seed(client, name, *talk("Hello" * DETECTION_BYTES, "Hi"), user=user)
    await client.post(f"{API}/users/kai/memories", json={"text": "likes tea"})
    export = await export_of(client)  # two, other, one, memories
    for user in ("kai", "eve"):
        await client.delete(f"{API}/users/{user}")
    first, rest = export.split(b'{"kind":"session","id":"other"')

    async def body() -> AsyncIterator[bytes]:
        yield first

        async def there() -> bool:
            return [session["id"] for session in await sessions(client)] == ["two"]

        await eventually(there)
        assert (await client.delete(f"{API}/users/kai")).json()["counts"]["sessions"] == 1
        yield b'{"kind":"session","id":"other"' + rest

    response = await client.post(f"{API}/import", content=body())
    answer = response.json()
    assert (answer["sessions"], answer["memories"]) == (2, 0)
    assert answer["skipped"] == {"sessions": 1, "memories": 2}
    assert answer["warnings"] == [
        "What was erased while it was imported is not brought back, and counts as skipped"
        " (2 times)."
    ]
    assert [session["id"] for session in await sessions(client)] == ["other"]
    assert await facts(client) == set()
    assert await store.is_erased([Subject(TENANT, "kai")], time.time() - 60)

    answer = await imported(client, export)
    assert (answer["sessions"], answer["warnings"]) == (2, [])
    assert await facts(client) == {"likes tea"}


async def test_an_import_that_brings_nothing_lifts_no_mark(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *TALK, user="kai")
    export = await export_of(client)
    await store.mark([Subject(TENANT, "kai")], 5e9)
    await imported(client, export)
    assert await store.commit(SessionKey(TENANT, "t"), chat("x1", user="kai")) == "erased"


async def facts(client: httpx.AsyncClient) -> set[str]:
    listed = (await client.get(f"{API}/users/kai/memories")).json()["data"]
    return {each["text"] for each in listed}


async def test_facts_join_those_that_are_there_and_are_found_beside_them(
    client: httpx.AsyncClient, store: Backend, site: Site
) -> None:
    memories = f"{API}/users/kai/memories"
    await client.post(memories, json={"text": "Kai has a boat."})
    export = await export_of(client)
    await client.delete(f"{memories}/{(await client.get(memories)).json()['data'][0]['id']}")
    await client.post(memories, json={"text": "Kai has a dog."})

    answer = await imported(client, export)

    assert answer["memories"] == 1
    assert await facts(client) == {"Kai has a boat.", "Kai has a dog."}
    found = (await client.post(f"{memories}/search", json={"query": "a boat?"})).json()["data"]
    assert "Kai has a boat." in {each["text"] for each in found}


async def test_a_profile_that_is_there_keeps_out_another_one(site: Site) -> None:
    path, patch = f"{API}/users/kai/profile", {"content-type": "application/merge-patch+json"}
    async with site.client("alice") as ours, site.client("mallory") as theirs:
        for name in ("Kai", "Kay"):
            await ours.patch(path, content=dumped({"name": name}), headers=patch)
        await theirs.patch(path, content=dumped({"pet": "dog"}), headers=patch)
        before = [(await theirs.get(each)).text for each in (path, f"{path}/versions")]

        answer = await imported(theirs, await export_of(ours))

        assert (answer["memories"], answer["skipped"]["memories"]) == (0, 4)
        after = [(await theirs.get(each)).text for each in (path, f"{path}/versions")]
        assert after == before


async def test_instructions_that_are_there_keep_out_others(site: Site) -> None:
    path = f"{API}/instructions/default"
    async with site.client("alice") as ours, site.client("mallory") as theirs:
        for text in ("Be brief.", "Be very brief."):
            await ours.put(path, json={"text": text})
        await theirs.put(path, json={"text": "Be kind."})

        answer = await imported(theirs, await export_of(ours))

        assert (answer["memories"], answer["skipped"]["memories"]) == (0, 3)
        versions = (await theirs.get(f"{path}/versions")).json()["data"]
        assert [version["text"] for version in versions] == ["Be kind."]


@pytest.mark.parametrize(
    ("namespace", "key"),
    [
        (["users", "kai", "facts"], "fact_x"),
        (["users", "kai", "facts", "more"], "fact_x"),
        (["users", "kai", "card"], "facts"),
        (["users", "kai", "card"], "unknown"),
        (["users", "kai", "episodes"], "episode_x"),
        (["users", "kai", "profiles"], "00000001"),
        (["users", "kai", "feedback", "s"], "x.0"),
        (["instructions", "default", "versions"], "00000001"),
        (["instructions"], "what"),
        (["instructions", "default"], "what"),
    ],
    ids=str,
)
async def test_what_nobody_can_have_learned_is_refused(
    client: httpx.AsyncClient, namespace: list[str], key: str
) -> None:
    item = {"namespace": namespace, "key": key, "value": {"lines": 5}, "version": 1}
    times = {"created_at": 1.0, "updated_at": 1.0}
    header = {"format": "memory-proxy", "version": 1, "scope": "tenant", "exported_at": 1.0}
    user = "kai" if namespace[0] == "users" else None
    lines = [
        {"kind": "header", **header},
        {"kind": "shelf", "user": user},
        {"kind": "item", "item": {**item, **times}},
        {"kind": "shelf_end", "items": 1},
        {"kind": "end", "sessions": 0, "shelves": 1, "items": 1},
    ]
    error = await refused(client, b"\n".join(map(dumped, lines)))
    assert "that is not what belongs there" in error["message"]
    assert (await client.get(f"{API}/users/kai/memories")).json()["data"] == []


async def test_the_same_export_on_another_tenant_is_another_memory(site: Site) -> None:
    async with site.client("alice") as ours, site.client("mallory") as theirs:
        await seed(ours, "s", *TALK, user="kai")
        await imported(theirs, await export_of(ours))
        await theirs.delete(f"{SESSIONS}/s")
        assert await messages(ours, "s") == TALK
        assert await sessions(theirs) == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?format=xml", "format"),
        ("?conflict=merge", "conflict"),
        ("?session=a%20b", "session"),
        ("?user=..", "user"),
    ],
)
async def test_a_wrong_query_is_refused(client: httpx.AsyncClient, query: str, param: str) -> None:
    assert (await refused(client, dumped(TALK), query))["param"] == param
    assert await sessions(client) == []


async def test_an_export_says_itself_whose_it_is(client: httpx.AsyncClient) -> None:
    export = await export_of(client)
    for query in ("?session=s", "?user=kai"):
        assert (await refused(client, export, query))["code"] == "invalid_value"


async def test_one_name_is_not_enough_for_two_conversations(client: httpx.AsyncClient) -> None:
    error = await refused(client, dumped([TALK, talk("More", "Yes")]), "?session=s")
    assert "more than one conversation" in error["message"]
    assert "1 session was imported" in error["message"]


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"[]", b"{}"])
async def test_what_is_no_file_of_memory_is_refused(
    client: httpx.AsyncClient, content: bytes
) -> None:
    assert (await refused(client, content))["code"] == "invalid_import"


async def test_nobody_imports_without_a_key_from_elsewhere(site: Site) -> None:
    async with site.client(None, peer="10.0.0.9") as stranger:
        response = await stranger.post(f"{API}/import", content=dumped(TALK))
    assert response.status_code == 401


async def test_a_restore_that_outlasts_the_store_counts_once(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = store.restore, 0

    async def restore(key: SessionKey, archived: SessionArchive, since: float) -> bool:
        nonlocal calls
        calls += 1
        done = await real(key, archived, since)
        if calls == 1:
            raise StoreTimeout("done, and too late to say so")
        return done

    monkeypatch.setattr(store, "restore", restore)
    answer = await imported(client, dumped(TALK))
    assert (answer["sessions"], answer["skipped"]["sessions"], calls) == (1, 0, 2)


async def test_recall_which_is_patient_is_not_asked_while_the_store_is_away(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Owner] = []

    async def peek(key: SessionKey) -> None:
        raise StoreTimeout("no answer")

    async def look_again(admin: RecallAdmin, owner: Owner) -> None:
        asked.append(owner)

    monkeypatch.setattr(RecallAdmin, "recheck_sessions", look_again)
    with monkeypatch.context() as away:
        away.setattr(store, "peek", peek)
        response = await client.post(f"{API}/import?user=kai", content=dumped(TALK))
        assert (response.status_code, error_of(response)["code"]) == (503, "memory_unavailable")
    assert asked == []
    await imported(client, dumped(TALK), "?user=kai")
    assert asked == [Owner(TENANT, user="kai")]


async def test_large_conversations_of_a_tenant_are_made_one_at_a_time(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.memory_api.transfer.import_sessions.LARGE", 1)
    real, most, now, both = site.store.restore, 0, Counter[str](), asyncio.Event()

    async def restore(key: SessionKey, archived: SessionArchive, since: float) -> bool:
        nonlocal most
        now[key.tenant] += 1
        most = max(most, *now.values())
        if len(+now) == 2:
            both.set()
        await both.wait()
        done = await real(key, archived, since)
        now[key.tenant] -= 1
        return done

    monkeypatch.setattr(site.store, "restore", restore)
    async with site.client("k1") as one, site.client("k2") as other, asyncio.timeout(10):
        files = [dumped(talk(f"u{n}", "a")) for n in range(3)]
        answers = await asyncio.gather(
            *(imported(client, file) for client in (one, other) for file in files)
        )
    assert [answer["sessions"] for answer in answers] == [1] * 6
    assert most == 1


class TestWithSmallLimits:
    @pytest.fixture
    def settings(self) -> Settings:
        server = {
            "admin_key": ADMIN_KEY,
            "max_body_bytes": 1000,
            "max_import_bytes": 20_000,
            "body_timeout": 0.2,
        }
        return Settings.model_validate({"server": server, "store": {"timeout": 5}})

    async def test_an_export_may_be_of_any_size(
        self, client: httpx.AsyncClient, store: Backend
    ) -> None:
        for number in range(100):
            await store.commit(SessionKey(TENANT, f"s{number}"), chat("x", at=1000.0 + number))
        export = await export_of(client)
        assert len(export) > 60_000
        for number in range(100):
            await store.delete(SessionKey(TENANT, f"s{number}"))
        assert (await imported(client, export))["sessions"] == 100

    async def test_a_line_and_a_list_may_not(self, client: httpx.AsyncClient) -> None:
        line = dumped({"messages": talk("x" * 3000, "Hi")})
        assert "longer than 2000 bytes" in (await refused(client, line))["message"]
        whole = dumped(talk("x" * 30_000, "Hi"))
        assert "more than 20000 bytes of item 1" in (await refused(client, whole))["message"]

    async def test_a_body_that_stops_coming_is_given_up(self, client: httpx.AsyncClient) -> None:
        async def body() -> AsyncIterator[bytes]:
            yield dumped({"messages": TALK}) + b"\n"
            await asyncio.Event().wait()

        response = await client.post(f"{API}/import", content=body())
        assert response.status_code == 408

    async def test_a_body_that_comes_byte_by_byte_is_given_up(
        self, client: httpx.AsyncClient
    ) -> None:
        async def body() -> AsyncIterator[bytes]:
            while True:
                yield b" " * 1000
                await asyncio.sleep(0.01)

        async with asyncio.timeout(PATIENCE):
            response = await client.post(f"{API}/import", content=body())
        assert response.status_code == 408

    async def test_a_body_may_take_long_that_comes_fast_enough(
        self, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("proxy.memory_api.transfer.import_route.MIN_RECEIVED_BYTES", 1)
        late = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            asyncio.get_running_loop().call_later(0.3, late.set)
            while not late.is_set():
                yield dumped({"messages": TALK}) + b"\n"
                await asyncio.sleep(0.01)

        assert (await client.post(f"{API}/import", content=body())).status_code == 200
