"""What is kept of a response, what it is called, and what it becomes again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.formats.native import frame_of, with_native, without_answer_id
from proxy.formats.responses.items import API
from proxy.formats.responses.names import ResponseId, parse_response_id
from proxy.formats.responses.stored_objects import (
    MAX_FRAME,
    frame_of_response,
    items_in,
    list_object,
    response_object,
)
from proxy.formats.responses.writing import event_with_fields, without_state
from proxy.memory.naming import conversation_name, reference_in, reference_of
from tests.support.upstream import items

EXCHANGE = "ex_" + "aB3-_" * 4
REFERENCE = "0123456789abcdef" * 2


def test_a_name_is_read_as_it_was_written() -> None:
    name = ResponseId(REFERENCE, EXCHANGE)
    assert parse_response_id(str(name)) == name
    assert str(name) == f"resp_{REFERENCE}{EXCHANGE.removeprefix('ex_')}"


@pytest.mark.parametrize(
    "name",
    [
        *(None, 7, "", "resp_1", f"resp_{REFERENCE}", f"resp_{REFERENCE.upper()}{'a' * 20}"),
        *(f"resp_{REFERENCE}{'a' * 21}", f"resp_{REFERENCE}{'a' * 20}\n", f"conv_{REFERENCE}"),
        *(f"resp_{REFERENCE}{'ä' * 20}", f"resp_{'٣' * 32}{'a' * 20}"),
    ],
)
def test_nothing_else_is_a_name(name: object) -> None:
    assert parse_response_id(name) is None


def test_a_session_of_the_proxys_own_is_called_like_its_conversation() -> None:
    own = conversation_name(REFERENCE)
    assert (reference_in(own), reference_of(own)) == (REFERENCE, REFERENCE)


def test_one_of_a_clients_is_not_told_by_its_reference() -> None:
    reference = reference_of("kai@example.com")
    assert len(reference) == 32 and int(reference, 16)
    assert reference_in("kai@example.com") is None
    assert reference_of("kai@example.org") != reference


def test_a_frame_is_all_but_what_is_kept_elsewhere() -> None:
    whole = items.response([items.said("Yes.")], input_messages=[{"content": "memory"}])
    frame = json.loads(frame_of_response(json.dumps(whole).encode()))
    left_out = {"output", "usage", "input_messages"}
    assert frame == {key: value for key, value in whole.items() if key not in left_out}


def test_of_a_large_one_the_longest_fields_are_left_out() -> None:
    whole = items.response([], instructions="x" * 3000, tools=["y" * 3000], metadata={"a": "b"})
    frame = frame_of_response(json.dumps(whole).encode())
    assert len(frame) <= MAX_FRAME
    assert json.loads(frame)["metadata"] == {"a": "b"}
    many = {str(number): "z" * 50 for number in range(10_000)}
    assert len(frame_of_response(json.dumps(many).encode())) <= MAX_FRAME


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"{", b"[" * 10_000])
def test_what_is_no_object_has_none(raw: bytes) -> None:
    assert frame_of_response(raw) == b""


def kept(whole: dict[str, Any]) -> bytes:
    frame = frame_of_response(json.dumps(whole).encode())
    parts = [json.dumps(item).encode() for item in whole["output"]]
    return with_native(b'{"role":"assistant","content":"Yes."}', API, parts, None, frame)


def test_a_response_comes_back_as_it_was() -> None:
    whole = items.response([items.thought(), items.said("Yes.")])
    message = kept(whole)
    frame = frame_of(message, API)
    assert frame is not None
    usage = json.dumps(whole["usage"]).encode()
    assert json.loads(response_object(frame, message, usage, whole["id"])) == whole


def test_one_that_was_cut_off_says_so() -> None:
    message = kept(items.response([], status="in_progress"))
    again = json.loads(response_object(frame_of(message, API) or {}, message, None, "resp_1"))
    assert again["status"] == "incomplete"


def test_without_its_name_a_message_says_what_it_said() -> None:
    message = kept(items.response([items.said("Yes.")]))
    nameless = without_answer_id(message)
    assert frame_of(nameless, API) is None
    assert [x.raw for x in items_in("ex_1.0", nameless)] == [
        x.raw for x in items_in("ex_1.0", message)
    ]


def test_what_was_said_in_chat_has_items_with_ids_of_its_own() -> None:
    said = b'{"role":"user","content":"Hi."}'
    (item,) = items_in("ex_1-a_b.3", said)
    assert (item.id, item.message) == ("msg_1-a_b_3_0", "ex_1-a_b.3")
    assert json.loads(item.raw) == {
        "role": "user",
        "content": [{"type": "input_text", "text": "Hi."}],
        "type": "message",
        "status": "completed",
        "id": item.id,
    }


def test_a_page_names_its_ends() -> None:
    found = list(items_in("ex_1.0", b'{"role":"user","content":"Hi."}'))
    page = json.loads(list_object(found, more=True))
    assert (page["first_id"], page["last_id"], page["has_more"]) == (found[0].id, found[0].id, True)
    assert json.loads(list_object([], more=False))["first_id"] is None


def test_an_upstream_without_state_is_asked_for_none() -> None:
    body = b'{"model":"m", "store": true,"previous_response_id":"r","conversation":{"id":"c"}}'
    assert json.loads(without_state(body)) == {"model": "m", "store": False, "input": []}
    plain = b'{ "model":"m" }'
    assert without_state(plain) is plain


@pytest.mark.parametrize(
    "event",
    [
        b'{"type":"response.output_text.delta","delta":"\\"response\\""}',
        b'{"type":"response.created","response":null}',
        b'{"type":"x","response":"y"}',
    ],
)
def test_an_event_without_a_response_keeps_its_bytes(event: bytes) -> None:
    assert event_with_fields(event, {"id": b'"n"'}) is event


def test_one_with_a_response_says_the_name() -> None:
    event = b'{"type":"response.created","response":{"id":"a", "x": 1.0},"sequence_number":0}'
    named = event_with_fields(event, {"id": b'"n"'})
    assert named == b'{"type":"response.created","response":{"id":"n","x":1.0},"sequence_number":0}'
