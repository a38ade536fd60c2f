"""Conditional requests: tags of what is read, and changes meant for what was read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from proxy.errors import ProxyError
from proxy.memory_api.conditions import Conditions, conditional, tag_of
from proxy.memory_api.objects import encoded, reply
from tests.support.memory_api import SESSIONS, Site, error_of, seed, talk
from tests.support.waiting import eventually

USER = "/memory/v1/users/kai"
MEMORIES = f"{USER}/memories"
PROFILE = f"{USER}/profile"
TEXT = "/memory/v1/instructions/shop"
ITEM = "/memory/v1/store/items?namespace=docs&key=k"
ITEMS = "/memory/v1/store/items"
PLACE: dict[str, Any] = {"namespace": ["docs"], "key": "k"}

Change = Callable[[httpx.AsyncClient, dict[str, str]], Awaitable[httpx.Response]]


def asked(method: str = "GET", **headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "headers": raw})


def refused(request: Request, current: object | None) -> bool:
    try:
        Conditions(request).check(current)
    except ProxyError as error:
        assert (error.status, error.code) == (412, "precondition_failed")
        return True
    return False


async def fact(client: httpx.AsyncClient, text: str = "Kai sails.") -> str:
    response = await client.post(MEMORIES, json={"text": text})
    assert response.status_code == 201, response.text
    return f"{MEMORIES}/{response.json()['id']}"


# The rules


def test_a_tag_is_22_characters_of_the_body_s_hash() -> None:
    tag = tag_of(b"{}")
    assert tag == '"RBNvo1WzZ4oRRq0W9-hknp"'
    assert re.fullmatch(r'"[A-Za-z0-9_-]{22}"', tag) and tag != tag_of(b"{ }")


@pytest.mark.parametrize(
    ("said", "same"),
    [
        pytest.param("{tag}", True, id="the-tag"),
        pytest.param('"no", {tag}', True, id="in-a-list"),
        pytest.param('"a,b",{tag} ,"c"', True, id="commas-within-a-tag"),
        pytest.param("*", True, id="anything"),
        pytest.param("W/{tag}", False, id="a-weak-one-never"),
        pytest.param('"no"', False, id="another"),
        pytest.param("{bare}", False, id="without-quotes"),
        pytest.param("", False, id="empty"),
        pytest.param('*, "no"', False, id="anything-is-said-alone"),
    ],
)
def test_if_match_compares_strongly(said: str, same: bool) -> None:
    current = {"a": 1}
    tag = tag_of(encoded(current))
    request = asked("PATCH", if_match=said.format(tag=tag, bare=tag.strip('"')))
    assert refused(request, current) is not same


def test_if_match_with_a_star_means_that_it_exists() -> None:
    assert refused(asked("PUT", if_match="*"), None)
    assert not refused(asked("PUT", if_match="*"), {})
    assert refused(asked("PUT", if_match=tag_of(b"null")), None)


def test_if_none_match_of_a_change_means_that_it_does_not_exist() -> None:
    assert refused(asked("PUT", if_none_match="*"), {})
    assert not refused(asked("PUT", if_none_match="*"), None)
    assert refused(asked("PUT", if_none_match=f"W/{tag_of(b'{}')}"), {})
    assert not refused(asked("PUT", if_none_match='"other"'), {})


def test_without_a_condition_every_change_is_meant() -> None:
    assert not refused(asked("DELETE"), {"a": 1}) and not refused(asked("DELETE"), None)


def test_a_field_in_several_lines_is_one_list() -> None:
    tag = tag_of(encoded({}))
    raw = [(b"if-match", b'"no"'), (b"if-match", tag.encode())]
    assert not refused(Request({"type": "http", "method": "PATCH", "headers": raw}), {})


@pytest.mark.parametrize("said", ["{tag}", "W/{tag}", "*", '"no" , W/{tag}'])
def test_who_has_it_already_gets_304_without_a_body(said: str) -> None:
    tag = tag_of(encoded({"a": 1}))
    answer = conditional(asked(if_none_match=said.format(tag=tag)), reply({"a": 1}))
    assert (answer.status_code, answer.body) == (304, b"")
    assert answer.headers["etag"] == tag and answer.headers["cache-control"] == "no-store"
    assert "content-type" not in answer.headers


def test_who_has_another_gets_it_whole() -> None:
    answer = conditional(asked(if_none_match='"other"'), reply({"a": 1}))
    assert (answer.status_code, answer.body) == (200, b'{"a":1}')
    assert answer.headers["etag"] == tag_of(b'{"a":1}')


def test_a_get_can_ask_for_what_it_knows_alone() -> None:
    assert conditional(asked(if_match=tag_of(b"{}")), reply({})).status_code == 200
    with pytest.raises(ProxyError, match="not as you say"):
        conditional(asked(if_match='"other"'), reply({}))


async def nothing() -> Any:
    yield b""


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        pytest.param("POST", reply({}), id="not-read"),
        pytest.param("GET", reply({}, 404), id="a-failure"),
        pytest.param("GET", reply({}, 202), id="not-all-of-it"),
        pytest.param("GET", Response("{}", 200), id="no-json"),
        pytest.param(
            "GET", StreamingResponse(nothing(), media_type="application/json"), id="a-stream"
        ),
    ],
)
def test_other_answers_have_no_tag(method: str, answer: Response) -> None:
    same = conditional(asked(method, if_none_match="*"), answer)
    assert same is answer and "etag" not in same.headers


# What is read


async def test_every_answer_that_is_read_has_a_tag(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("Hello.", "Hi."), user="kai")
    await client.put(ITEMS, json={**PLACE, "value": {}})
    paths = [
        SESSIONS,
        f"{SESSIONS}/s",
        f"{SESSIONS}/s/messages",
        f"{SESSIONS}/s/summaries",
        f"{SESSIONS}/s/exchanges/{created[0]['exchange_id']}",
        MEMORIES,
        await fact(client),
        PROFILE,
        f"{PROFILE}/versions",
        TEXT,
        ITEM,
        "/memory/v1/usage",
    ]
    for path in paths:
        whole = await client.get(path)
        assert whole.status_code == 200, path
        assert whole.headers["etag"] == tag_of(whole.content)
        again = await client.get(path, headers={"if-none-match": whole.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        head = await client.head(path, headers={"if-none-match": whole.headers["etag"]})
        assert head.status_code == 304


async def test_a_tag_changes_with_what_is_read(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("Hello."))
    before = (await client.get(f"{SESSIONS}/s")).headers["etag"]
    await seed(client, "s", *talk("Hello again."))
    after = await client.get(f"{SESSIONS}/s", headers={"if-none-match": before})
    assert after.status_code == 200 and after.headers["etag"] != before


async def test_what_is_not_there_has_no_tag(client: httpx.AsyncClient) -> None:
    response = await client.get(f"{SESSIONS}/nobody", headers={"if-none-match": "*"})
    assert response.status_code == 404 and "etag" not in response.headers


async def test_health_has_no_tag(client: httpx.AsyncClient) -> None:
    assert "etag" not in (await client.get("/readyz")).headers


# What is changed


async def rewrite(client: httpx.AsyncClient, headers: dict[str, str]) -> httpx.Response:
    return await client.put(TEXT, json={"text": "Be brief."}, headers=headers)


async def note(client: httpx.AsyncClient, headers: dict[str, str]) -> httpx.Response:
    return await client.patch(PROFILE, json={"city": "Bonn"}, headers=headers)


async def replace(client: httpx.AsyncClient, headers: dict[str, str]) -> httpx.Response:
    return await client.put(ITEMS, json={**PLACE, "value": {"a": 2}}, headers=headers)


async def drop(client: httpx.AsyncClient, headers: dict[str, str]) -> httpx.Response:
    return await client.delete(ITEM, headers=headers)


CHANGES = [
    pytest.param(TEXT, rewrite, id="instructions"),
    pytest.param(PROFILE, note, id="profile"),
    pytest.param(ITEM, replace, id="put-an-item"),
    pytest.param(ITEM, drop, id="delete-an-item"),
]


@pytest.mark.parametrize(("path", "change"), CHANGES)
async def test_a_change_is_made_to_what_was_read_alone(
    client: httpx.AsyncClient, path: str, change: Change
) -> None:
    await client.put(ITEMS, json={**PLACE, "value": {}})
    read = (await client.get(path)).headers["etag"]
    await client.put(TEXT, json={"text": "Others were here."})
    await client.patch(PROFILE, json={"others": "were here"})
    await client.put(ITEMS, json={**PLACE, "value": {"others": "were here"}})
    now = await client.get(path)
    late = await change(client, {"if-match": read})
    assert late.status_code == 412
    assert error_of(late)["code"] == "precondition_failed"
    assert (await client.get(path)).content == now.content
    assert (await change(client, {"if-match": now.headers["etag"]})).status_code == 200
    after = await client.get(path)
    assert after.status_code == 404 or after.headers["etag"] != now.headers["etag"]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_fact_is_changed_only_as_it_was_read(
    client: httpx.AsyncClient, method: str
) -> None:
    path = await fact(client)
    read = (await client.get(path)).headers["etag"]
    assert (await client.patch(path, json={"text": "Kai rows."})).status_code == 200
    body = {"text": "Kai swims."} if method == "PATCH" else None
    late = await client.request(method, path, headers={"if-match": read}, json=body)
    assert (late.status_code, error_of(late)["param"]) == (412, "if-match")
    now = await client.get(path)
    assert now.json()["text"] == "Kai rows."
    right = {"if-match": now.headers["etag"]}
    assert (await client.request(method, path, headers=right, json=body)).status_code == 200


async def test_what_is_not_there_is_not_found_whatever_the_condition(
    client: httpx.AsyncClient,
) -> None:
    for path in (f"{MEMORIES}/fact_none", ITEM):
        response = await client.delete(path, headers={"if-match": '"x"'})
        assert response.status_code == 404


async def test_an_item_can_be_put_only_where_there_is_none_and_only_where_there_is_one(
    client: httpx.AsyncClient,
) -> None:
    assert (await replace(client, {"if-match": "*"})).status_code == 412
    assert (await replace(client, {"if-none-match": "*"})).status_code == 200
    assert (await replace(client, {"if-none-match": "*"})).status_code == 412
    assert (await replace(client, {"if-match": "*"})).status_code == 200
    assert (await client.get(ITEM)).json()["version"] == 2


async def test_a_version_and_a_tag_must_both_be_right(client: httpx.AsyncClient) -> None:
    await replace(client, {})
    tag = {"if-match": (await client.get(ITEM)).headers["etag"]}
    body = {**PLACE, "value": {}, "if_version": 7}
    response = await client.put(ITEMS, json=body, headers=tag)
    assert (response.status_code, error_of(response)["code"]) == (409, "version_conflict")
    response = await client.put(ITEMS, json={**body, "if_version": 1}, headers=tag)
    assert response.status_code == 200


@pytest.mark.parametrize(("path", "change"), CHANGES)
async def test_of_many_who_read_the_same_one_changes_it(
    client: httpx.AsyncClient, site: Site, path: str, change: Change
) -> None:
    await client.put(ITEMS, json={**PLACE, "value": {}})
    read = {"if-match": (await client.get(path)).headers["etag"]}
    answers = await asyncio.gather(*(change(client, read) for _ in range(8)))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses[0] == 200 and set(statuses[1:]) <= {404, 412}


async def test_a_wish_is_dismissed_only_as_it_was_read(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("Always answer in French."), user="kai")

    async def wishes() -> Any:
        listed = (await client.get(MEMORIES)).json()["data"]
        return listed

    await eventually(wishes)
    path = f"{MEMORIES}/{(await wishes())[0]['id']}"
    found = await client.get(path)
    assert (await client.delete(path, headers={"if-match": '"x"'})).status_code == 412
    right = {"if-match": found.headers["etag"]}
    assert (await client.delete(path, headers=right)).status_code == 200
