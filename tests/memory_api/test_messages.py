"""Messages over the memory API: listed, and imported."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from proxy.memory.model import Commit, Entry, LoadOptions, Outcome, SessionKey
from proxy.memory.store import StoreTimeout
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, error_of, said, seed, talk
from tests.support.store.commits import chat

KEY = SessionKey(digest_of(b"alice"), "s")
URL = f"{SESSIONS}/s/messages"
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


async def log_of(store: Backend) -> tuple[Entry, ...]:
    return (await store.load(KEY, LoadOptions("", whole=True))).log


async def test_an_import_answers_what_the_list_shows(client: httpx.AsyncClient) -> None:
    messages = [*talk("hello", "hi"), said("user", "again", name="Ann", extra={"kept": [1.0]})]

    created = await seed(client, "s", *messages)

    listed = (await client.get(URL)).json()
    assert listed == {"object": "list", "data": created, "has_more": False, "next": None}
    assert [item["message"] for item in created] == messages
    first = created[0]
    exchange = first["exchange_id"]
    assert abs(first.pop("created_at") - time.time()) < 60
    assert first.pop("tokens") > 0
    assert first == {
        "object": "session.message",
        "id": f"{exchange}.0",
        "seq": 1,
        "exchange_id": exchange,
        "message": messages[0],
        "state": "active",
        "origin": "import",
        "incomplete": False,
    }
    assert [item["seq"] for item in created] == [1, 2, 3]


async def test_an_import_is_one_exchange(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("hello", "hi"))

    response = await client.get(f"{SESSIONS}/s/exchanges/{created[0]['exchange_id']}")

    exchange = response.json()
    assert exchange["message_ids"] == [item["id"] for item in created]
    assert exchange["memory"]["status"] == "off"
    assert exchange["memory"]["reason"] == "import"
    assert exchange["usage"] is None


async def test_imported_text_comes_back_byte_for_byte(client: httpx.AsyncClient) -> None:
    raw = rb'{ "content" : "\u00e4 \ud83d \u2028 1",  "role":"user", "x": 1.50 }'
    response = await client.post(URL, content=b'{"messages": [' + raw + b"]}")
    assert response.status_code == 200
    assert b'"message":' + raw in response.content
    assert b'"message":' + raw in (await client.get(URL)).content


async def test_user_messages_open_turns_and_others_join_them(
    client: httpx.AsyncClient, store: Backend
) -> None:
    calling = said("assistant", "", tool_calls=[CALL])
    result = said("tool", "42", tool_call_id="c1")
    await seed(client, "s", said("assistant", "Welcome."), *talk("a"), calling, result)
    await seed(client, "s", said("assistant", "done"), *talk("b", "c"))

    turns = [entry.position.turn for entry in await log_of(store)]

    assert turns == [1, 2, 2, 2, 2, 6, 6]


async def test_imported_answers_count_as_an_upstreams(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *talk("q"), said("assistant", "", tool_calls=[CALL]))
    await seed(client, "s", said("tool", "42", tool_call_id="c1"), said("assistant", " "))

    user, call, result, empty = [entry.card for entry in await log_of(store)]

    assert [card.evidence for card in (user, call, result, empty)] == [False, True, False, True]
    assert (call.calls, result.answers) == (("c1",), "c1")
    assert not call.blank
    assert empty.blank
    assert empty.tokens == 0


async def test_leading_system_messages_are_the_sessions_and_not_in_the_log(
    client: httpx.AsyncClient,
) -> None:
    leading = [said("system", "One."), said("developer", "Two.")]
    later = said("system", "Later.")

    created = await seed(client, "s", *leading, *talk("hello"), later, said("assistant", "hi"))

    assert [item["message"]["content"] for item in created] == ["hello", "hi"]
    session = (await client.get(f"{SESSIONS}/s")).json()
    assert session["system_messages"] == leading
    assert await seed(client, "s", said("system", "New.")) == []
    session = (await client.get(f"{SESSIONS}/s")).json()
    assert session["system"] == said("system", "New.")
    assert session["messages"] == 2


async def test_times_are_those_given_one_for_each_message(client: httpx.AsyncClient) -> None:
    created = await seed(
        client, "s", said("system", "x"), *talk("hello", "hi"), created_at=[1, 1000, 2000.25]
    )
    assert [item["created_at"] for item in created] == [1000, 2000.25]


async def test_large_media_become_a_placeholder(client: httpx.AsyncClient) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 90_000}}
    created = await seed(client, "s", {"role": "user", "content": [image]})
    assert "A" * 100 not in str(created)
    assert "image/png" in str(created)


ONE = b'{"messages": [{"role": "user", "content": "x"}], '


@pytest.mark.parametrize(
    ("body", "param"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(b"[]", None, id="a list"),
        pytest.param(b'{"messages": ', None, id="half an object"),
        pytest.param(b'{"messages": [{"role": "user", "\xff": 1}]}', "messages[0]", id="no UTF-8"),
        pytest.param(b"{}", "messages", id="no messages"),
        pytest.param(b'{"messages": []}', "messages", id="none at all"),
        pytest.param(b'{"messages": null}', "messages", id="null"),
        pytest.param(b'{"messages": {"role": "user"}}', "messages", id="an object"),
        pytest.param(
            b'{"messages": [{"role": "user", "content": "x"}, 1]}', "messages[1]", id="a number"
        ),
        pytest.param(
            b'{"messages": [{"role": "user", "content": "x"}, {"role": "usr"}]}',
            "messages[1].role",
            id="unknown role",
        ),
        pytest.param(b'{"messages": [{"content": "x"}]}', "messages[0].role", id="no role"),
        pytest.param(ONE + b'"created_at": 1}', "created_at", id="one time"),
        pytest.param(ONE + b'"created_at": [1, 2]}', "created_at", id="two times"),
        pytest.param(ONE + b'"created_at": ["1"]}', "created_at[0]", id="a text"),
        pytest.param(ONE + b'"created_at": [true]}', "created_at[0]", id="a bool"),
        pytest.param(ONE + b'"created_at": [-1]}', "created_at[0]", id="negative"),
        pytest.param(
            ONE + b'"created_at": [1' + b"0" * 400 + b"]}",
            "created_at[0]",
            id="a huge number",
        ),
        pytest.param(ONE + b'"user": 7}', "user", id="user a number"),
        pytest.param(ONE + b'"user": "a b"}', "user", id="user unfit"),
    ],
)
async def test_a_wrong_import_is_refused_whole_and_says_where(
    client: httpx.AsyncClient, body: bytes, param: str | None
) -> None:
    response = await client.post(URL, content=body)
    assert response.status_code == 400
    assert error_of(response)["param"] == param
    assert error_of(response)["type"] == "invalid_request_error"
    assert (await client.get(f"{SESSIONS}/s")).status_code == 404


async def test_another_users_session_takes_no_import(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"), user="ann")

    response = await client.post(URL, json={"messages": talk("mine"), "user": "bob"})

    assert response.status_code == 403
    assert error_of(response)["code"] == "session_owner_mismatch"
    assert error_of(response)["param"] == "user"
    await seed(client, "s", *talk("more"))
    session = (await client.get(f"{SESSIONS}/s")).json()
    assert (session["user_id"], session["messages"]) == ("ann", 2)


async def test_messages_come_page_by_page(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk(*"abcdefg"))

    texts: list[str] = []
    after: str | None = "0"
    while after is not None:
        page = (await client.get(URL, params={"limit": 3, "after": after})).json()
        texts += [item["message"]["content"] for item in page["data"]]
        assert page["has_more"] == (page["next"] is not None)
        after = page["next"]

    assert texts == list("abcdefg")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["new.0", "new.1"]),
        ("?state=active", ["new.0", "new.1"]),
        ("?state=superseded", ["old.0", "old.1"]),
        ("?state=active,superseded", ["old.0", "old.1", "new.0", "new.1"]),
        ("?state=superseded,superseded", ["old.0", "old.1"]),
    ],
)
async def test_the_list_shows_the_states_asked_for(
    client: httpx.AsyncClient, store: Backend, query: str, expected: list[str]
) -> None:
    await store.commit(KEY, chat("old"))
    await store.commit(KEY, chat("new", superseded=("old.0", "old.1")))

    listed = (await client.get(URL + query)).json()["data"]

    assert [item["id"] for item in listed] == expected
    states = {item["id"]: item["state"] for item in listed}
    assert all(state == "superseded" for id, state in states.items() if id.startswith("old"))
    assert all(state == "active" for id, state in states.items() if id.startswith("new"))


@pytest.mark.parametrize(
    ("query", "param"),
    [("state=gone", "state"), ("state=", "state"), ("after=x", "after"), ("limit=0", "limit")],
)
async def test_a_wrong_query_is_refused_by_name(
    client: httpx.AsyncClient, query: str, param: str
) -> None:
    await seed(client, "s", *talk("hello"))
    response = await client.get(f"{URL}?{query}")
    assert response.status_code == 400
    assert error_of(response)["param"] == param


async def test_an_import_behind_a_long_history_finds_its_own_place(
    client: httpx.AsyncClient,
) -> None:
    await seed(client, "s", *talk(*map(str, range(250))))
    created = await seed(client, "s", *talk("x", "y"))
    assert [item["seq"] for item in created] == [251, 252]
    assert [item["message"] for item in created] == talk("x", "y")


async def test_a_store_that_is_only_slow_has_an_import_once(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, late = store.commit, []

    async def slow(key: SessionKey, what: Commit) -> Outcome:
        outcome = await commit(key, what)
        late.append(outcome)
        if len(late) == 1:
            raise StoreTimeout
        return outcome

    monkeypatch.setattr(store, "commit", slow)
    created = await seed(client, "s", *talk("hello", "hi"))

    assert late == ["recorded", "duplicate"]
    assert (await client.get(URL)).json()["data"] == created


async def test_ten_thousand_messages_are_imported_at_once(client: httpx.AsyncClient) -> None:
    client.event_hooks = {}  # to hold each of so many against the document takes long
    messages: list[dict[str, Any]] = talk(*(f"message {n}" for n in range(10_000)))

    created = await seed(client, "s", *messages)

    assert len(created) == 10_000
    assert created[-1]["seq"] == 10_000
    session = (await client.get(f"{SESSIONS}/s")).json()
    assert session["messages"] == 10_000
    assert session["tokens"] == sum(item["tokens"] for item in created)


async def test_a_body_of_more_values_than_a_chat_ever_has_is_refused_before_it_is_read(
    client: httpx.AsyncClient,
) -> None:
    parts = b"[" + b"[]," * 200_000 + b"[]]"
    body = b'{"messages":[{"role":"user","content":' + parts + b"}]}"

    answer = await client.post(URL, content=body)

    assert answer.status_code == 400
    assert "over 250000 values" in error_of(answer)["message"]


async def test_messages_are_appended_so_many_at_once(client: httpx.AsyncClient) -> None:
    answer = await client.post(URL, json={"messages": [said("user", "x")] * 20_001})

    assert (answer.status_code, error_of(answer)["param"]) == (400, "messages")
    assert (await client.get(f"{SESSIONS}/s")).status_code == 404
