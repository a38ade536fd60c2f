"""What is logged of requests to the memory API, and what never is."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect

from proxy.logs import hashed
from proxy.memory.archive import SessionArchive
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.portable.detection import DETECTION_BYTES
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, seed, talk

ALICE = digest_of(b"alice")
USERS = "/memory/v1/users"


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "proxy")


def lines(caplog: pytest.LogCaptureFixture, logger: str) -> list[dict[str, Any]]:
    """What a logger was told, with the event."""
    return [
        {"event": record.message, **vars(record)["fields"]}
        for record in caplog.records
        if record.name == logger
    ]


async def test_a_request_is_logged_by_what_it_is_for_and_its_ids_as_hashes(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await client.get(f"{SESSIONS}/my%2Ddiary/messages?query=secret")
    (line,) = lines(caplog, "proxy.access")
    assert line["path"] == "/memory/v1/sessions/{session}/messages"
    assert line["session"] == hashed("my-diary")
    assert line["tenant"] == hashed(ALICE)
    assert "by" not in line
    assert not any(word in str(line) for word in ("diary", "secret", "alice", ALICE))


async def test_what_the_administrator_does_is_told_apart(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async with site.client(ADMIN_KEY) as admin:
        await admin.get(f"{USERS}/kim", params={"tenant": ALICE})
    (line,) = lines(caplog, "proxy.access")
    assert (line["by"], line["tenant"], line["user"]) == ("admin", hashed(ALICE), hashed("kim"))


async def test_who_is_not_let_in_is_nobody_in_the_log(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async with site.client(peer="203.0.113.7") as stranger:
        assert (await stranger.get(SESSIONS)).status_code == 401
    (line,) = lines(caplog, "proxy.access")
    assert line["status"] == 401
    assert not {"by", "tenant"} & line.keys()


async def test_an_erasure_is_logged_with_counts_and_without_names(
    client: httpx.AsyncClient, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    await seed(client, "s-1", *talk("hello", "hi"), user="kim")
    async with site.client(ADMIN_KEY) as admin:
        await admin.delete(f"{USERS}/kim", params={"tenant": ALICE})
    (line,) = lines(caplog, "proxy.audit")
    who = {"by": "admin", "tenant": hashed(ALICE), "user": hashed("kim")}
    counts = {"sessions": 1, "messages": 2, "memories": 0, "items": 0}
    assert line == {"event": "erased", **who, **counts}


async def test_a_session_that_its_owner_erases_is_logged_and_a_dry_run_is_not(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await seed(client, "s-1", *talk("hello", "hi"))
    await client.delete(f"{SESSIONS}/s-1?dry_run=true")
    assert lines(caplog, "proxy.audit") == []
    await client.delete(f"{SESSIONS}/s-1")
    (line,) = lines(caplog, "proxy.audit")
    assert (line["event"], line["session"], line["messages"]) == ("erased", hashed("s-1"), 2)
    assert "by" not in line


@pytest.mark.parametrize("path", [f"{USERS}/kim", f"{SESSIONS}/s-1"])
async def test_what_was_erased_before_the_store_failed_is_logged_as_unfinished(
    client: httpx.AsyncClient,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    path: str,
) -> None:
    for session in ("s-1", "s-2"):
        await seed(client, session, *talk("hello", "hi"), user="kim")
    delete, gone = store.delete, 0

    async def fails(key: SessionKey) -> bool:
        nonlocal gone
        gone += 1
        if gone > 1:
            raise StoreError("away")
        return await delete(key)

    with monkeypatch.context() as away:
        away.setattr(store, "delete", fails)
        away.setattr(store, "purge_files", partial(fails, SessionKey(ALICE, "")))
        assert (await client.delete(path)).status_code == 503
        (line,) = lines(caplog, "proxy.audit")
        assert (line["event"], line["sessions"], line["messages"]) == ("erased", 1, 2)
        assert line["unfinished"] is True
        assert (await client.delete(path)).status_code == 503
    assert len(lines(caplog, "proxy.audit")) == 1
    assert (await client.delete(f"{USERS}/kim")).status_code == 200
    assert "unfinished" not in lines(caplog, "proxy.audit")[-1]


async def test_an_import_is_logged_with_counts(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await seed(client, "s-1", *talk("hello", "hi"))
    exported = (await client.get("/memory/v1/export")).content
    await client.delete(f"{SESSIONS}/s-1")
    answer = await client.post("/memory/v1/import", content=exported)
    assert answer.status_code == 200, answer.text
    (_, line) = lines(caplog, "proxy.audit")
    counts = {"sessions": 1, "messages": 2, "memories": 0}
    assert line == {"event": "imported", "tenant": hashed(ALICE), **counts}
    for query in ("", "?dry_run=true"):
        await client.post(f"/memory/v1/import{query}", content=exported)
    assert len(lines(caplog, "proxy.audit")) == 2


@pytest.mark.parametrize("how", ["broken", "store", "gone"])
async def test_an_import_that_ends_early_is_logged_with_what_it_put(
    client: httpx.AsyncClient,
    store: Backend,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    for name in ("one", "two"):
        await seed(client, name, *talk("hello" * DETECTION_BYTES, "hi"))
    exported = (await client.get("/memory/v1/export")).content
    for name in ("one", "two"):
        await client.delete(f"{SESSIONS}/{name}")
    caplog.clear()
    first, real = exported.index(b'{"kind":"session","id":"one"'), store.restore

    async def restore(key: SessionKey, archived: SessionArchive, since: float) -> bool:
        if how == "store" and key.session == "one":
            raise StoreError("gone")
        return await real(key, archived, since)

    async def body() -> AsyncIterator[bytes]:
        yield exported[:first]
        if how == "gone":
            raise ClientDisconnect
        yield b"{broken" if how == "broken" else exported[first:]

    monkeypatch.setattr(store, "restore", restore)
    if how == "gone":
        with pytest.raises(AssertionError):  # of httpx: nobody is answered
            await client.post("/memory/v1/import", content=body())
    else:
        answer = await client.post("/memory/v1/import", content=body())
        assert answer.status_code == {"broken": 400, "store": 503}[how]
    (line,) = lines(caplog, "proxy.audit")
    assert (line["event"], line["sessions"], line["messages"]) == ("imported", 1, 2)
