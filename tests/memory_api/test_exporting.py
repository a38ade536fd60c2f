"""Exports over the memory API: whole whatever goes on meanwhile, and never more than one bit."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from proxy.learning.kinds import Kinds
from proxy.memory.archive import Page, PlacedExchange, Revision, StoredMessage
from proxy.memory.archive import Session as Listed
from proxy.memory.history.reading import NEWEST_TURN
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError, StoreTimeout
from proxy.memory_api.transfer import export as exporter_module
from proxy.portable.lines import ExportReader
from proxy.portable.source import Warnings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, Site, error_of, seed, talk
from tests.support.store.commits import chat, summary

API = "/memory/v1"
TENANT = digest_of(b"alice")


def lines(content: bytes) -> list[Any]:
    return [json.loads(line) for line in content.split(b"\n")[:-1]]


def kinds(content: bytes) -> list[str]:
    return [line["kind"] for line in lines(content)]


def ids(content: bytes) -> list[str]:
    """The sessions in an export, which must be whole."""
    reader = ExportReader(10**7, 10**9, Warnings(), Kinds().is_reserved)
    list(reader.feed(content))
    list(reader.finish())
    return [line["id"] for line in lines(content) if line["kind"] == "session"]


async def test_an_export_of_nothing_is_a_beginning_and_an_end(client: httpx.AsyncClient) -> None:
    response = await client.get(f"{API}/export")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.headers["cache-control"] == "no-store"
    header, end = lines(response.content)
    assert header.pop("exported_at") > 1.7e9
    assert header == {"kind": "header", "format": "memory-proxy", "version": 1, "scope": "tenant"}
    assert end == {"kind": "end", "sessions": 0, "shelves": 0, "items": 0}


async def test_a_session_is_written_from_its_head_to_its_end(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello", "hi"), user="kai")
    content = (await client.get(f"{SESSIONS}/s/export")).content
    assert kinds(content) == [
        "header",
        "session",
        "message",
        "message",
        "exchange",
        "session_end",
        "end",
    ]
    _, session, message, *_ = lines(content)
    assert (session["id"], session["user"], session["end"]) == ("s", "kai", 2)
    assert message["body"] == {"role": "user", "content": "hello"}
    assert TENANT not in content.decode() and "alice" not in content.decode()


async def test_sessions_are_the_newest_first_and_people_follow(client: httpx.AsyncClient) -> None:
    for user in ("kai", "eve"):
        await client.post(f"{API}/users/{user}/memories", json={"text": "likes tea"})
        await seed(client, f"of-{user}", *talk("hello", "hi"), user=user)
    everything = (await client.get(f"{API}/export")).content
    assert ids(everything) == ["of-eve", "of-kai"]
    shelves = [line["user"] for line in lines(everything) if line["kind"] == "shelf"]
    assert shelves == ["eve", "kai"]
    one = (await client.get(f"{API}/users/kai/export")).content
    assert ids(one) == ["of-kai"]
    assert "eve" not in one.decode()


@pytest.mark.parametrize(
    "path", [f"{API}/export", f"{API}/users/kai/export", f"{SESSIONS}/s/export"]
)
async def test_a_filter_that_is_misspelt_exports_nobody(
    client: httpx.AsyncClient, path: str
) -> None:
    await seed(client, "s", *talk("hello"), user="kai")
    response = await client.get(f"{path}?users=kai")
    assert response.status_code == 400 and error_of(response)["param"] == "users"


async def test_a_session_that_is_not_there_cannot_be_exported(client: httpx.AsyncClient) -> None:
    response = await client.get(f"{SESSIONS}/gone/export")
    assert response.status_code == 404
    assert error_of(response)["code"] == "session_not_found"


@pytest.mark.parametrize(
    "path", [f"{API}/export", f"{API}/users/kai/export", f"{SESSIONS}/s/export"]
)
async def test_another_tenant_sees_nothing(site: Site, path: str) -> None:
    async with site.client("alice") as ours, site.client("mallory") as theirs:
        await seed(ours, "s", *talk("secret", "yes"), user="kai")
        await ours.post(f"{API}/users/kai/memories", json={"text": "a secret"})
        assert "secret" in (await ours.get(path)).text
        assert "secret" not in (await theirs.get(path)).text
        assert "secret" not in (await theirs.get(f"{path}?tenant={TENANT}")).text
    async with site.client(None, peer="10.0.0.9") as stranger:
        assert (await stranger.get(path)).status_code == 401


async def test_a_head_request_reads_nothing(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sessions(*_: object) -> Page[Listed]:
        raise AssertionError

    monkeypatch.setattr(store, "sessions", sessions)
    response = await client.head(f"{API}/export")
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"] == "application/x-ndjson"


async def test_sessions_that_move_while_an_export_runs_are_in_it_once(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time that a session is read, the oldest one becomes the newest."""
    now = 1_000.0
    for number in range(250):
        key = SessionKey(TENANT, f"s{number}")
        await store.commit(key, chat(f"x{number}", at=now + number))
    moved = 0
    real = store.session

    async def session(key: SessionKey) -> Listed | None:
        nonlocal moved
        oldest = SessionKey(TENANT, f"s{moved % 250}")
        await store.commit(oldest, chat(f"y{moved}", at=4e9 + moved))
        moved += 1
        return await real(key)

    monkeypatch.setattr(store, "session", session)
    found = ids((await client.get(f"{API}/export")).content)
    assert sorted(found) == sorted(f"s{number}" for number in range(250))


async def test_what_is_said_while_a_session_is_read_is_left_out(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = SessionKey(TENANT, "s")
    await store.commit(key, chat("x0"))
    real, count = store.lines, 0

    async def all_lines(key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        nonlocal count
        count += 1
        await store.commit(key, chat(f"x{count}", at=1000.0 + count))
        return await real(key, after, 1)

    monkeypatch.setattr(store, "lines", all_lines)
    content = (await client.get(f"{SESSIONS}/s/export")).content
    assert [line["id"] for line in lines(content) if line["kind"] == "message"] == ["x0.0", "x0.1"]
    assert ids(content) == ["s"]


@pytest.mark.parametrize("user", ["kai", None])
async def test_a_large_session_is_not_held_and_written_like_any_other(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, user: str | None
) -> None:
    await seed(client, "s", *talk("hello", "hi", "and?"), user=user)
    held = (await client.get(f"{API}/export")).content
    monkeypatch.setattr(exporter_module, "MAX_HELD_BYTES", 1)
    told = (await client.get(f"{API}/export")).content
    assert ids(told) == ["s"]
    assert lines(told)[1:] == lines(held)[1:]
    assert ids((await client.get(f"{API}/users/other/export")).content) == []


async def test_of_a_large_session_that_is_changed_meanwhile_the_export_has_no_end(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter_module, "MAX_HELD_BYTES", 1)
    key = SessionKey(TENANT, "s")
    await store.commit(key, chat("x0"))
    real = store.exchanges

    async def exchanges(*asked: Any) -> Page[PlacedExchange]:
        await store.revise(key, Revision(superseded=("x0.0",)))
        return await real(*asked)

    monkeypatch.setattr(store, "exchanges", exchanges)
    response = await client.get(f"{SESSIONS}/s/export")
    assert response.status_code == 503  # nothing of it had been sent yet
    assert (await store.load(key, NEWEST_TURN)).changes == 1


@pytest.mark.parametrize("anew", [False, True])
async def test_of_a_large_session_that_is_deleted_meanwhile_the_export_has_no_end(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    monkeypatch.setattr(exporter_module, "MAX_HELD_BYTES", 1)
    key = SessionKey(TENANT, "s")
    await store.commit(key, chat("x0"))
    real = store.exchanges

    async def exchanges(*asked: Any) -> Page[PlacedExchange]:
        await store.delete(key)
        if anew:
            await store.commit(key, chat("x1", 2000.0))
        return await real(*asked)

    monkeypatch.setattr(store, "exchanges", exchanges)
    response = await client.get(f"{SESSIONS}/s/export")
    assert response.status_code == 503  # nothing of it had been sent yet


async def test_of_a_large_session_no_summary_is_written_of_what_is_said_meanwhile(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter_module, "MAX_HELD_BYTES", 1)
    key = SessionKey(TENANT, "s")
    await store.commit(key, chat("x0"))
    real, looks = store.lines, 0

    async def told(*asked: Any) -> Page[StoredMessage]:
        nonlocal looks
        looks += 1
        page = await real(*asked)
        if looks == 2:  # the first has found that it is large
            await store.commit(key, chat("x1"))
            assert await store.put_summary(key, summary(4), 0, None)
        return page

    content = (await client.get(f"{SESSIONS}/s/export")).content
    monkeypatch.setattr(store, "lines", told)
    meanwhile = (await client.get(f"{SESSIONS}/s/export")).content
    assert len(await store.summaries(key)) == 1
    assert kinds(meanwhile) == kinds(content)


async def test_a_session_that_is_deleted_while_an_export_runs_is_left_out(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await store.commit(SessionKey(TENANT, f"s{number}"), chat("x", at=1000.0 + number))
    real = store.sessions

    async def sessions(*asked: Any) -> Page[Listed]:
        page = await real(*asked)
        await store.delete(SessionKey(TENANT, "s1"))
        return page

    monkeypatch.setattr(store, "sessions", sessions)
    assert ids((await client.get(f"{API}/export")).content) == ["s2", "s0"]


class Failing:
    """Reads of one session that fail so many times."""

    def __init__(self, store: Backend, times: int, error: StoreError) -> None:
        self._read, self._left, self._error = store.lines, times, error
        self.limits: list[int] = []

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        self.limits.append(limit)
        if self._left > 0:
            self._left -= 1
            raise self._error
        return await self._read(key, after, limit)


async def test_a_store_that_is_slow_is_asked_for_less_at_a_time(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("hello", "hi"))
    slow = Failing(store, 2, StoreTimeout("too slow"))
    monkeypatch.setattr(store, "lines", slow.lines)
    assert ids((await client.get(f"{API}/export")).content) == ["s"]
    assert slow.limits == [200, 20, 1, 200]


async def test_a_store_that_fails_before_the_first_byte_is_an_error(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("hello", "hi"))
    monkeypatch.setattr(store, "lines", Failing(store, 100, StoreError("down")).lines)
    response = await client.get(f"{API}/export")
    assert response.status_code == 503
    assert error_of(response)["code"] == "memory_unavailable"


async def test_a_page_of_items_is_held_at_a_time(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        body = {"namespace": ["shared"], "key": f"k{number}", "value": {"n": number}}
        assert (await client.put(f"{API}/store/items", json=body)).status_code == 200
    monkeypatch.setattr(exporter_module, "PAGE", 3)
    content = (await client.get(f"{API}/export")).content
    keys = [line["item"]["key"] for line in lines(content) if line["kind"] == "item"]
    assert keys == [f"k{number}" for number in range(7)]
    assert ids(content) == []
