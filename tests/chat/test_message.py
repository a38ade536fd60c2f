from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.message import ChatMessage, read_message, read_stored, text_of

Fields = dict[str, object]


def read(fields: object) -> ChatMessage:
    message = read_message(json.dumps(fields).encode(), 65_536)
    assert message is not None
    return message


def user(content: object, **more: object) -> Fields:
    return {"role": "user", "content": content, **more}


def call(arguments: object, id: str = "c1", name: str = "f") -> Fields:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: object, **more: object) -> Fields:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def text(of: str, **more: object) -> Fields:
    return {"type": "text", "text": of, **more}


def image(url: str, **more: object) -> Fields:
    return {"type": "image_url", "image_url": {"url": url}, **more}


EQUAL: dict[str, tuple[Fields, Fields]] = {
    "a string is one text part": (user("hi"), user([text("hi")])),
    "white space around": (user("hi"), user("  hi\n")),
    "neighbouring text parts": (user([text("a"), text("b")]), user("a\nb")),
    "an empty text part": (user([text(""), image("http://x")]), user([image("http://x")])),
    "a string among the parts": (user(["a"]), user("a")),
    "null and absent": ({"role": "assistant", "content": None}, {"role": "assistant"}),
    "null and empty": ({"role": "user", "content": None}, user("")),
    "an empty list of calls": (calling(content="x"), {"role": "assistant", "content": "x"}),
    "unknown fields": (user("hi", foo=[1]), user("hi")),
    "reasoning": (
        {"role": "assistant", "content": "x", "reasoning_content": "because"},
        {"role": "assistant", "content": "x", "annotations": []},
    ),
    "a name that is no function's": (user("hi", name="kai"), user("hi")),
    "cache_control": (user([text("hi", cache_control={"a": 1})]), user("hi")),
    "cache_control of an image": (
        user([image("http://x", cache_control={"a": 1})]),
        user([image("http://x")]),
    ),
    "key order of arguments": (calling(call('{"a":1,"b":2}')), calling(call('{ "b" : 2, "a":1 }'))),
    "numbers in arguments": (calling(call('{"a":1.0}')), calling(call('{"a":1}'))),
    "arguments that came as an object": (calling(call({"a": 1})), calling(call('{"a":1}'))),
    "no arguments": (calling(call("")), calling(call("{}"))),
    "null arguments": (calling(call(None)), calling(call("{}"))),
    "a call's index": (calling({**call("{}"), "index": 0}), calling(call("{}"))),
    "content beside calls": (calling(call("{}")), calling(call("{}"), content="")),
    "a refusal where there is no text": (
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ),
    "a refusal beside text": (
        {"role": "assistant", "content": "x", "refusal": "No."},
        {"role": "assistant", "content": "x"},
    ),
    "what else an audio has": (
        {"role": "assistant", "content": None, "audio": {"id": "a1", "data": "x"}},
        {"role": "assistant", "audio": {"id": "a1"}},
    ),
}

DIFFERENT: dict[str, tuple[Fields, Fields]] = {
    "text": (user("hi"), user("ho")),
    "role": (user("hi"), {"role": "assistant", "content": "hi"}),
    "developer and system": (
        {"role": "developer", "content": "x"},
        {"role": "system", "content": "x"},
    ),
    "white space inside": (user("a b"), user("a  b")),
    "image": (user([image("http://x")]), user([image("http://y")])),
    "image and its URL as text": (user([image("http://x")]), user("http://x")),
    "a part in another place": (
        user([text("a"), image("http://x"), text("b")]),
        user([text("a"), text("b"), image("http://x")]),
    ),
    "call id": (calling(call("{}", id="c1")), calling(call("{}", id="c2"))),
    "call name": (calling(call("{}", name="f")), calling(call("{}", name="g"))),
    "arguments": (calling(call('{"a":1}')), calling(call('{"a":2}'))),
    "arguments that are no JSON": (calling(call("{a")), calling(call("{b"))),
    "order of calls": (
        calling(call("{}", "c1"), call("{}", "c2")),
        calling(call("{}", "c2"), call("{}", "c1")),
    ),
    "tool_call_id": (
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "tool", "tool_call_id": "c2", "content": "x"},
    ),
    "a function's name": (
        {"role": "function", "name": "f", "content": "x"},
        {"role": "function", "name": "g", "content": "x"},
    ),
    "legacy call": (
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "assistant", "function_call": {"name": "g", "arguments": "{}"}},
    ),
    "legacy and new": (
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        calling(call("{}", id="")),
    ),
    "custom input": (
        calling({"id": "c", "type": "custom", "custom": {"name": "f", "input": "a"}}),
        calling({"id": "c", "type": "custom", "custom": {"name": "f", "input": "b"}}),
    ),
    "audio": (
        {"role": "assistant", "audio": {"id": "a1"}},
        {"role": "assistant", "audio": {"id": "a2"}},
    ),
    "refusal": (
        {"role": "assistant", "refusal": "No."},
        {"role": "assistant", "refusal": "Never."},
    ),
    "role and text run together": ({"role": "ab", "content": "c"}, {"role": "a", "content": "bc"}),
}


@pytest.mark.parametrize("pair", EQUAL.values(), ids=EQUAL)
def test_messages_are_equal_despite(pair: tuple[Fields, Fields]) -> None:
    assert read(pair[0]).digest == read(pair[1]).digest


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_messages_differ_in(pair: tuple[Fields, Fields]) -> None:
    assert read(pair[0]).digest != read(pair[1]).digest


@given(st.text(max_size=30), st.sampled_from(["user", "assistant", "system"]))
def test_the_quick_way_and_the_general_way_agree(content: str, role: str) -> None:
    quick = read({"role": role, "content": content})
    general = read({"role": role, "content": [text(content)], "unknown": 1})
    assert (quick.digest, quick.text, quick.blank) == (general.digest, general.text, general.blank)


def test_a_digest_is_16_characters_that_need_no_escaping() -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{16}", read(user("hi")).digest)


def test_calls_and_answers_are_named_by_id_or_by_legacy_function() -> None:
    assert read(calling(call("{}", "c1"), call("{}", "c2"))).calls == ("c1", "c2")
    legacy = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    assert read(legacy).calls == ("function:f",)
    assert read({"role": "tool", "tool_call_id": "c1", "content": ""}).answers == "c1"
    assert read({"role": "function", "name": "f", "content": "x"}).answers == "function:f"
    assert read(user("x")).answers is None


def test_a_call_without_an_id_meets_the_answer_without_one() -> None:
    asked = calling({"type": "function", "function": {"name": "f", "arguments": "{}"}})
    assert read(asked).calls == ("",)
    assert read({"role": "tool", "content": "x"}).answers == ""


def test_the_text_is_all_text_parts() -> None:
    assert read(user([text("a"), image("http://x"), text("b")])).text == "a\nb"
    assert text_of(b'{"role":"assistant","content":null,"refusal":"No."}') == "No."
    assert text_of(b'{"role":"user","content":"a"}') == "a"


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": [], "reasoning_content": "hm"},
        {"role": "assistant", "content": [text(" ")]},
        {"role": "user", "content": []},
        {"role": "user"},
        {"role": "user", "content": " \n"},
    ],
)
def test_a_message_with_nothing_in_it_is_blank(fields: Fields) -> None:
    assert read(fields).blank


@pytest.mark.parametrize(
    "fields",
    [
        user("x"),
        user([image("http://x")]),
        calling(call("{}")),
        {"role": "assistant", "function_call": {"name": "f"}},
        {"role": "assistant", "refusal": "No."},
        {"role": "assistant", "audio": {"id": "a"}},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        {"role": "function", "name": "f", "content": None},
    ],
)
def test_a_message_that_says_or_answers_something_is_not_blank(fields: Fields) -> None:
    assert not read(fields).blank


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "id", "function", "url"]), inner)
    ),
    max_leaves=6,
)
FIELDS = ("role", "content", "tool_calls", "function_call", "tool_call_id", "refusal", "audio")


@given(st.dictionaries(st.sampled_from(FIELDS), anything))
def test_no_object_is_too_strange_to_be_read(fields: Fields) -> None:
    raw = json.dumps(fields).replace("NaN", "0").replace("-Infinity", "1").replace("Infinity", "1")
    message = read_message(raw.encode(), 10)
    assert message is not None
    assert message.raw == raw.encode()
    assert message.record


@pytest.mark.parametrize("raw", [b"", b"5", b"[]", b'"x"', b"{", b'{"role":"user"'])
def test_what_is_no_object_is_no_message_yet_can_be_stored(raw: bytes) -> None:
    assert read_message(raw, 65_536) is None
    assert read_stored(raw).raw == raw


def test_wrong_types_count_by_their_value() -> None:
    assert read(user(5)).digest != read(user(6)).digest
    assert read({"role": 1, "content": "x"}).digest != read({"role": 2, "content": "x"}).digest
    strange = [{"role": "assistant", "tool_calls": word} for word in ("x", "y")]
    assert read(strange[0]).digest != read(strange[1]).digest
    assert read(strange[0]).calls == ()


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_deep_nesting_does_not_raise(depth: int) -> None:
    raw = b'{"role":"user","content":' + b"[" * depth + b"]" * depth + b"}"
    first = read_stored(raw)
    assert first.digest == read_stored(raw).digest
    assert first.digest != read_stored(raw.replace(b"user", b"tool")).digest


def test_half_an_emoji_is_read_as_a_replacement_character() -> None:
    message = read_message(b'{"role":"user","content":"a \\ud83d b"}', 65_536)
    assert message is not None
    assert message.text == "a \ufffd b"
    assert message.raw == message.record == b'{"role":"user","content":"a \\ud83d b"}'


def test_arguments_with_half_an_emoji_compare_as_values() -> None:
    a = calling(call('{"a":1,"b":"\\ud83d"}'))
    b = calling(call('{"b":"\\ud83d", "a":1}'))
    assert read(a).digest == read(b).digest
