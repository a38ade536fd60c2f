"""Half a surrogate pair: JSON can say it with an escape, UTF-8 cannot."""

from __future__ import annotations

import httpx
import pytest

from tests.support.memory_api import SESSIONS, error_of, seed, talk

API = "/memory/v1"
URL = f"{SESSIONS}/s"
HALF = rb"\ud83d"
SYSTEM = b'{"role":"system","content":"half \\ud83d"}'
LIKE_OPENAI = {"message", "type", "param", "code"}


async def everything_works(client: httpx.AsyncClient) -> None:
    """The session, and the list that it is in."""
    assert (await client.get(URL)).json()["system"]["content"] == "half \ud83d"
    assert len((await client.get(SESSIONS)).json()["data"]) == 2
    assert (await client.patch(URL, json={"title": "x"})).status_code == 200
    assert (await client.post(f"{URL}/fork", json={"id": "t"})).status_code == 201
    assert (await client.post(f"{URL}/rewind", json={"turns": 1})).status_code == 200
    assert (await client.delete(URL)).status_code == 200


async def test_a_session_with_it_in_an_imported_system_message(client: httpx.AsyncClient) -> None:
    await seed(client, "other", *talk("hello"))
    body = b'{"messages":[' + SYSTEM + b',{"role":"user","content":"x"}]}'
    assert (await client.post(f"{URL}/messages", content=body)).status_code == 200
    await everything_works(client)


async def test_a_session_with_it_in_a_system_message_that_was_put(
    client: httpx.AsyncClient,
) -> None:
    for session in ("s", "other"):
        await seed(client, session, *talk("hello"))
    changed = await client.patch(URL, content=b'{"system":' + SYSTEM + b"}")
    assert changed.status_code == 200
    assert changed.json()["system_messages"] == [{"role": "system", "content": "half \ud83d"}]
    await everything_works(client)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("PATCH", "/sessions/s", b'{"H":1}', id="a field of a session"),
        pytest.param("PATCH", "/sessions/s", b'{"summary":{"H":1}}', id="a field of a summary"),
        pytest.param("POST", "/users/kai/memories", b'{"H":1}', id="a field of a memory"),
        pytest.param("POST", "/sessions/s/fork", b'{"id":"t","H":1}', id="a field of a fork"),
        pytest.param("POST", "/sessions/s/rewind", b'{"H":1}', id="a field of a rewind"),
        pytest.param(
            "POST", "/store/items/search", b'{"filter":{"a":{"$H":1}}}', id="a comparison"
        ),
    ],
)
async def test_a_refusal_that_repeats_it_is_like_any_other(
    client: httpx.AsyncClient, method: str, path: str, body: bytes
) -> None:
    await seed(client, "s", *talk("hello"))
    refused = await client.request(method, API + path, content=body.replace(b"H", HALF))
    assert refused.status_code == 400
    assert set(error_of(refused)) == LIKE_OPENAI
