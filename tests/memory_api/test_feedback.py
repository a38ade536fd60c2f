"""Feedback on messages over the memory API."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from proxy.memory.items import ItemOwner
from proxy.settings import Settings
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of, seed, talk

XYZZY = "xyzzy"
QUESTION, ANSWER = "How do I sort a list?", "With sorted()."


@pytest.fixture
def settings() -> Settings:
    return Settings.model_validate(
        {
            "server": {"admin_key": ADMIN_KEY},
            "store": {"timeout": 5},
            "memory": {"episodes": {"enabled": True}},
        }
    )


@pytest.fixture
async def path(client: httpx.AsyncClient) -> str:
    """Where the feedback on an answer is."""
    created = await seed(client, "s", *talk(QUESTION, ANSWER), user="kai")
    return f"{SESSIONS}/s/messages/{created[1]['id']}/feedback"


async def test_what_is_said_of_an_answer_is_kept_and_the_last_word_counts(
    client: httpx.AsyncClient, path: str
) -> None:
    response = await client.get(path)
    assert (response.status_code, error_of(response)["code"]) == (404, "feedback_not_found")
    first = await client.post(path, json={"score": 1, "comment": " Good! "})
    assert first.status_code == 200
    body = first.json()
    assert (body["object"], body["session_id"]) == ("message.feedback", "s")
    assert path.split("/")[-2] == body["message_id"]
    assert body["message_id"].startswith(body["exchange_id"])
    assert (body["score"], body["comment"]) == (1, "Good!") and body["created_at"] > 0
    assert (await client.get(path)).json() == body
    last = await client.post(path, json={"score": -1})
    assert (last.json()["score"], last.json()["comment"]) == (-1, None)
    assert (await client.get(path)).json() == last.json()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"nonsense", None),
        (b"[]", None),
        (b"{}", "score"),
        (b'{"score": 2}', "score"),
        (b'{"score": "1"}', "score"),
        (b'{"score": 0.5}', "score"),
        (b'{"score": true}', "score"),
        (b'{"score": null}', "score"),
        (b'{"score": 1, "comment": 7}', "comment"),
        (b'{"score": 1, "comment": "' + b"x" * 2001 + b'"}', "comment"),
    ],
)
async def test_wrong_feedback_is_refused_by_name(
    client: httpx.AsyncClient, path: str, body: bytes, param: str | None
) -> None:
    response = await client.post(path, content=body)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["code"], error["param"]) == ("invalid_value", param)
    assert (await client.get(path)).status_code == 404


async def test_a_comment_of_the_longest_length_is_taken(
    client: httpx.AsyncClient, path: str
) -> None:
    response = await client.post(path, json={"score": 0, "comment": "x" * 2000})
    assert response.status_code == 200 and len(response.json()["comment"]) == 2000


@pytest.mark.parametrize("message", ["im_x.0", "x", "%00", "%ff", "..%2F"])
async def test_of_a_message_that_is_not_there_nothing_can_be_said(
    client: httpx.AsyncClient, path: str, message: str
) -> None:
    for response in (
        await client.post(f"{SESSIONS}/s/messages/{message}/feedback", json={"score": 1}),
        await client.get(f"{SESSIONS}/s/messages/{message}/feedback"),
    ):
        assert (response.status_code, error_of(response)["code"]) == (404, "message_not_found")
    response = await client.post(path.replace("/s/", "/t/"), json={"score": 1})
    assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")


async def test_another_tenant_can_say_nothing_of_it(site: Site, path: str) -> None:
    async with site.client("bob") as other:
        assert (await other.post(path, json={"score": 1})).status_code == 404
        assert (await other.get(path)).status_code == 404
    async with site.client(peer="192.0.2.1") as stranger:
        assert (await stranger.post(path, json={"score": 1})).status_code == 401


async def test_a_good_answer_is_an_example_from_then_on(
    site: Site, client: httpx.AsyncClient, path: str
) -> None:
    async def examples() -> list[Any]:
        owner = ItemOwner(digest_of(b"alice"), "kai")
        return list((await site.store.items(owner, ("users", "kai", "episodes"), None, 9)).items)

    await client.post(path, json={"score": 1})
    (episode,) = await examples()
    assert QUESTION.encode() in bytes(episode.value) and ANSWER.encode() in bytes(episode.value)
    await client.post(path, json={"score": 0})
    assert await examples() == []


async def test_a_deleted_session_takes_what_repeats_it_with_it(
    site: Site, client: httpx.AsyncClient, path: str
) -> None:
    await client.post(path, json={"score": 1, "comment": XYZZY})
    assert (await client.delete(f"{SESSIONS}/s")).status_code == 200
    left = (await site.store.items(ItemOwner(digest_of(b"alice"), "kai"), (), None, 100)).items
    texts = (XYZZY, ANSWER, QUESTION)
    assert not [item for item in left for text in texts if text.encode() in bytes(item.value)]
    assert (await client.delete(f"{SESSIONS}/s")).status_code == 404


async def test_methods_that_are_not_there_are_refused(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.delete(path)).status_code == 405
