from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.models.limits import MAX_NAME
from proxy.chat.request import ChatRequest
from proxy.gateway.routes import FORMATS
from tests.support.talk.parsing import parse


def request(messages: object, **fields: object) -> ChatRequest:
    found = parse(json.dumps({"model": "m", "messages": messages, **fields}).encode())
    assert found is not None
    return found


SYSTEM = {"role": "system", "content": "be kind"}
DEVELOPER = {"role": "developer", "content": [{"type": "text", "text": "be brief"}]}
USER = {"role": "user", "content": "hi"}


def test_the_leading_run_of_system_messages_is_apart_and_later_ones_stay_in_place() -> None:
    found = request([SYSTEM, DEVELOPER, USER, SYSTEM])
    assert [json.loads(raw) for raw in found.system] == [SYSTEM, DEVELOPER]
    assert [message.role for message in found.messages] == ["user", "system"]
    assert found.system_text == "be kind\nbe brief"


def test_the_last_user_text_is_that_of_the_last_user_message() -> None:
    answer = {"role": "assistant", "content": "x"}
    assert request([USER, {"role": "user", "content": "last"}, answer]).last_user_text == "last"
    assert request([answer]).last_user_text == ""


@pytest.mark.parametrize("name", ["chat/completions", "messages", "responses"])
def test_of_a_model_s_name_only_the_beginning_counts(name: str) -> None:
    body = {"model": "m" * 10_000, "messages": [USER], "input": [USER], "max_tokens": 5}
    found = FORMATS[name].read(json.dumps(body).encode(), 0)
    assert isinstance(found, ChatRequest)
    assert found.model == "m" * MAX_NAME


def test_a_request_says_its_model_and_how_it_wants_its_answer() -> None:
    found = request([USER], n=3, max_tokens=10, max_completion_tokens=20)
    assert (found.model, found.n, found.max_output) == ("m", 3, 20)
    assert request([USER], max_tokens=10).max_output == 10


@pytest.mark.parametrize(
    "fields",
    [
        {"model": 5, "n": 0, "max_tokens": -1},
        {"model": None, "n": "3", "max_tokens": "many"},
        {"model": {}, "n": True, "max_tokens": 1.5},
        {"model": [], "n": None, "max_completion_tokens": None},
    ],
)
def test_wrong_types_are_as_good_as_absent(fields: dict[str, object]) -> None:
    found = request([USER], **fields)
    assert (found.model, found.n, found.max_output) == (None, 1, None)


def test_n_is_bounded() -> None:
    assert request([USER], n=10**9).n == 128


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"messages":null}',
        b'{"messages":{}}',
        b'{"messages":"x"}',
        b'{"messages":[1]}',
        b'{"messages":[{"role":"user"},null]}',
        b'{"messages":[{"role":"user"}]',
        b'{"messages":[{"role":"user"}]} x',
        b'\xef\xbb\xbf{"messages":[]}',
        b'{"messages":[],"x":"\xff"}',
        b'{"messages":[{"role":"user","content":"\xff"}]}',
        b'{"messages":[],"x":NaN}',
        b'{"messages":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"\x1f\x8b\x08\x00",
        '{"messages":[]}'.encode("utf-16"),
    ],
)
def test_what_is_no_request_with_messages_is_not_ours(body: bytes) -> None:
    assert parse(body) is None


def test_an_empty_list_of_messages_is_a_request() -> None:
    found = parse(b'{"messages":[]}')
    assert found is not None
    assert (found.messages, found.system) == ((), ())


def test_of_equal_keys_the_last_counts() -> None:
    found = parse(b'{"messages":[{"role":"user","content":"a"}],"messages":[]}')
    assert found is not None
    assert found.messages == ()
    assert found.with_messages([]) == b'{"messages":[]}'


def test_only_the_messages_are_replaced() -> None:
    body = (
        b'{ "model" : "m", "temperature":0.10, "messages" : '
        b'[ {"role":"user", "content":"\\u00e9"} ], '
        b'"seed": 123456789012345678901234567890, "x": {"a" : 1e999} }'
    )
    found = parse(body)
    assert found is not None
    assert found.messages[0].raw == b'{"role":"user", "content":"\\u00e9"}'
    assert found.with_messages([b'{"role":"user", "content":1}', b"{}"]) == (
        b'{"model":"m","temperature":0.10,"messages":[{"role":"user", "content":1},{}],'
        b'"seed":123456789012345678901234567890,"x":{"a" : 1e999}}'
    )


def test_half_an_emoji_goes_through_byte_for_byte() -> None:
    body = b'{"messages":[{"role":"user","content":"\\uD83D"}],"x":1.50,"\\ud83d":2}'
    found = parse(body)
    assert found is not None
    sent = found.with_messages(message.raw for message in found.messages)
    assert sent == body


fields = st.dictionaries(
    st.text(max_size=4).filter(lambda key: key != "messages"),
    st.none() | st.integers() | st.text() | st.lists(st.integers(), max_size=2),
    max_size=4,
)
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "system"]), "content": st.text()}),
    max_size=4,
)


@given(fields, messages, st.booleans())
def test_a_request_put_together_again_means_the_same(
    fields: dict[str, object], messages: list[dict[str, str]], ascii: bool
) -> None:
    whole = {**fields, "messages": messages}
    found = parse(json.dumps(whole, ensure_ascii=ascii).encode("utf-8", "surrogatepass"))
    assert found is not None
    sent = found.with_messages([*found.system, *(m.raw for m in found.messages)])
    assert json.loads(sent) == whole
    assert list(json.loads(sent)) == list(whole)
