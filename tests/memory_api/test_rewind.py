"""Going back over the memory API: rewind, and branches made active."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from proxy.memory.archive import Revision
from proxy.memory.model import SessionKey, Work
from proxy.memory.recording.spool import Spool
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, Site, error_of, said, seed, talk
from tests.support.store.commits import chat, draft, record, summary

KEY = SessionKey(digest_of(b"alice"), "s")
URL = f"{SESSIONS}/s/rewind"
FOREVER = 1e12


async def three_turns(client: httpx.AsyncClient) -> list[str]:
    """Ids of u1 a1 u2 a2 u3 a3."""
    created = [*await seed(client, "s", *talk("u1", "a1"))]
    created += await seed(client, "s", *talk("u2", "a2"))
    created += await seed(client, "s", *talk("u3", "a3"))
    return [x["id"] for x in created]


async def rewound(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await client.post(URL, json=fields)
    assert response.status_code == 200, response.text
    session: dict[str, Any] = response.json()
    assert (await client.get(f"{SESSIONS}/s")).json() == session
    return session


async def activated(client: httpx.AsyncClient, message: str) -> dict[str, Any]:
    response = await client.post(f"{SESSIONS}/s/messages/{message}/activate")
    assert response.status_code == 200, response.text
    session: dict[str, Any] = response.json()
    return session


async def log(client: httpx.AsyncClient, state: str = "active") -> str:
    listed = await client.get(f"{SESSIONS}/s/messages", params={"state": state})
    return " ".join(item["message"]["content"] for item in listed.json()["data"])


@pytest.mark.parametrize(("turns", "left"), [(1, "u1 a1 u2 a2"), (2, "u1 a1"), (3, ""), (99, "")])
async def test_turns_are_taken_back_and_stay_in_history(
    client: httpx.AsyncClient, turns: int, left: str
) -> None:
    await three_turns(client)
    session = await rewound(client, turns=turns)
    assert await log(client) == left
    assert session["messages"] == len(left.split())
    assert await log(client, "active,superseded") == "u1 a1 u2 a2 u3 a3"


async def test_a_message_and_all_that_follow_it_are_taken_back(client: httpx.AsyncClient) -> None:
    ids = await three_turns(client)
    await rewound(client, to=ids[3])
    assert await log(client) == "u1 a1 u2"
    await rewound(client, to=ids[0])
    assert await log(client) == ""


async def test_what_follows_is_what_stands_behind_it_and_not_what_was_recorded_later(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await store.commit(KEY, record("x", draft("x", 0), draft("x", 1, "assistant", calls=("c",))))
    await store.commit(KEY, chat("y"))
    await store.commit(KEY, record("z", draft("z", 0, "tool", answers="c", turn="x.0")))
    await rewound(client, to="y.0")
    active = (await client.get(f"{SESSIONS}/s/messages")).json()["data"]
    assert [x["id"] for x in active] == ["x.0", "x.1", "z.0"]


async def test_the_next_request_goes_on_from_there(client: httpx.AsyncClient) -> None:
    await three_turns(client)
    await rewound(client, turns=2)
    body = {"messages": [said("user", "next")]}
    preview = (await client.post(f"{SESSIONS}/s/context", json=body)).json()
    assert [x["content"] for x in preview["messages"]] == ["u1", "a1", "next"]


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        ({}, 400, "turns"),
        ({"turns": 0}, 400, "turns"),
        ({"turns": -1}, 400, "turns"),
        ({"turns": "1"}, 400, "turns"),
        ({"turns": True}, 400, "turns"),
        ({"turns": None}, 400, "turns"),
        ({"turns": 1, "to": "x.0"}, 400, "turns"),
        ({"to": ""}, 400, "to"),
        ({"to": None}, 400, "to"),
        ({"back": 1}, 400, "back"),
        ({"to": "x.0"}, 404, None),
    ],
)
async def test_a_wrong_rewind_is_refused(
    client: httpx.AsyncClient, body: Any, status: int, name: str | None
) -> None:
    await three_turns(client)
    response = await client.post(URL, json=body)
    assert (response.status_code, error_of(response)["param"]) == (status, name)
    assert await log(client) == "u1 a1 u2 a2 u3 a3"


async def test_what_is_superseded_already_is_not_rewound_to(client: httpx.AsyncClient) -> None:
    ids = await three_turns(client)
    await rewound(client, turns=1)
    response = await client.post(URL, json={"to": ids[4]})
    assert (response.status_code, error_of(response)["param"]) == (400, "to")


async def test_a_rewind_for_another_tag_is_refused(client: httpx.AsyncClient) -> None:
    await three_turns(client)
    tag = {"if-match": (await client.get(f"{SESSIONS}/s")).headers["etag"]}
    answers = [await client.post(URL, json={"turns": 1}, headers=tag) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 412]
    assert await log(client) == "u1 a1 u2 a2"


async def test_a_rewind_takes_back_what_the_caller_has_seen_or_nothing(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await three_turns(client)
    tag = (await client.get(f"{SESSIONS}/s")).headers["etag"]
    lines = store.lines

    async def overtaken(*asked: Any) -> Any:
        monkeypatch.undo()
        assert await store.commit(KEY, chat("newer")) == "recorded"
        return await lines(*asked)

    monkeypatch.setattr(store, "lines", overtaken)
    response = await client.post(URL, json={"turns": 1}, headers={"if-match": tag})
    assert response.status_code == 412
    assert (await client.get(f"{SESSIONS}/s")).json()["messages"] == 8


async def test_of_many_rewinds_for_one_tag_one_is_made(client: httpx.AsyncClient) -> None:
    await three_turns(client)
    tag = {"if-match": (await client.get(f"{SESSIONS}/s")).headers["etag"]}
    many = (client.post(URL, json={"turns": 1}, headers=tag) for _ in range(8))
    assert sorted(each.status_code for each in await asyncio.gather(*many)) == [200, *[412] * 7]
    assert await log(client) == "u1 a1 u2 a2"


@pytest.mark.parametrize(("conditional", "status"), [(False, 200), (True, 412)])
async def test_a_branch_is_switched_in_the_log_that_was_compared(
    client: httpx.AsyncClient,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    conditional: bool,
    status: int,
) -> None:
    ids = await three_turns(client)
    await rewound(client, turns=1)
    tag = (await client.get(f"{SESSIONS}/s")).headers["etag"]
    revise = store.revise

    async def overtaken(key: SessionKey, revision: Revision) -> bool:
        monkeypatch.undo()
        assert await store.commit(KEY, chat("newer")) == "recorded"
        return await revise(key, revision)

    monkeypatch.setattr(store, "revise", overtaken)
    headers = {"if-match": tag} if conditional else {}
    response = await client.post(f"{SESSIONS}/s/messages/{ids[5]}/activate", headers=headers)
    assert response.status_code == status


async def test_a_branch_is_not_made_active_for_another_tag(client: httpx.AsyncClient) -> None:
    ids = await three_turns(client)
    stale = {"if-match": (await client.get(f"{SESSIONS}/s")).headers["etag"]}
    await rewound(client, turns=1)
    response = await client.post(f"{SESSIONS}/s/messages/{ids[5]}/activate", headers=stale)
    assert (response.status_code, error_of(response)["code"]) == (412, "precondition_failed")
    assert await log(client) == "u1 a1 u2 a2"


async def test_branches_are_made_active_in_turn(client: httpx.AsyncClient) -> None:
    ids = await three_turns(client)
    await rewound(client, turns=2)
    other = await seed(client, "s", *talk("u4", "a4"))

    session = await activated(client, ids[5])
    assert await log(client) == "u1 a1 u2 a2 u3 a3"
    assert session["messages"] == 6
    await activated(client, other[0]["id"])
    assert await log(client) == "u1 a1 u4 a4"
    await activated(client, ids[2])
    assert await log(client) == "u1 a1 u2 a2"
    assert await log(client, "active,superseded") == "u1 a1 u2 a2 u3 a3 u4 a4"


async def test_an_active_branch_stays_as_it_is(client: httpx.AsyncClient) -> None:
    ids = await three_turns(client)
    before = (await client.get(f"{SESSIONS}/s")).json()
    assert await activated(client, ids[0]) == before
    assert await log(client) == "u1 a1 u2 a2 u3 a3"


@pytest.mark.parametrize("path", ["rewind", "messages/x.0/activate"])
async def test_what_is_not_there_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    response = await client.post(f"{SESSIONS}/s/{path}", json={"to": "x.0"})
    assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
    await seed(client, "s", *talk("a"))
    response = await client.post(f"{SESSIONS}/s/{path}", json={"to": "x.0"})
    assert (response.status_code, error_of(response)["code"]) == (404, "message_not_found")


@pytest.mark.parametrize("path", ["rewind", "messages/{}/activate"])
async def test_another_tenants_session_is_not_found(
    client: httpx.AsyncClient, site: Site, path: str
) -> None:
    ids = await three_turns(client)
    await rewound(client, turns=1)
    async with site.client("eve") as eve:
        url = f"{SESSIONS}/s/{path.format(ids[5])}"
        response = await eve.post(url, json={"turns": 1})
        assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
    assert await log(client) == "u1 a1 u2 a2"


@pytest.mark.parametrize("path", ["rewind", "messages/{}/activate"])
async def test_nothing_is_changed_while_exchanges_wait_in_the_spool(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    ids = await three_turns(client)
    await rewound(client, turns=1)
    monkeypatch.setattr(Spool, "has_waiting", lambda self, asked: asked == KEY)
    response = await client.post(f"{SESSIONS}/s/{path.format(ids[5])}", json={"turns": 1})
    assert (response.status_code, error_of(response)["code"]) == (503, "memory_unavailable")
    assert await log(client) == "u1 a1 u2 a2"


# Summaries of what has changed; what asks for them anew: see ``test_revising``


async def test_a_summary_of_what_was_taken_back_is_dropped(
    client: httpx.AsyncClient, store: Backend
) -> None:
    ids = await three_turns(client)
    assert await store.put_summary(KEY, summary(3, "Turn 1.", seen=6), 0, None)
    assert await store.put_summary(KEY, summary(5, "Turns 1 and 2.", seen=6), 1, None)
    assert (await rewound(client, turns=1))["summary"]["text"] == "Turns 1 and 2."
    assert (await rewound(client, turns=1))["summary"]["text"] == "Turn 1."
    assert (await activated(client, ids[2]))["summary"]["text"] == "Turn 1."
    assert (await rewound(client, turns=2))["summary"] is None


async def waiting(store: Backend) -> list[Work]:
    return [work for work in await store.waiting(FOREVER, 10) if work.session == "s"]


async def test_no_summary_is_asked_for_where_none_are_made(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await three_turns(client)
    assert await store.put_summary(KEY, summary(5, "Turns 1 and 2.", seen=6), 0, None)
    await rewound(client, turns=2)
    assert not await waiting(store)
