"""Erasing over the memory API: receipts, dry runs, and who may."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import httpx
import msgspec
import pytest

from proxy.memory.erasure import MARK_SECONDS
from proxy.memory.model import SessionKey
from proxy.memory.recording.spool import SpoolError
from proxy.memory.store import StoreInUse, StoreTimeout
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import (
    ADMIN_KEY,
    SESSIONS,
    Site,
    error_of,
    open_site,
    said,
    seed,
    talk,
)
from tests.support.store.commits import chat
from tests.support.store.recording import deferred
from tests.support.store.recording import said as uttered

ALICE = digest_of(b"alice")
USERS = "/memory/v1/users"
NOTHING = {
    "sessions": 0,
    "messages": 0,
    "exchanges": 0,
    "summaries": 0,
    "memories": {"fact": 0, "profile": 0, "episode": 0},
    "items": 0,
    "feedback": 0,
    "proposals": 0,
    "index_passages": 0,
    "spooled": 0,
}


async def erased(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    response = await client.delete(path)
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    receipt: dict[str, Any] = response.json()
    return receipt


async def known(client: httpx.AsyncClient, user: str) -> None:
    """Somebody with two sessions, a fact, and an item."""
    for number in range(2):
        await seed(client, f"{user}-{number}", *talk("hello", "hi"), user=user)
    await client.post(f"{USERS}/{user}/memories", json={"text": "They like tea."})
    place = {"namespace": ["users", user, "notes"], "key": "k"}
    await client.put("/memory/v1/store/items", json={**place, "value": {}})


async def nothing() -> None:
    """What waits stays where it is."""


async def wait_in_spool(site: Site, session: str, user: str | None) -> None:
    id = f"x-{session}"
    made = msgspec.json.encode(deferred(id, uttered("hello"), user=user))
    await asyncio.to_thread(site.spool.put, SessionKey(ALICE, session), id, "deferred", made)


async def test_a_receipt_says_what_was_erased_and_until_when_that_is_kept_in_mind(
    client: httpx.AsyncClient,
) -> None:
    await known(client, "kai")
    began = time.time()
    receipt = await erased(client, f"{USERS}/kai")
    at = receipt["erased_at"]
    assert began <= at <= time.time() and receipt["marked_until"] == at + MARK_SECONDS
    passages = receipt["counts"].pop("index_passages")
    assert 0 <= passages <= 4  # they are indexed a moment later
    assert receipt == {
        "object": "erasure",
        "user_id": "kai",
        "dry_run": False,
        "erased_at": at,
        "counts": {
            **{name: count for name, count in NOTHING.items() if name != "index_passages"},
            "sessions": 2,
            "messages": 4,
            "exchanges": 2,
            "memories": {"fact": 1, "profile": 0, "episode": 0},
            "items": 1,
        },
        "marked_until": receipt["marked_until"],
    }


async def test_of_a_person_nobody_knows_nothing_is_erased(client: httpx.AsyncClient) -> None:
    receipt = await erased(client, f"{USERS}/nobody")
    assert receipt["counts"] == NOTHING and receipt["erased_at"] is not None
    assert (await erased(client, f"{USERS}/nobody?dry_run=true"))["counts"] == NOTHING


async def test_a_dry_run_counts_the_same_and_changes_nothing(
    client: httpx.AsyncClient, store: Backend, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await known(client, "kai")
    monkeypatch.setattr(site.recorder, "replay", nothing)
    await wait_in_spool(site, "kai-0", None)
    before = [(await client.get(f"{SESSIONS}/kai-{n}")).content for n in range(2)]
    told = await erased(client, f"{USERS}/kai?dry_run=true")
    assert (told["dry_run"], told["erased_at"], told["marked_until"]) == (True, None, None)
    assert [(await client.get(f"{SESSIONS}/kai-{n}")).content for n in range(2)] == before
    assert await asyncio.to_thread(site.spool.depth) == (1, 0)
    for key, session in [("x", "kai-0"), ("y", "new")]:  # no mark either
        late = chat(key, user="kai")
        assert await store.commit(SessionKey(ALICE, session), late) == "recorded"
    assert told["counts"]["spooled"] == 1
    real = await erased(client, f"{USERS}/kai")
    assert real["counts"]["sessions"] == told["counts"]["sessions"] + 1


async def test_erasing_a_session_says_what_it_was(client: httpx.AsyncClient) -> None:
    await known(client, "kai")
    path = f"{SESSIONS}/kai-0"
    told = await erased(client, f"{path}?dry_run=true")
    assert (told["object"], told["id"], told["deleted"]) == ("session.deleted", "kai-0", False)
    receipt = await erased(client, path)
    assert (receipt["object"], receipt["id"], receipt["deleted"]) == (
        "session.deleted",
        "kai-0",
        True,
    )
    assert receipt["session_id"] == "kai-0" and "user_id" not in receipt
    counts = {**receipt["counts"], "index_passages": 0}
    assert counts == {**NOTHING, "sessions": 1, "messages": 2, "exchanges": 1}
    assert (await client.get(f"{SESSIONS}/kai-1")).status_code == 200
    for query in ("", "?dry_run=true"):
        gone = await client.delete(path + query)
        assert gone.status_code == 404 and error_of(gone)["code"] == "session_not_found"


async def test_a_session_with_spooled_exchanges_is_erased_with_them(
    client: httpx.AsyncClient, site: Site, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.recorder, "replay", nothing)
    await seed(client, "s", *talk("hello"), user="kai")
    for session in ("s", "only-spooled", "other"):
        await wait_in_spool(site, session, "kai")
    for session in ("s", "only-spooled"):
        receipt = await erased(client, f"{SESSIONS}/{session}")
        assert receipt["counts"]["spooled"] == 1
        late = chat(f"late-{session}", user="kai")
        assert await store.commit(SessionKey(ALICE, session), late) == "erased"
    left = await asyncio.to_thread(site.spool.entries)
    assert [entry.key.session for entry in left] == ["other"]


async def test_an_erased_session_can_be_begun_anew(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"), user="kai")
    await erased(client, f"{SESSIONS}/s")
    await seed(client, "s", said("user", "again"), user="eve")
    assert (await client.get(f"{SESSIONS}/s")).json()["user_id"] == "eve"
    await erased(client, f"{USERS}/eve")
    await seed(client, "s", said("user", "and again"), user="eve")
    assert (await client.get(f"{SESSIONS}/s")).json()["messages"] == 1


@pytest.mark.parametrize("path", [f"{SESSIONS}/s", f"{USERS}/kai"])
@pytest.mark.parametrize("name", ["dryrun", "dry-run", "dryRun"])
async def test_a_dry_run_that_is_misspelt_erases_nothing(
    client: httpx.AsyncClient, path: str, name: str
) -> None:
    await seed(client, "s", *talk("hello"), user="kai")
    response = await client.delete(f"{path}?{name}=true")
    assert response.status_code == 400 and error_of(response)["param"] == name
    assert error_of(response)["message"] == f"The query's {name} is none of: dry_run, tenant."
    assert (await client.get(f"{SESSIONS}/s")).status_code == 200


@pytest.mark.parametrize("path", [f"{SESSIONS}/s", f"{USERS}/kai"])
@pytest.mark.parametrize("said", ["yes", "1", "", "True"])
async def test_a_dry_run_is_asked_for_in_so_many_words(
    client: httpx.AsyncClient, path: str, said: str
) -> None:
    await seed(client, "s", *talk("hello"), user="kai")
    response = await client.delete(f"{path}?dry_run={said}")
    assert response.status_code == 400 and error_of(response)["param"] == "dry_run"
    assert (await client.get(f"{SESSIONS}/s")).status_code == 200


async def test_without_its_spool_nothing_is_said_to_be_erased(
    client: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("hello"), user="kai")

    def fails(*asked: object) -> int:
        raise SpoolError("others use the spool all the while")

    with monkeypatch.context() as patch:
        patch.setattr(site.spool, "erase", fails)
        for path in (f"{SESSIONS}/s", f"{USERS}/kai"):
            response = await client.delete(path)
            assert response.status_code == 503
            assert error_of(response)["code"] == "memory_unavailable"
    assert (await erased(client, f"{USERS}/kai"))["erased_at"] is not None
    assert (await client.get(f"{SESSIONS}/s")).status_code == 404


async def test_while_the_text_is_in_a_file_the_erasure_is_to_be_repeated(
    client: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await known(client, "kai")

    async def fails() -> None:
        raise StoreInUse

    with monkeypatch.context() as patch:
        patch.setattr(site.store, "purge_files", fails)
        for path in (f"{SESSIONS}/kai-0", f"{SESSIONS}/kai-0", f"{USERS}/kai"):
            response = await client.delete(path)
            assert response.status_code == 503 and "retry-after" in response.headers
            error = error_of(response)
            assert error["code"] == "memory_unavailable" and "Repeat" in error["message"]
    assert (await erased(client, f"{USERS}/kai"))["counts"] == NOTHING
    gone = await client.delete(f"{SESSIONS}/kai-0")
    assert gone.status_code == 404 and error_of(gone)["code"] == "session_not_found"


class Late:
    """A store that answers nobody in time who has no more of it than a chat."""

    def __init__(self, store: Backend) -> None:
        self._store, self.late = store, False

    def __getattr__(self, name: str) -> Any:
        if self.late and name not in ("peek", "session"):
            raise StoreTimeout(name)
        return getattr(self._store, name)


async def test_a_store_that_is_late_ends_no_export_erasure_or_import(
    settings: Settings, store: Backend, tmp_path: Path
) -> None:
    late = Late(store)
    async with (
        open_site(settings, cast(Backend, late), tmp_path, long_timeout_store=store) as site,
        site.client("alice") as client,
    ):
        await known(client, "kai")
        saved = (await client.get("/memory/v1/export?user=kai")).content
        late.late = True
        again = (await client.get("/memory/v1/export?user=kai")).content
        assert again.splitlines()[1:] == saved.splitlines()[1:]
        assert (await erased(client, f"{USERS}/kai?dry_run=true"))["counts"]["sessions"] == 2
        assert (await erased(client, f"{SESSIONS}/kai-0"))["counts"]["sessions"] == 1
        assert (await erased(client, f"{USERS}/kai"))["counts"]["memories"]["fact"] == 1
        answer = await client.post("/memory/v1/import", content=saved)
        assert answer.json()["sessions"] == 2, answer.text
        assert (await erased(client, f"{USERS}/kai"))["counts"]["sessions"] == 2


async def test_a_store_that_is_away_is_found_before_it_is_asked_with_patience(
    client: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def away(key: SessionKey) -> None:
        raise StoreTimeout("no answer")

    async def patiently(tenant: str, user: str) -> Sequence[str]:
        asked.append(user)
        return ()

    monkeypatch.setattr(site.store, "repair_session_list", patiently)
    with monkeypatch.context() as patch:
        patch.setattr(site.store, "peek", away)
        for query in ("", "?dry_run=true"):
            response = await client.delete(f"{USERS}/kai{query}")
            assert response.status_code == 503
    assert asked == []
    await erased(client, f"{USERS}/kai")
    assert asked == ["kai"]


async def test_nobody_erases_what_is_not_theirs(client: httpx.AsyncClient, site: Site) -> None:
    await known(client, "kai")
    async with site.client("bob") as bob:
        assert (await bob.delete(f"{SESSIONS}/kai-0")).status_code == 404
        assert (await erased(bob, f"{USERS}/kai"))["counts"] == NOTHING
        assert (await bob.delete(f"{USERS}/kai?tenant={ALICE}")).status_code == 403
    assert (await client.get(f"{SESSIONS}/kai-0")).status_code == 200
    async with site.client(ADMIN_KEY) as admin:
        assert (await admin.delete(f"{USERS}/kai")).status_code == 400
        assert (await erased(admin, f"{USERS}/kai?tenant={ALICE}"))["counts"]["sessions"] == 2


@pytest.mark.parametrize("user", ["%20", "a%00", "%c3%a9", "x" * 257, "%2E"])
async def test_an_id_that_nobody_can_have_is_refused(client: httpx.AsyncClient, user: str) -> None:
    response = await client.delete(f"{USERS}/{user}")
    assert response.status_code == 400 and error_of(response)["code"] == "invalid_user_id"


@pytest.mark.parametrize("path", [f"{SESSIONS}/s", f"{USERS}/kai"])
async def test_what_has_changed_is_not_erased_under_a_condition(
    client: httpx.AsyncClient, path: str
) -> None:
    await seed(client, "s", *talk("hello"), user="kai")
    tag = (await client.get(path)).headers["etag"]
    await seed(client, "s", *talk("more"))
    response = await client.delete(path, headers={"if-match": tag})
    assert response.status_code == 412
    assert (await client.get(f"{SESSIONS}/s")).json()["messages"] == 2
    tag = (await client.get(path)).headers["etag"]
    assert (await client.delete(path, headers={"if-match": tag})).status_code == 200
    assert (await client.delete(path, headers={"if-match": "*"})).status_code == 412
