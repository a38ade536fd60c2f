"""Sessions that bodies name, where the settings list the fields."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from proxy.chat import jsontext
from proxy.gateway.state.naming import body_session
from tests.support.rig import CHAT, KEY, Rig, rig
from tests.support.talk.responding import ItemTalk
from tests.support.upstream import items
from tests.support.upstream.answers import json_answer

LISTED = ["conversation", "metadata.user_id", "prompt_cache_key"]

USER = "user_" + "a" * 64 + "_account_1b2c_session_0d8c4f5e-1c2d-4e3f-8a9b-000000000001"
SESSION = "0d8c4f5e-1c2d-4e3f-8a9b-000000000001"
TOLD = json.dumps({"device_id": "d", "account_uuid": "", "session_id": SESSION})

NAMED = [
    pytest.param({"prompt_cache_key": "k"}, "k", id="text"),
    pytest.param({"metadata": {"user_id": USER}}, SESSION, id="claude-code-older"),
    pytest.param({"metadata": {"user_id": TOLD}}, SESSION, id="claude-code-json"),
    pytest.param({"conversation": "conv_1"}, "conv_1", id="conversation"),
    pytest.param({"conversation": {"id": "conv_1"}}, "conv_1", id="conversation-object"),
    pytest.param(
        {"prompt_cache_key": "k", "conversation": "c"}, "c", id="the-first-of-the-list-counts"
    ),
    pytest.param({"conversation": "two words", "prompt_cache_key": "k"}, "k", id="no-id-is-none"),
]
UNNAMED = [
    pytest.param({}, id="nothing"),
    pytest.param({"user": "kai"}, id="not-listed"),
    pytest.param({"metadata": {"user_id": "kai"}}, id="a-user-is-no-session"),
    pytest.param({"metadata": {"user_id": "user_a_account_b"}}, id="no-session-in-it"),
    pytest.param({"metadata": {"user_id": '{"session_id": 7}'}}, id="a-number"),
    pytest.param({"metadata": {"user_id": '{"session_id'}}, id="half-of-it"),
    pytest.param({"metadata": {"user_id": "{" * 5000}}, id="nested"),
    pytest.param({"metadata": "x"}, id="no-object"),
    pytest.param({"metadata": {"user_id": ["user_a_session_b"]}}, id="a-list"),
    pytest.param({"prompt_cache_key": "k" * 257}, id="long"),
    pytest.param({"prompt_cache_key": "ä"}, id="not-ascii"),
    pytest.param({"prompt_cache_key": "\ud800"}, id="half-a-pair"),
    pytest.param({"prompt_cache_key": ".."}, id="dots"),
    pytest.param({"prompt_cache_key": ""}, id="empty"),
    pytest.param({"prompt_cache_key": "a\r\nx-session-id: b"}, id="lines"),
    pytest.param({"prompt_cache_key": {"id": {"id": "k"}}}, id="deeper"),
]


@pytest.mark.parametrize(("body", "session"), NAMED)
def test_the_first_field_that_is_an_id_names_it(body: dict[str, Any], session: str) -> None:
    assert body_session(jsontext.fields(json.dumps(body).encode()), LISTED) == session


@pytest.mark.parametrize("body", UNNAMED)
def test_what_is_no_id_names_nothing(body: dict[str, Any]) -> None:
    assert body_session(jsontext.fields(json.dumps(body).encode()), LISTED) is None


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def listing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("listing")
    async with rig(folder, server__body_session_ids=LISTED) as one:
        yield one


@pytest.fixture
def one_listing(listing: Rig) -> Rig:
    listing.reset()
    return listing


MESSAGES = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "u1"}]}
FORMATS = [
    pytest.param(CHAT, {**MESSAGES, "prompt_cache_key": "KEY"}, id="chat"),
    pytest.param("/v1/responses", {"model": "m", "input": "u1", "prompt_cache_key": "KEY"}, id="r"),
    pytest.param(
        "/v1/messages", {**MESSAGES, "metadata": {"user_id": "user_a_session_KEY"}}, id="messages"
    ),
]
ANSWERS = {
    CHAT: {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a1"}}]},
    "/v1/responses": items.response([items.said("a1")]),
    "/v1/messages": {"type": "message", "role": "assistant", "content": []},
}


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("path", "body"), FORMATS)
async def test_each_api_has_memory_by_it(one_listing: Rig, path: str, body: Any) -> None:
    one, talk = one_listing, one_listing.talk()
    one.up.strict = False
    one.up.reply(json_answer(ANSWERS[path]))
    said = json.loads(json.dumps(body).replace("KEY", talk.session))
    answered = await one.client.post(path, json=said, headers={"authorization": f"Bearer {KEY}"})
    assert answered.headers["x-memory-session-id"] == talk.session
    assert one.up.requests[-1].json == said
    assert (await talk.log()).startswith("u1")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_header_wins(one_listing: Rig) -> None:
    talk, other = ItemTalk.of(one_listing), one_listing.talk()
    body = {"model": "gpt-5", "input": "u1", "prompt_cache_key": other.session}
    assert (await talk.post(body)).headers["x-memory-session-id"] == talk.session
    assert await other.log() == ""


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("headers", [{}, {"x-memory-mode": "off"}])
async def test_what_names_nothing_is_passed_on_as_it_is(
    one_listing: Rig, headers: dict[str, str]
) -> None:
    named = {"prompt_cache_key": "k"} if headers else {"prompt_cache_key": "two words"}
    content = json.dumps({**MESSAGES, **named}, indent=3).encode()
    sent = {"authorization": f"Bearer {KEY}", "content-type": "application/json", **headers}
    answered = await one_listing.client.post(CHAT, content=content, headers=sent)
    assert answered.status_code == 200
    assert one_listing.up.requests[-1].body == content
    assert "x-memory-status" not in answered.headers


@pytest.mark.asyncio(loop_scope="session")
async def test_where_nothing_is_listed_nothing_is_read(one: Rig) -> None:
    body = {**MESSAGES, "prompt_cache_key": "k"}
    answered = await one.client.post(CHAT, json=body, headers={"authorization": f"Bearer {KEY}"})
    assert "x-memory-status" not in answered.headers
    assert not one.store.commits
