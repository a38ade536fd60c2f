"""Messages that are written by hand: what an upstream could not read is refused."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from proxy.errors import ProxyError
from proxy.memory_api.conversations.checking import check_message
from tests.support.memory_api import SESSIONS, error_of, said, seed, talk
from tests.support.upstream.strict import Refused, validate

URL = f"{SESSIONS}/s"
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
DEEP = b'{"role": "user", "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def calling(*calls: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


GOOD = {
    "text": said("user", "x"),
    "nothing said": said("assistant", ""),
    "parts": {"role": "user", "content": [{"type": "text", "text": "x"}]},
    "a part of a vendor": {"role": "user", "content": [{"type": "video", "video": {"a": 1}}]},
    "a field of a vendor": said("user", "x", cache=[1, {}]),
    "a call": calling(CALL),
    "a call without a type": calling({"id": "c", "function": CALL["function"]}),
    "a custom call": calling({"id": "c", "type": "custom", "custom": {"name": "f", "input": ""}}),
    "calls and no content": {"role": "assistant", "tool_calls": [CALL]},
    "a function": {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
    "a refusal": {"role": "assistant", "content": None, "refusal": "No."},
    "audio": {"role": "assistant", "content": None, "audio": {"id": "a"}},
    "null as calls": said("assistant", "x", tool_calls=None),
    "no calls": said("assistant", "x", tool_calls=[]),
    "half a surrogate pair": said("user", "half \ud83d"),
}

BAD = {
    "no content": ({"role": "user"}, ".content"),
    "null": ({"role": "user", "content": None}, ".content"),
    "a number": ({"role": "user", "content": 5}, ".content"),
    "an object": ({"role": "user", "content": {"a": 1}}, ".content"),
    "no parts": ({"role": "user", "content": []}, ".content"),
    "no answer": ({"role": "assistant"}, ".content"),
    "an empty refusal": ({"role": "assistant", "refusal": ""}, ".content"),
    "a number as function": ({"role": "assistant", "function_call": 5}, ".content"),
    "calls of a user": ({"role": "user", "content": None, "tool_calls": [CALL]}, ".content"),
    "a number as part": ({"role": "user", "content": [1, None, "x"]}, ".content[0]"),
    "a part of no type": ({"role": "user", "content": [{}]}, ".content[0]"),
    "a type of no text": ({"role": "user", "content": [{"type": 5}]}, ".content[0]"),
    "a part without text": ({"role": "user", "content": [{"type": "text"}]}, ".content[0].text"),
    "a number as calls": (said("assistant", "x", tool_calls=5), ".tool_calls"),
    "no calls and no content": (calling(), ".content"),
    "a number as call": (calling(CALL, 5), ".tool_calls[1]"),
    "a call without id": (calling({**CALL, "id": None}), ".tool_calls[0]"),
    "a call of nothing": (calling({"id": "c", "type": "function"}), ".tool_calls[0]"),
    "a call without a name": (
        calling({**CALL, "function": {"arguments": "{}"}}),
        ".tool_calls[0]",
    ),
    "an object as arguments": (
        calling({**CALL, "function": {"name": "f", "arguments": {}}}),
        ".tool_calls[0]",
    ),
}


@pytest.mark.parametrize("message", GOOD.values(), ids=GOOD)
def test_a_message_that_upstreams_read_is_let_through(message: Any) -> None:
    check_message(json.dumps(message).encode(), "message")


@pytest.mark.parametrize(("message", "at"), BAD.values(), ids=BAD)
def test_another_is_refused_and_the_place_named(message: Any, at: str) -> None:
    with pytest.raises(ProxyError) as refused:
        check_message(json.dumps(message).encode(), "messages[3]")
    assert (refused.value.code, refused.value.param) == ("invalid_value", f"messages[3]{at}")
    assert refused.value.message.startswith(f"messages[3]{at} must be ")


@pytest.mark.parametrize("raw", [b"[]", b"5", b"{", DEEP], ids=["list", "number", "half", "deep"])
def test_what_is_no_object_that_can_be_read_is_refused(raw: bytes) -> None:
    with pytest.raises(ProxyError) as refused:
        check_message(raw, "message")
    assert refused.value.param == "message"


@pytest.mark.parametrize(("message", "at"), BAD.values(), ids=BAD)
async def test_none_of_them_gets_into_history(
    client: httpx.AsyncClient, message: Any, at: str
) -> None:
    await seed(client, "s", *talk("hello", "hi"))
    ids = [each["id"] for each in (await client.get(f"{URL}/messages")).json()["data"]]
    edited = ids[0 if message["role"] == "user" else 1]
    body = {"messages": [said("user", "x"), message]}

    appended = await client.post(f"{URL}/messages", json=body)
    changed = await client.patch(f"{URL}/messages/{edited}", json={"message": message})

    assert (appended.status_code, changed.status_code) == (400, 400)
    assert error_of(appended)["param"] == f"messages[1]{at}"
    assert error_of(changed)["param"] == f"message{at}"
    preview = await client.post(f"{URL}/context", json={"messages": [said("user", "next")]})
    validate({"model": "m", "messages": preview.json()["messages"]})


@pytest.mark.parametrize(
    ("content", "param"),
    [([{"type": "text"}], "content[0].text"), ([{}], "content[0]"), (5, "content")],
)
async def test_content_alone_is_looked_at_as_well(
    client: httpx.AsyncClient, content: Any, param: str
) -> None:
    (created,) = await seed(client, "s", *talk("hello"))
    changed = await client.patch(f"{URL}/messages/{created['id']}", json={"content": content})
    assert changed.status_code == 400
    assert error_of(changed)["param"] == param


@pytest.mark.parametrize("content", [5, {"a": 1}, [{"type": "text", "text": "x"}, "y"]])
async def test_so_are_system_messages(client: httpx.AsyncClient, content: Any) -> None:
    await seed(client, "s", *talk("hello"))
    system = {"role": "system", "content": content}
    place = ".content[1]" if isinstance(content, list) else ".content"

    one = await client.patch(URL, json={"system": system})
    second = await client.patch(URL, json={"system": [said("system", "x"), system]})

    assert (one.status_code, second.status_code) == (400, 400)
    assert error_of(one)["param"] == f"system{place}"
    assert error_of(second)["param"] == f"system[1]{place}"
    assert (await client.get(URL)).json()["system"] is None


def test_the_bad_ones_are_bad_for_a_strict_upstream() -> None:
    """As far as it looks: it lets a call of a function be anything."""
    for name, (message, _) in BAD.items():
        if name != "a number as function":
            with pytest.raises(Refused):
                validate({"model": "m", "messages": [message]})
