"""Conversations that LibreChat exports, nested and flat."""

from __future__ import annotations

import json

import pytest

from proxy.portable import check
from proxy.portable.source import InvalidFile
from tests.support.talk.foreign import Json, archived, dumped, read, read_all, said, sample


def test_a_tree_becomes_a_conversation_with_branches() -> None:
    format, (found,), warnings = read_all(sample("librechat_tree.json"))
    assert (format, found.title) == ("librechat", "Compost")
    assert found.id == "55555555-0000-4000-8000-000000000001"
    assert found.system == (b'{"role":"system","content":"You know gardens."}',)
    states = [(m["content"], of.active) for m, of in zip(said(found), found.messages, strict=True)]
    assert states == [
        ("What goes on the compost?", True),
        ("Leaves.", True),
        ("Grass.", False),
        ("And peel?", True),
        (None, True),
        ("rots well", True),
        ("Peel too.", True),
    ]
    assert archived(found).session.created_at == 1746093600.0
    assert warnings == ["What a model only thought was left out."]


def test_calls_have_their_results() -> None:
    (found,) = read(sample("librechat_tree.json"))
    call, result = said(found)[4:6]
    assert call["tool_calls"][0]["function"] == {"name": "lookup", "arguments": '{"what": "peel"}'}
    assert result["tool_call_id"] == call["tool_calls"][0]["id"] == "call_3"


def test_a_flat_list_is_read_alike_and_errors_are_left_out() -> None:
    _, (found,), warnings = read_all(sample("librechat_flat.json"))
    assert [each["content"] for each in said(found)] == [
        "When are beans sown?\n[image/jpeg, 77 bytes, bed.jpg]",
        "In May.",
    ]
    assert [each.at for each in found.messages] == [1748772000.0, 1748772003.0]
    assert len(warnings) == 2


def test_an_error_behind_an_answer_and_a_text_that_is_none_say_nothing() -> None:
    parts = [{"type": "text", "text": "Beans"}, {"type": "text"}, {"type": "error", "error": "503"}]
    messages = [
        {"messageId": "a", "isCreatedByUser": True, "text": "What grows?"},
        {"messageId": "b", "parentMessageId": "a", "content": parts},
        {"messageId": "c", "parentMessageId": "b", "isCreatedByUser": True, "text": "And?"},
        {"messageId": "d", "parentMessageId": "c", "content": parts[2:]},
    ]
    file = json.dumps({"conversationId": "c", "messages": messages}).encode()
    _, (found,), warnings = read_all(file)
    assert [each["content"] for each in said(found)] == ["What grows?", "Beans", "And?"]
    assert warnings == ["Errors were left out (2 times)."]


def test_what_was_said_while_an_answer_was_made_is_the_users() -> None:
    call = {"name": "look_up", "args": "{}", "output": "beans"}
    parts = [
        {"type": "summary", "content": [{"type": "text", "text": "A garden."}]},
        {"type": "text", "text": "I look."},
        {"type": "activity_label", "activity_label": "Looked up"},
        {"type": "tool_call", "tool_call": call},
        {"type": "steer", "steer": "Only what needs no sun!", "steerId": "s"},
        {"type": "tool_call", "tool_call": call},
        {"type": "text", "text": "Then chervil."},
    ]
    messages = [
        {"messageId": "a", "isCreatedByUser": True, "text": "What do I sow?"},
        {"messageId": "b", "parentMessageId": "a", "content": parts},
    ]
    (found,) = read(json.dumps({"conversationId": "c", "messages": messages}).encode())
    assert [(each["role"], each["content"]) for each in said(found)] == [
        ("user", "What do I sow?"),
        ("assistant", "I look."),
        ("tool", "beans"),
        ("user", "Only what needs no sun!"),
        ("assistant", None),
        ("tool", "beans"),
        ("assistant", "Then chervil."),
    ]
    assert len({each["tool_call_id"] for each in said(found) if each["role"] == "tool"}) == 2
    assert len(archived(found).exchanges) == 2


def nested(depth: int) -> bytes:
    message = '{"messageId":"m%d","isCreatedByUser":%s,"text":"text %d","children":['
    opening = "".join(message % (n, "true" if n % 2 == 0 else "false", n) for n in range(depth))
    tree = opening + "]}" * depth
    return f'{{"conversationId":"c","recursive":true,"messagesTree":[{tree}]}}'.encode()


def test_a_tree_as_deep_as_a_long_conversation_is_read() -> None:
    (found,) = read(nested(1_000), piece=10_000)
    assert [each["content"] for each in said(found)] == [f"text {n}" for n in range(1_000)]
    assert all(each.active for each in found.messages)


def test_a_tree_that_is_deeper_than_a_conversation_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "MAX_MESSAGES", 100)
    with pytest.raises(InvalidFile, match="a conversation of over 100 messages"):
        read(nested(101), piece=10_000)


def test_anything_else_as_deep_is_refused_and_does_no_harm() -> None:
    deep = "[" * 20_000 + "]" * 20_000
    call = f'{{"type":"tool_call","tool_call":{{"name":"x","args":{{"a":{deep}}}}}}}'
    text = f'{{"conversationId":"c","messages":[{{"messageId":"a","content":[{call}]}}]}}'
    with pytest.raises(InvalidFile, match="nested too deeply, behind conversation 0"):
        read(text.encode(), piece=10_000)


def test_messages_keep_what_stands_behind_their_children() -> None:
    child: Json = {"messageId": "b", "text": "Ho", "isCreatedByUser": False}
    message = {"messageId": "a", "children": [child], "text": "Hi", "isCreatedByUser": True}
    (found,) = read(dumped({"conversationId": "c", "messages": [message], "title": "t"}))
    assert ([each["content"] for each in said(found)], found.title) == (["Hi", "Ho"], "t")


def test_a_list_named_children_that_is_none_of_messages_stays_what_it_is() -> None:
    part = {"type": "tool_call", "tool_call": {"name": "x", "args": {"children": [{"a": 1}]}}}
    message = {"messageId": "a", "content": [part]}
    (found,) = read(dumped({"conversationId": "c", "messages": [message]}))
    assert json.loads(said(found)[0]["content"].partition(": ")[2][:-1]) == {"children": [{"a": 1}]}
