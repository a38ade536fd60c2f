"""Chats that Open WebUI exports."""

from __future__ import annotations

from typing import Any

from tests.support.talk.foreign import archived, dumped, read, read_all, said, sample


def test_chats_become_conversations_of_their_people() -> None:
    format, (walk, rain), warnings = read_all(sample("open_webui.json"))
    assert format == "open_webui"
    assert [(each.id, each.title, each.user) for each in (walk, rain)] == [
        ("44444444-0000-4000-8000-000000000001", "A walk", "walker-1"),
        ("44444444-0000-4000-8000-000000000002", "Rain", "walker-2"),
    ]
    assert (walk.created_at, walk.messages[0].at) == (1740000000.0, 1740000001.0)
    assert walk.system == (b'{"role":"system","content":"Name distances in miles."}',)
    assert said(walk)[0]["content"] == "How long is the ridge path?\n[file, 900 bytes, ridge.gpx]"
    assert len(warnings) == 2


def test_the_branch_that_was_shown_is_active() -> None:
    walk = read(sample("open_webui.json"))[0]
    assert [each.active for each in walk.messages] == [True, False, True, True, True, True]
    assert [line.state for line in archived(walk).lines].count("superseded") == 1


def test_calls_that_are_folded_up_in_the_text_are_calls() -> None:
    walk = read(sample("open_webui.json"))[0]
    call, result, answer = said(walk)[2:5]
    function = {"name": "distance", "arguments": '{"path": "ridge"}'}
    assert call["tool_calls"] == [{"id": "call_7", "type": "function", "function": function}]
    assert result == {"role": "tool", "tool_call_id": "call_7", "content": "4.5 miles"}
    assert answer["content"] == "Four and a half miles."


def test_calls_among_the_items_of_an_answer_are_calls() -> None:
    rain = read(sample("open_webui.json"))[1]
    assert [each["role"] for each in said(rain)] == ["user", "assistant", "tool", "assistant"]
    assert said(rain)[-1] == {"role": "assistant", "content": "It does."}


def chat(history: Any, **more: Any) -> bytes:
    return dumped([{"id": "c", "title": "t", "chat": {"history": history, **more}}])


def test_a_chat_without_a_tree_is_its_list_of_messages() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    (found,) = read(chat({}, messages=messages))
    assert [
        (m["content"], of.parent) for m, of in zip(said(found), found.messages, strict=True)
    ] == [
        ("Hi", -1),
        ("Ho", 0),
    ]


def test_what_is_folded_up_and_never_ends_ends_with_the_text() -> None:
    text = 'Well. <details type="reasoning">and so on' + '<details type="x"' * 50
    (found,) = read(chat({"messages": {"a": {"role": "assistant", "content": text}}}))
    assert said(found)[0]["content"] == "Well."


def test_a_wrong_person_is_nobody() -> None:
    (found,) = read(
        dumped([{"user_id": "two words", "chat": {"messages": [{"role": "user", "content": "x"}]}}])
    )
    assert found.user is None


def test_a_chat_that_ends_where_nothing_is_has_its_newest_branch() -> None:
    messages = {
        "a": {"id": "a", "parentId": None, "role": "user", "content": "Hi", "timestamp": 1},
        "b": {"id": "b", "parentId": "a", "role": "assistant", "content": "Ho", "timestamp": 3},
        "c": {"id": "c", "parentId": "a", "role": "assistant", "content": "He", "timestamp": 2},
    }
    (found,) = read(chat({"messages": messages, "currentId": "gone"}))
    active = [m["content"] for m, of in zip(said(found), found.messages, strict=True) if of.active]
    assert active == ["Hi", "Ho"]
