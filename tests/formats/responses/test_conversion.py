"""Items as chat messages and back: nothing is lost, moved or made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.chat import jsontext
from proxy.chat.message import Piece, read_message
from proxy.chat.native import without_native
from proxy.chat.request import ChatRequest
from proxy.formats.format import Addition
from proxy.formats.responses.api import Responses
from proxy.formats.responses.chat import chat_from_items, items_from_chat
from proxy.formats.responses.items import (
    ResponseItem,
    group_by_message,
    may_call,
    read_items,
    split_answers,
)
from proxy.formats.responses.reading import message_of
from proxy.memory.reconciliation.joined_answers import split_known_answers
from tests.support.steps import steps

FORMAT = Responses()
LIMIT = 65_536

ids = st.text("abc123_", min_size=1, max_size=6)
texts = st.text(max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def item(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


output_text = st.fixed_dictionaries(
    {"type": st.just("output_text"), "text": texts, "annotations": st.just([])}
)
input_part = (
    st.fixed_dictionaries({"type": st.just("input_text"), "text": texts})
    | st.fixed_dictionaries(
        {"type": st.just("input_image"), "image_url": st.just("https://a/b.png")},
        optional={"detail": st.sampled_from(["auto", "low", "original"])},
    )
    | st.fixed_dictionaries({"type": st.just("input_image"), "file_id": ids})
    | st.fixed_dictionaries({"type": st.just("input_file"), "file_id": ids})
    | st.fixed_dictionaries({"type": st.just("input_file"), "file_url": texts})
    | st.fixed_dictionaries({"type": st.just("input_tomorrow"), "x": json_values})
)
from_client = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "system", "developer"]),
        "content": texts | st.lists(input_part, max_size=3),
    },
    optional={"type": st.just("message"), "id": ids, "status": st.just("completed")},
)
from_model = st.one_of(
    st.fixed_dictionaries({"role": st.just("assistant"), "content": texts}),
    item(
        "message",
        id=ids,
        role=st.just("assistant"),
        status=st.just("completed"),
        content=st.lists(output_text, max_size=2),
        phase=st.sampled_from(["commentary", "final_answer"]),
    ),
    item("reasoning", id=ids, summary=st.just([]), encrypted_content=texts),
    item("function_call", call_id=ids, name=ids, arguments=texts),
    item("function_call", id=ids, call_id=ids, name=ids, arguments=texts, status=texts),
    item("custom_tool_call", call_id=ids, name=ids, input=texts),
    item("shell_call", id=ids, call_id=ids, action=json_values),
    item("apply_patch_call", call_id=ids, operation=json_values),
    item("computer_call", id=ids, call_id=ids, action=json_values),
    item("mcp_approval_request", id=ids, name=ids, arguments=texts, server_label=ids),
    item("web_search_call", id=ids, action=json_values),
    item("mcp_call", id=ids, output=texts),
    item("compaction", id=ids, encrypted_content=texts),
    item("of_tomorrow", what=json_values),
    st.dictionaries(st.sampled_from(["type", "x", "y"]), json_values, max_size=3),
)
answers = st.one_of(
    item("function_call_output", call_id=ids, output=texts | st.lists(input_part, max_size=2)),
    item("custom_tool_call_output", call_id=ids, output=texts),
    item("shell_call_output", call_id=ids, output=json_values),
    item("apply_patch_call_output", call_id=ids, status=st.just("failed"), output=texts),
    item("computer_call_output", call_id=ids, output=json_values),
    item("mcp_approval_response", approval_request_id=ids, approve=st.booleans()),
)
conversations = st.lists(from_client | from_model | answers, max_size=8)


def items(values: list[dict[str, Any]]) -> list[ResponseItem]:
    found = read_items([jsontext.encode(value) for value in values])
    assert found is not None
    return found


@settings(deadline=None)
@given(conversations)
def test_grouping_moves_nothing(values: list[dict[str, Any]]) -> None:
    listed = items(values)
    assert [item for group in group_by_message(listed) for item in group] == listed


@settings(deadline=None)
@given(conversations)
def test_what_is_stored_says_the_same_items_again(values: list[dict[str, Any]]) -> None:
    """Of a conversation that no upstream would refuse: calls and outputs match in kind."""
    request = read({"input": _matching(values)})
    stored = [
        (message.chat_json or message.raw) for message in (*request.leading, *request.messages)
    ]
    empty = read({"input": []})
    again = json.loads(FORMAT.write(empty, Addition(None, stored, "", "", False)))["input"]
    assert [plain(value) for value in again] == [
        plain(value) for value in _sendable(request, _matching(values))
    ]


def _matching(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each call followed by the output that fits it, each output with its call before it, and no
    id twice."""
    found: list[dict[str, Any]] = []
    for number, value in enumerate(values):
        [one] = items([value])
        value = {**value, "id": f"{one.id}_{number}"} if one.id else dict(value)
        if one.call is not None:
            key = "id" if one.kind == "mcp_approval_request" else "call_id"
            value[key] = f"call_{number}"
            found += [value, _fitting(one.kind, value[key])]
        elif one.answers is None:
            found.append(value)
    return found


def _fitting(kind: str, id: str) -> dict[str, Any]:
    if kind == "mcp_approval_request":
        return {"type": "mcp_approval_response", "approval_request_id": id, "approve": True}
    return {"type": f"{kind}_output", "call_id": id, "output": "done"}


def _sendable(request: ChatRequest, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Thoughts at the end of what a model says go nowhere: they would be refused."""
    kept: list[dict[str, Any]] = []
    for group in group_by_message(items(values)):
        listed = list(group)
        while len(listed) > 0 and listed[-1].kind == "reasoning":
            listed.pop()
        kept += [json.loads(item.raw) for item in listed]
    return kept


def plain(value: dict[str, Any]) -> object:
    """Less what says nothing: the type of a message, and that it is complete; ids of clients'."""
    said = {k: v for k, v in value.items() if v not in (None, [], "")}
    if said.get("type") == "message":
        del said["type"]
    if said.get("role") in ("user", "system", "developer"):
        said.pop("id", None)
    if said.get("status") == "completed":
        del said["status"]
    for key in ("content", "output"):
        if isinstance(said.get(key), list):
            said[key] = [_part(part) for part in said[key]]
            if all(part.keys() == {"type", "text"} for part in said[key]) and len(said[key]) == 1:
                said[key] = said[key][0]["text"]
    return {key: each for key, each in said.items() if each not in ("", [])}


def _part(part: Any) -> Any:
    kept = {k: v for k, v in part.items() if v not in ([], None)}
    if kept.get("detail") == "auto":
        del kept["detail"]
    return kept


def read(body: dict[str, Any]) -> ChatRequest:
    request = FORMAT.read(json.dumps({"model": "m", **body}).encode(), LIMIT)
    assert isinstance(request, ChatRequest)
    return request


chat_parts = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.fixed_dictionaries(
        {"type": st.just("image_url"), "image_url": st.just({"url": "https://a/b.png"})}
    ),
    st.fixed_dictionaries({"type": st.just("file"), "file": st.just({"file_id": "file_1"})}),
)
tool_calls = st.lists(
    st.builds(
        lambda id, name, arguments: {
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        },
        ids,
        ids,
        st.sampled_from(["{}", '{"a": 1.50}', "no JSON"]),
    ),
    min_size=1,
    max_size=3,
)
chat_messages = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system"]), "content": texts | st.lists(chat_parts)}
    ),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": texts}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.none() | texts, "tool_calls": tool_calls}
    ),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.none(), "refusal": st.just("No.")}
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": ids, "content": texts}),
)


@settings(deadline=None)
@given(chat_messages)
def test_what_both_can_say_is_the_same_there_and_back(message: dict[str, Any]) -> None:
    listed = read_items(items_from_chat(message, {}))
    assert listed is not None
    before = read_message(jsontext.encode(message))
    assert before is not None
    if not listed:
        assert before.blank
        return
    [group] = group_by_message(listed)
    after = read_message(jsontext.encode(chat_from_items(group)))
    assert after is not None
    assert (after.digest, after.calls, after.answers) == (
        before.digest,
        before.calls,
        before.answers,
    )


@settings(deadline=None)
@given(st.lists(from_model, min_size=1, max_size=5))
def test_an_answer_equals_itself_when_a_client_sends_it_again(output: list[dict[str, Any]]) -> None:
    answered = {"object": "response", "id": "resp_1", "status": "completed", "output": output}
    reply = FORMAT.read_reply(jsontext.encode(answered))
    assert reply is not None and len(reply.choices) == 1
    [again] = read({"input": output}).messages
    choice = reply.choices[0]
    assert (choice.digest, choice.calls, choice.blank) == (again.digest, again.calls, again.blank)


@settings(deadline=None)
@given(st.lists(from_model, min_size=1, max_size=6), st.sets(st.integers(0, 5)))
def test_what_is_told_apart_is_the_same_items(
    output: list[dict[str, Any]], places: set[int]
) -> None:
    [message] = read({"input": output}).messages
    parts = [message_of(part, LIMIT) for part in split_answers(items(output))]
    known = {part.digest for place, part in enumerate(parts) if place in places}
    found = split_known_answers([message], known)
    assert b",".join(each.raw for each in found) == message.raw


def test_parting_takes_steps_that_grow_with_the_items_alone() -> None:
    def work(n: int) -> int:
        thoughts = items([{"type": "reasoning", "summary": []}] * n)
        return steps(lambda: split_answers(thoughts))

    assert work(400) < 5 * work(100)


hostile = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "role", "id", "call_id", "content", "text", "output", "input", "name"]
            )
            | st.sampled_from(["arguments", "image_url", "approval_request_id", "refusal"]),
            inner | st.sampled_from(["message", "function_call", "input_text", "user"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["input", "model", "instructions", "store"]), hostile))
def test_whatever_comes_is_read_or_refused(body: dict[str, Any]) -> None:
    request = FORMAT.read(jsontext.encode(body), 64)
    if not isinstance(request, ChatRequest):
        assert request == "invalid_body"
        return
    for message in request.messages:
        assert jsontext.fields(without_native(message.record))
    pieces: list[Piece] = [*request.messages, *(message.record for message in request.messages)]
    for separate in (True, False):
        jsontext.fields(FORMAT.write(request, Addition(None, pieces, "head", "tail", separate)))


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["object", "output", "status", "id", "usage"]), hostile))
def test_so_is_whatever_is_answered(body: dict[str, Any]) -> None:
    reply = FORMAT.read_reply(jsontext.encode({"object": "response", **body}))
    for choice in reply.choices if reply is not None else ():
        assert jsontext.fields(choice.body)


@pytest.mark.parametrize("text", [r'"\ud83d"', r'"\ud83d\ude42"'])
def test_half_a_surrogate_pair_is_kept(text: str) -> None:
    body = f'{{"model":"m","input":[{{"role":"user","content":{text}}}]}}'.encode()
    request = FORMAT.read(body, LIMIT)
    assert isinstance(request, ChatRequest)
    assert text.encode() in request.messages[0].raw


@given(conversations)
def test_a_quick_look_overlooks_no_call(values: list[dict[str, Any]]) -> None:
    for item in items(values):
        if item.call is not None or item.answers is not None:
            assert may_call(item.raw)
    assert may_call(rb'{"type":"function\u005fcall","call_id":"c"}')
    assert not may_call(b'{"type":"message","role":"assistant","content":"It is late."}')


TEXT = {"type": "input_text", "text": "done"}
COMMAND = {"stdout": "a.txt\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}


@pytest.mark.parametrize(
    "output",
    [
        [COMMAND],
        [COMMAND, COMMAND],
        [{"type": "input_video", "video_url": "https://a/b"}],
        [{"type": "input_image", "file_id": "file_1"}],
        [{"type": "input_image", "image_url": "https://a/b.png"}],
        [{"type": "input_image", "image_url": "https://a/b.png"}, TEXT],
        [""],
    ],
)
def test_an_output_that_is_more_than_text_is_json(output: list[Any]) -> None:
    assert json.loads(_told(output)) == output


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ([TEXT], "done"),
        ([{"type": "output_text", "text": "done"}], "done"),
        ([TEXT, TEXT], [{"type": "text", "text": "done"}] * 2),
    ],
)
def test_an_output_of_texts_is_text(output: list[Any], told: object) -> None:
    assert _told(output) == told


def _told(output: list[Any]) -> Any:
    said = {"type": "shell_call_output", "call_id": "c", "output": output}
    return chat_from_items(items([said]))["content"]


COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "all of it"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "hm"}


def test_a_compaction_alone_says_which_one_it_is() -> None:
    alone, named = _said(COMPACTION), _said({**COMPACTION, "id": "cmp_2"})
    another = _said({**COMPACTION, "encrypted_content": "all of that"})
    assert alone == named == "[compaction, 9 bytes, sha256 07630777646b9ad0]"
    assert another != alone
    assert _said({**COMPACTION, "encrypted_content": "\ud83d"}).startswith("[compaction, ")


def test_beside_words_it_says_nothing_and_neither_do_thoughts_and_tools() -> None:
    words = {"type": "message", "role": "assistant", "content": "Yes."}
    assert _said(COMPACTION, words) == "Yes."
    tools = ("additional_tools", "configuration_update", "mcp_list_tools", "compaction_trigger")
    assert [_said({"type": kind}) for kind in tools] == [""] * len(tools)
    assert _said(THOUGHT) == _said({"type": "item_reference", "id": "rs_1"}) == ""


def _said(*group: dict[str, Any]) -> Any:
    return chat_from_items(items(list(group)))["content"]
