"""Requests of the Messages API: what is read of them, and where memory goes into them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.message import ChatMessage, Piece
from proxy.chat.request import MAX_TEXT, ChatRequest
from proxy.formats.format import Addition
from proxy.formats.messages.messages import Messages, TokenCount
from proxy.formats.native import native_of
from proxy.memory.reconciliation.joined_answers import split_known_answers
from tests.support.upstream.anthropic import text, thinking, tool_result, tool_use

Json = dict[str, Any]
FORMAT = Messages()
USE = tool_use("look", {}, "toolu_1")


def read(messages: Any, **more: Any) -> Any:
    body = {"model": "m", "max_tokens": 9, "messages": messages, **more}
    return FORMAT.read(json.dumps(body).encode(), 1000)


def request(messages: Any, **more: Any) -> ChatRequest:
    found = read(messages, **more)
    assert isinstance(found, ChatRequest), found
    return found


def written(
    asked: ChatRequest, *stored: Json, head: str = "", tail: str = "", separate: bool = False
) -> Json:
    pieces: list[Piece] = [*(json.dumps(each).encode() for each in stored), *asked.messages]
    addition = Addition(system=None, messages=pieces, head=head, tail=tail, separate=separate)
    found: Json = json.loads(FORMAT.write(asked, addition))
    return found


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def said(message: ChatMessage) -> Json:
    found: Json = json.loads(message.record)
    found.pop("native", None)
    return found


# Reading


def test_results_stand_alone_and_what_is_said_beside_them_is_a_message() -> None:
    results = [tool_result("toolu_1", "rain"), tool_result("toolu_2", [text("sun")])]
    found = request([user([*results, text("And now?")])])
    assert [said(message) for message in found.messages] == [
        {"role": "tool", "tool_call_id": "toolu_1", "content": "rain"},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "sun"},
        {"role": "user", "content": "And now?"},
    ]


def test_what_a_request_says_of_itself() -> None:
    found = request([user("Hi")], system=[text("Be brief.")])
    assert (found.model, found.max_output, found.n) == ("m", 9, 1)
    assert found.system_text == "Be brief."
    assert not found.wants_system
    assert found.system_record == ()


@pytest.mark.parametrize(
    ("choice", "forces"),
    [({"type": "tool", "name": "x"}, True), ({"type": "any"}, True), ({"type": "auto"}, False)],
)
def test_a_call_may_be_forced(choice: Json, forces: bool) -> None:
    assert request([user("Hi")], tool_choice=choice).forces_calls == forces


def test_marks_are_sent_and_not_stored() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    blocks = [{**text("Hi"), **mark}, {"type": "later", "x": 1, **mark}]
    (message,) = request([user(blocks)]).messages
    assert message.raw.count(b"cache_control") == 2
    assert b"cache_control" not in message.record
    (bare,) = request([user([text("Hi"), {"type": "later", "x": 1}])]).messages
    assert message.digest == bare.digest


def test_an_input_may_have_a_field_of_that_name() -> None:
    (message,) = request(
        [{"role": "assistant", "content": [tool_use("x", {"cache_control": 1})]}]
    ).messages
    assert b"cache_control" in message.record


def test_large_media_is_a_line_of_text_wherever_it_is() -> None:
    data = {"type": "base64", "media_type": "application/pdf", "data": "QUJD" * 500}
    document = {"type": "document", "source": data, "context": "so that it has parts of its own"}
    image = {"type": "image", "source": data}
    result = tool_result("toolu_1", [image])
    chunks = {"type": "document", "source": {"type": "content", "content": [text("One."), image]}}
    found = request([user([result, document]), user([chunks])])
    assert len(found.messages) == 3
    for message in found.messages:
        assert b"QUJD" not in message.record
        assert b"[application/pdf, 1500 bytes, sha256 " in message.record
        assert b"QUJD" in message.raw


def test_a_long_text_is_no_media() -> None:
    words = {"type": "text", "media_type": "text/plain", "data": "word " * 500}
    document = {"type": "document", "source": words, "title": "Words"}
    (message,) = request([user([document])]).messages
    parts = native_of(message.record, "messages")
    assert parts is not None
    assert [json.loads(part) for part in parts] == [document]


@pytest.mark.parametrize(
    "content", [[text("One."), text("Two.")], "One.\nTwo."], ids=["list", "text"]
)
def test_a_document_in_chunks_is_their_text_elsewhere(content: Any) -> None:
    document = {"type": "document", "source": {"type": "content", "content": content}}
    (message,) = request([user([document, text("Which?")])]).messages
    assert message.text.startswith("One.\nTwo.")
    parts = native_of(message.record, "messages")
    assert parts is not None
    assert json.loads(parts[0]) == document


def test_one_with_a_picture_in_it_is_a_line() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    source = {"type": "content", "content": [text("One."), picture]}
    (message,) = request([user([{"type": "document", "source": source}])]).messages
    assert message.text.startswith("[document, ")


def test_a_block_of_memory_that_comes_back_is_not_recorded() -> None:
    block = '<memory version="1" kind="recall">\nnote\nlines\n</memory>'
    for content in (f"{block}\n\nHi", [text(block), text("Hi")]):
        (message,) = request([user(content)]).messages
        (bare,) = request([user("Hi")]).messages
        assert (message.text, message.digest) == ("Hi", bare.digest)
        assert b"memory version" not in message.record
        assert native_of(message.record, "messages") is None
        assert b"memory version" in message.raw


ODD: list[Any] = [
    None, 5, "x", {}, [5], [[]], ["x"], [None], [{}], [{"role": "user"}], [{"content": "x"}],
    [{"role": 5, "content": "x"}], [user(5)], [user(None)], [user({})], [user([5])], [user(["x"])],
    [user([[]])], [{"role": ["user"], "content": [text("x")]}],
]  # fmt: skip


@pytest.mark.parametrize("messages", ODD, ids=repr)
def test_what_cannot_be_taken_apart_is_not_ours_to_judge(messages: Any) -> None:
    assert read(messages) == "invalid_body"


@pytest.mark.parametrize("system", [5, {}, [5], ["x"], True], ids=repr)
def test_nor_is_system_text_of_another_shape(system: Any) -> None:
    assert read([user("Hi")], system=system) == "invalid_body"


def test_nor_is_what_is_too_much() -> None:
    assert read([user("x" * (MAX_TEXT + 1))]) == "too_much_text"
    assert read([user([text("x")] * 100_000)]) == "too_many_parts"
    assert read([user([tool_result("t", "")] * 12_001)]) == "too_many_parts"


KEYS = st.sampled_from(
    ["type", "text", "source", "content", "tool_use_id", "id", "name", "input", "native", "data"]
    + ["media_type", "url", "title", "thinking", "cache_control", "is_error", "role", "tool_calls"]
)
KINDS = st.sampled_from(
    ["text", "image", "document", "tool_use", "tool_result", "thinking", "search_result", "later"]
    + ["base64", "url", "messages"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | KINDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=15,
)
odd_messages = st.builds(
    lambda role, content, more: {**more, "role": role, "content": content},
    st.sampled_from(["user", "assistant", "system", "tool", "function", "x"]),
    st.text(max_size=5) | st.lists(st.dictionaries(KEYS, anything, max_size=5), max_size=4),
    st.dictionaries(KEYS, anything, max_size=2),
)


def test_what_has_more_blocks_than_were_counted_stays_one() -> None:
    plain, escaped = b'{"type":"text","text":"a"}', b'{"\\u0074ype":"text","text":"a"}'
    content = b"[" + b",".join([plain, plain, escaped]) + b"]"
    answer = b'{"role":"assistant","content":' + content + b"}"
    found = FORMAT.read(b'{"messages":[' + answer + b"]}", 1000)
    assert isinstance(found, ChatRequest)
    [message] = found.messages
    assert message.splitter is not None and message.max_parts == 2
    assert split_known_answers([message], {"other"}) == (message,)


@pytest.mark.parametrize("content", ["Hello", [], [text("Hello")]], ids=repr)
def test_what_cannot_be_told_apart_stays_one(content: Any) -> None:
    more = {"source": {"type": "page", "of": {"type": "book"}}}
    [message] = request([{"role": "assistant", "content": content, **more}]).messages
    assert message.splitter is not None
    assert split_known_answers([message], {"other"}) == (message,)


@given(st.lists(odd_messages, max_size=4), anything)
def test_blocks_of_any_shape_are_read_and_written_or_left_alone(
    messages: list[Json], system: Any
) -> None:
    found = read(messages, system=system)
    if isinstance(found, ChatRequest):
        records = [json.loads(message.record) for message in found.messages]
        written(found, *records, head="head", tail="tail")


# Writing


def test_a_request_without_memory_keeps_what_it_says() -> None:
    asked = request([user("Hi")], system=[text("Be brief.")], top_k=1.50)
    found = written(asked)
    assert found["messages"] == [user("Hi")]
    assert list(found) == ["model", "max_tokens", "messages", "system", "top_k"]


@pytest.mark.parametrize(
    ("system", "sent", "separate"),
    [
        (None, "HEAD", False),
        ("Be brief.", "Be brief.\n\nHEAD", False),
        ([text("Be brief.")], [text("Be brief."), text("HEAD")], False),
        ("Be brief.", [text("Be brief."), text("HEAD")], True),
    ],
)
def test_what_is_known_stands_behind_the_system_text(
    system: Any, sent: Any, separate: bool
) -> None:
    own = {} if system is None else {"system": system}
    found = written(request([user("Hi")], **own), head="HEAD", separate=separate)
    assert found["system"] == sent


@pytest.mark.parametrize("content", ["Hi", [text("Hi")]])
def test_what_is_recalled_stands_before_the_question(content: Any) -> None:
    found = written(request([user(content)]), tail="TAIL")
    assert found["messages"] == [user([text("TAIL"), text("Hi")])]


def test_it_stands_behind_the_results_that_must_come_first() -> None:
    stored = [user("One?"), json.loads(stored_answer(USE))]
    asked = request([user([tool_result("toolu_1", "rain"), text("And now?")])])
    found = written(asked, *stored, tail="TAIL")
    assert found["messages"][-1] == user(
        [tool_result("toolu_1", "rain"), text("TAIL"), text("And now?")]
    )


def test_in_a_running_loop_it_stands_before_the_question_of_its_turn() -> None:
    stored = [user("One?"), json.loads(stored_answer(thinking("Hm."), USE))]
    found = written(request([user([tool_result("toolu_1", "rain")])]), *stored, tail="TAIL")
    assert found["messages"] == [
        user([text("TAIL"), text("One?")]),
        {"role": "assistant", "content": [thinking("Hm."), USE]},
        user([tool_result("toolu_1", "rain")]),
    ]


def stored_answer(*blocks: Json) -> bytes:
    (message,) = request([{"role": "assistant", "content": list(blocks)}]).messages
    return message.record


def test_messages_of_one_role_are_one() -> None:
    found = written(request([user("Three?")]), user("One?"), user([text("Two?")]))
    assert found["messages"] == [user([text("One?"), text("Two?"), text("Three?")])]


def test_a_person_speaks_first() -> None:
    stored = [{"role": "assistant", "content": "Welcome."}, user("One?")]
    assert written(request([user("Two?")]), *stored)["messages"][0]["content"][0] == text("One?")


def test_but_a_call_that_the_client_answers_stays() -> None:
    stored = [json.loads(stored_answer(USE))]
    found = written(request([user([tool_result("toolu_1", "rain")])]), *stored)
    assert [each["role"] for each in found["messages"]] == ["assistant", "user"]


@pytest.mark.parametrize("content", ["", " \n", [], [text(" ")], None])
def test_what_says_nothing_is_left_out(content: Any) -> None:
    stored = [user("One?"), {"role": "assistant", "content": content}, user("Two?")]
    found = written(request([user("Three?")]), *stored)
    assert found["messages"] == [user([text("One?"), text("Two?"), text("Three?")])]


def calls(*ids: str) -> Json:
    function = {"name": "a.b", "arguments": "[1]"}
    made = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def results(*ids: str) -> list[Json]:
    return [{"role": "tool", "tool_call_id": id, "content": "x"} for id in ids]


def test_ids_of_other_upstreams_are_made_to_fit() -> None:
    stored = [user("One?"), calls("c|1", "", ""), *results("", "c|1", ""), user("Two?")]
    found = written(request([user("Three?")]), *stored)
    uses = found["messages"][1]["content"]
    answered = [block["tool_use_id"] for block in found["messages"][2]["content"][:3]]
    assert sorted(answered) == sorted(use["id"] for use in uses)
    assert len({*answered}) == 3
    assert all(id.replace("_", "").isalnum() for id in answered)
    assert {(use["name"], json.dumps(use["input"])) for use in uses} == {("a_b", '{"input": [1]}')}


def test_a_stored_call_without_an_id_gets_one_with_its_result() -> None:
    use, result = {"type": "tool_use", "name": "x", "input": {}}, {"type": "tool_result"}
    asked = [user("Look."), {"role": "assistant", "content": [use]}, user([result])]
    records = [json.loads(message.record) for message in request(asked).messages]
    sent = written(request([user("Thanks.")]), *records)["messages"]
    [kept], [answer, _] = sent[1]["content"], sent[2]["content"]
    assert kept["id"] == answer["tool_use_id"] == "call_1"


def test_of_calls_with_one_id_the_last_keeps_it() -> None:
    again = [calls("c1"), *results("c1"), user("Again?")]
    stored = [user("One?"), *again, *again, calls("c1")]
    found = written(request([user([tool_result("c1", "rain")])]), *stored)
    blocks = [b for each in found["messages"] for b in each["content"] if isinstance(b, dict)]
    assert [b["id"] for b in blocks if b["type"] == "tool_use"] == ["c1_1", "c1_2", "c1"]
    answered = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
    assert answered == ["c1_1", "c1_2", "c1"]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,QUJD"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "later"},
    ],
    ids=lambda part: str(part["type"]),
)
def test_what_this_api_cannot_say_is_a_line_of_text(part: Json) -> None:
    found = written(request([user("Two?")]), user([part]), {"role": "assistant", "content": "Yes"})
    sent = found["messages"][0]["content"]
    assert sent.startswith("[")
    assert "sha256" in sent


def test_legacy_functions_are_calls() -> None:
    called = {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}}
    stored = [user("One?"), called, {"role": "function", "name": "look", "content": "x"}]
    found = written(request([user("Two?")]), *stored)
    (use,) = found["messages"][1]["content"]
    assert found["messages"][2]["content"][0] == tool_result(use["id"], "x")


# Beside the conversation

TITLE = text("Generate a concise, sentence-case title (3-7 words) that …")
COMPACTION = "Your task is to create a detailed summary of the conversation so far, …"
ENDED = f"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n- Do NOT …\n\n{COMPACTION}"


@pytest.mark.parametrize(
    ("asked", "headers", "aside"),
    [
        (request([user("Hi")]), [], False),
        (request([user("quota")], max_tokens=1), [], True),
        (request([user("Hi")], system=[text("cc_version=1;"), TITLE]), [], True),
        (request([user("Please generate a concise, sentence-case title")]), [], False),
        (request([user([tool_result("t", "x"), text("[SUGGESTION MODE: What next?]")])]), [], True),
        (request([user(COMPACTION)]), [], True),
        (request([user([text("And now?\n"), text(ENDED)])]), [], True),
        (request([user(f"What is '{ENDED[:55]}'?")]), [], False),
        (request([user("Hi")]), [(b"x-claude-code-agent-id", b"a1")], True),
        (request([user("Hi")]), [(b"x-claude-code-agent-id", b" ")], False),
        (request([user("Hi")]), [(b"x-claude-code-request-class", b"auxiliary")], True),
        (request([user("Hi")]), [(b"x-claude-code-request-class", b"Main")], False),
    ],
)  # fmt: skip
def test_what_programs_ask_beside_the_conversation(
    asked: ChatRequest, headers: list[tuple[bytes, bytes]], aside: bool
) -> None:
    assert FORMAT.is_side_request(asked, headers) == aside
    assert not TokenCount().is_side_request(asked, headers)


# Thinking that is refused

BOUND = (
    b'{"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block. The '
    b'block is bound to a different conversation."}}'
)
OLD = {"role": "assistant", "content": [thinking("Hm."), text("Yes.")]}
RUNNING = {"role": "assistant", "content": [thinking("So."), USE]}
TALK = [user("One?"), OLD, user("Two?"), RUNNING, user([tool_result("toolu_1", "x")])]


def unsigned(messages: list[Json], status: int = 400, error: bytes = BOUND) -> list[Json] | None:
    body = json.dumps({"messages": messages}).encode()
    found = FORMAT.without_signed(body, status, error)
    return None if found is None else json.loads(found)["messages"]


def test_thinking_of_older_turns_goes_first_then_that_of_the_running_loop_then_there_is_none() -> (
    None
):
    older = {"role": "assistant", "content": [text("Yes.")]}
    running = {"role": "assistant", "content": [USE]}
    assert unsigned(TALK) == (first := [TALK[0], older, TALK[2], RUNNING, TALK[4]])
    assert unsigned(first) == (then := [TALK[0], older, TALK[2], running, TALK[4]])
    assert unsigned(then) is None


def test_an_answer_that_was_nothing_else_goes_with_it() -> None:
    assert unsigned([user("One?"), {"role": "assistant", "content": [thinking("Hm.")]}]) == [
        user("One?")
    ]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, b'{"error": {"message": "prompt is too long"}}'),
        (401, BOUND),
        (500, BOUND),
        (400, b"thinking.budget_tokens: Input should be greater than 1024"),
    ],
)
def test_for_another_error_it_stays(status: int, error: bytes) -> None:
    assert unsigned(TALK, status, error) is None


@pytest.mark.parametrize(
    "error",
    [
        b"Invalid `data` in `redacted_thinking` block",
        b"`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        b"modified",
    ],
)
def test_other_words_for_the_same(error: bytes) -> None:
    assert unsigned(TALK, 400, error) is not None
