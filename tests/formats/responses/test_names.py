"""What names of items mean that are not carried back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.message import MAX_INLINE_MEDIA_BYTES
from proxy.formats.native import substitutes_in, with_native
from proxy.formats.responses.items import API
from proxy.formats.responses.reply import read_reply
from proxy.formats.responses.stream import EventReader
from tests.support.upstream import items

IMAGE = {
    "id": "ig_1",
    "type": "image_generation_call",
    "status": "completed",
    "result": "A" * (MAX_INLINE_MEDIA_BYTES + 1),
}


def named(output: list[dict[str, Any]], **more: Any) -> dict[str, bytes]:
    """Of an answer with this output."""
    reply = read_reply(json.dumps(items.response(output, **more)).encode())
    assert reply is not None
    return dict(substitutes_in(reply.choices[0].body, API))


def test_what_an_upstream_stores_it_knows_by_its_name() -> None:
    output = [items.thought(encrypted=False), items.said("Here."), IMAGE]
    assert named(output, store=True) == {}


def test_what_stood_behind_a_thought_that_is_not_carried_back_is_known_by_its_name() -> None:
    answer, other = items.said("Here."), items.said("And here.")
    output = [items.thought(), IMAGE, answer, items.thought(), other]
    assert named(output, store=True) == {answer["id"]: json.dumps(answer).encode()}


def test_a_picture_alone_is_known_by_the_name_that_its_upstream_knows() -> None:
    known = {"type": "image_generation_call", "id": "ig_1"}
    [kept] = named([items.thought(), IMAGE], store=True).values()
    assert json.loads(kept) == known


def test_one_that_nobody_keeps_is_the_line_that_stands_for_it() -> None:
    thought, other = items.thought(), {**IMAGE, "id": "ig_2"}
    said = named([thought, IMAGE, other], store=False)
    line = {"role": "assistant", "content": "[image_generation_call] [image_generation_call]"}
    assert json.loads(said.pop("ig_1")) == line
    assert said == {thought["id"]: b"null", "ig_2": b"null"}


def test_what_nobody_keeps_is_nothing() -> None:
    thought = items.thought(encrypted=False)
    output = [thought, items.said("Here."), IMAGE]
    assert named(output, store=False) == {thought["id"]: b"null", "ig_1": b"null"}


def test_what_is_carried_back_needs_none() -> None:
    output = [items.thought(), items.told("Hm."), items.said("Here.")]
    assert named(output, store=False) == {}


@pytest.mark.parametrize("item", [{"id": 5}, {"id": ""}, {}, [], None, "x"])
def test_a_beginning_without_a_name_is_none(item: Any) -> None:
    reader = EventReader()
    begun = {"type": "response.output_item.added", "output_index": 0, "item": item}
    reader.feed(json.dumps(begun).encode())
    assert reader.build().choices == ()


def test_an_item_that_is_not_utf8_is_named_as_it_came() -> None:
    reader, item = EventReader(), b'{"id":"m","role":"assistant","\xff":1}'
    reader.feed(b'{"type":"response.output_item.done","output_index":0,"item":' + item + b"}")
    assert item in reader.build().choices[0].body


def test_a_clients_own_field_of_that_name_means_nothing() -> None:
    message = b'{"role":"assistant","content":"a"}'
    odd = with_native(message, API, [], substitutes={"a": b"5", "b": b"[{}]", "c": b'"x"'})
    assert substitutes_in(odd, API) == {}
    assert substitutes_in(odd.replace(b'"named":{', b'"named":[{', 1), API) == {}
