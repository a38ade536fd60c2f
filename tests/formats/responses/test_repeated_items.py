"""Which stored items a request goes without, as its client sends them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat import jsontext
from proxy.chat.message import ChatMessage
from proxy.chat.request import ChatRequest
from proxy.formats.responses.api import Responses
from proxy.formats.responses.repeated_items import without_resent
from tests.support.upstream import items

FORMAT = Responses()
Json = dict[str, Any]

USER: Json = {"role": "user", "content": "And now?"}
CALL = items.calls("look", "{}", "c0", id="fc_0")
RESULT: Json = {"type": "function_call_output", "call_id": "c0", "output": "rain"}
DONE = items.said("Done.", id="msg_0")
HM = items.said("Hm.", id="msg_1")


def thought(said: str) -> Json:
    return {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": said}


def read(listed: list[Json]) -> list[ChatMessage]:
    request = FORMAT.read(jsontext.encode({"input": listed}), 1000)
    assert isinstance(request, ChatRequest)
    return [*request.messages]


def kept(stored: list[Json], own: list[Json]) -> list[Json]:
    """The stored items that a request has beside the client's own."""
    before, messages = read(stored), read(own)
    sent = [jsontext.items(b"[" + message.raw + b"]") for message in (*before, *messages)]
    found = without_resent([*(message.record for message in before), *messages], sent)
    values = [json.loads(raw) for raws in found for raw in raws]
    assert values[len(values) - len(own) :] == own
    return values[: len(values) - len(own)]


@pytest.mark.parametrize(
    ("stored", "own", "left"),
    [
        pytest.param([USER, DONE], [DONE, USER], [USER], id="a-text"),
        pytest.param([USER, CALL, RESULT, DONE], [CALL, RESULT], [USER, DONE], id="a-call"),
        pytest.param([USER, thought("a"), DONE], [thought("a"), DONE], [USER], id="a-thought"),
        pytest.param([USER, thought("a"), DONE], [DONE, USER], [USER], id="its-answer"),
        pytest.param([USER, DONE, USER], [HM, USER], [USER, DONE, USER], id="nothing"),
    ],
)
def test_a_stored_item_that_the_client_sends_is_left_out(
    stored: list[Json], own: list[Json], left: list[Json]
) -> None:
    assert kept(stored, own) == left


@pytest.mark.parametrize(
    ("stored", "own"),
    [
        pytest.param([USER, DONE, USER, DONE, USER], [DONE, USER], id="stored-twice"),
        pytest.param([USER, DONE], [{**DONE, "role": "user"}], id="said-by-somebody-else"),
        pytest.param([USER, DONE], [items.said("Two.", id="msg_0")], id="other-words"),
        pytest.param([USER, DONE], [DONE, items.said("Two.", id="msg_0")], id="also-other-words"),
        pytest.param([USER, thought("a"), DONE], [thought("b"), HM], id="other-thoughts"),
        pytest.param(
            [USER, CALL, RESULT, DONE], [{**CALL, "call_id": "c1"}, USER], id="another-call"
        ),
    ],
)
def test_an_id_of_several_items_names_none(stored: list[Json], own: list[Json]) -> None:
    assert kept(stored, own) == stored


def test_a_call_stays_where_the_client_answers_it() -> None:
    assert kept([USER, CALL], [RESULT, CALL, RESULT]) == [USER, CALL]
    assert kept([USER, CALL], [CALL, RESULT]) == [USER]
