"""What follows a change by hand: a summary that it has dropped is asked for anew."""

from __future__ import annotations

import time

import httpx
import pytest

from proxy.chat.message import typed_text_of
from proxy.memory.archive import Revision
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import IndexBatch, Owner, owner_of
from proxy.recall.indexing.indexer import Indexer, passages_of
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, seed, talk
from tests.support.store.commits import summary

KEY = SessionKey(digest_of(b"alice"), "s")
URL = f"{SESSIONS}/s/messages"
FOREVER = 1e12


@pytest.fixture
def settings() -> Settings:
    return Settings.model_validate(
        {
            "server": {"admin_key": ADMIN_KEY},
            "store": {"timeout": 5},
            "memory": {"summary": {"enabled": True, "model": "m"}},
        }
    )


async def clear(store: Backend) -> None:
    """Forget what importing has asked for."""
    for work in await store.waiting(FOREVER, 10):
        claimed = await store.claim(work, FOREVER, FOREVER + 1)
        assert claimed is not None
        await store.finish(claimed, FOREVER)


async def asked(store: Backend) -> list[tuple[str, str]]:
    return [(work.session, work.kind) for work in await store.waiting(FOREVER, 10)]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("PATCH", "messages/{}", {"content": "other"}, id="edited"),
        pytest.param("DELETE", "messages/{}", None, id="removed"),
        pytest.param("POST", "rewind", {"to": "{}"}, id="rewound"),
    ],
)
async def test_a_summary_of_what_has_changed_is_asked_for_anew(
    client: httpx.AsyncClient, store: Backend, method: str, path: str, body: dict[str, str] | None
) -> None:
    created = await seed(client, "s", *talk("u1", "a1", "u2", "a2"))
    assert await store.put_summary(KEY, summary(3, "Turn 1.", seen=4), 0, None)
    await clear(store)

    for covered in (3, 0):
        id = created[covered]["id"]
        filled = {name: text.format(id) for name, text in body.items()} if body else None
        response = await client.request(method, f"{SESSIONS}/s/{path.format(id)}", json=filled)
        assert response.status_code == 200, response.text
        session = (await client.get(f"{SESSIONS}/s")).json()
        if covered:
            assert session["summary"]["text"] == "Turn 1."
            assert not await asked(store)
    assert session["summary"] is None
    assert await asked(store) == [("s", "summary")]


# Vectors

MODEL, SIZE = "m/4", 4
CHANGES = [("PATCH", {"content": "other"}), ("DELETE", None)]


async def embed(store: Backend, user: str | None) -> Owner:
    """Give each message of the session a vector in the index of its owner."""
    owner, indexer = owner_of(KEY, user), Indexer(store, store, typed_text_of, time.time)
    await indexer.index_session(KEY)
    numbers = await passages_of(store, owner, KEY.session)
    await store.put_vectors(owner, MODEL, SIZE, dict.fromkeys(numbers, b"\1" * SIZE))
    await indexer.update(owner, lambda state: state.with_vectors(MODEL, len(numbers)))
    return owner


async def embedded(store: Backend, owner: Owner) -> list[bool]:
    """Which of the first two passages have a vector."""
    data = (await store.vectors(owner, MODEL, SIZE, 0, 2)).ljust(2 * SIZE, b"\0")
    return [any(data[:SIZE]), any(data[SIZE:])]


@pytest.mark.parametrize(("method", "body"), CHANGES)
async def test_no_vector_tells_what_a_message_said(
    client: httpx.AsyncClient, store: Backend, method: str, body: dict[str, str] | None
) -> None:
    """Neither in its person's index nor in that from before the session was theirs."""
    created = await seed(client, "s", *talk("u1", "a1"))
    owners = [await embed(store, None)]
    await seed(client, "s", *talk("u2"), user="kai")
    owners.append(await embed(store, "kai"))
    for owner in owners:
        assert await embedded(store, owner) == [True, True]
    await client.request(method, f"{URL}/{created[0]['id']}", json=body)
    for owner in owners:
        assert await embedded(store, owner) == [False, True]


@pytest.mark.parametrize(("method", "body"), CHANGES)
async def test_no_vector_of_an_index_of_another_format_tells_what_a_message_said(
    client: httpx.AsyncClient, store: Backend, method: str, body: dict[str, str] | None
) -> None:
    """Which of them are the message's nobody can tell."""
    created = await seed(client, "s", *talk("u1", "a1"), user="kai")
    owner = await embed(store, "kai")
    lookup = await store.lookup(owner, (), 0)
    assert await store.write(owner, IndexBatch(lookup.revision, b"[999]", "s", None, first=2))
    await client.request(method, f"{URL}/{created[0]['id']}", json=body)
    assert await embedded(store, owner) == [False, False]


@pytest.mark.parametrize(("method", "body"), CHANGES)
@pytest.mark.parametrize("fails", [True, False])
async def test_its_vector_goes_before_the_message_and_again_behind_it(
    client: httpx.AsyncClient,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    body: dict[str, str] | None,
    fails: bool,
) -> None:
    created = await seed(client, "s", *talk("u1", "a1"), user="kai")
    owner, revise = await embed(store, "kai"), store.revise
    before: list[bool] = []

    async def meanwhile(key: SessionKey, revision: Revision) -> bool:
        """Somebody embeds what is about to go."""
        before.extend(await embedded(store, owner))
        if fails:
            raise StoreError("connection refused")
        await store.put_vectors(owner, MODEL, SIZE, {0: b"\1" * SIZE})
        return await revise(key, revision)

    monkeypatch.setattr(store, "revise", meanwhile)
    response = await client.request(method, f"{URL}/{created[0]['id']}", json=body)
    assert response.status_code == (503 if fails else 200)
    assert before == await embedded(store, owner) == [False, True]


async def test_a_message_that_is_rewound_keeps_its_vector(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *talk("u1", "a1"), user="kai")
    owner = await embed(store, "kai")
    await client.post(f"{SESSIONS}/s/rewind", json={"turns": 1})
    assert await embedded(store, owner) == [True, True]
