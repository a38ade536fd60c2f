"""What follows a change by hand: a summary that it has dropped is asked for anew."""

from __future__ import annotations

import httpx
import pytest

from proxy.gateway.tenancy import digest_of
from proxy.memory.model import SessionKey
from proxy.settings import Settings
from proxy.stores.backend import Backend
from tests.support.commits import summary
from tests.support.memory_api import ADMIN_KEY, SESSIONS, seed, talk

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
