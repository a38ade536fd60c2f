"""Conversations of Claude.ai's export, in its newer and its older form."""

from __future__ import annotations

from typing import Any

from tests.support.talk.foreign import archived, dumped, read, read_all, said, sample


def test_an_export_becomes_conversations_with_their_dates() -> None:
    format, (bread, boat), _ = read_all(sample("claude.json"))
    assert (format, bread.id, bread.title) == (
        "claude",
        "11111111-0000-4000-8000-000000000001",
        "Sourdough",
    )
    assert bread.created_at == 1740819600.0
    seconds = [each.at - bread.created_at for each in bread.messages if each.at is not None]
    assert seconds == [1, 5, 60, 60, 60, 120]
    assert (boat.title, [each.at for each in boat.messages]) == (None, [1704448800.0, 1704448802.0])
    assert said(boat) == [
        {"role": "user", "content": "My boat is called Heron."},
        {"role": "assistant", "content": "A fine name."},
    ]


def test_the_answer_that_was_given_last_is_on_the_active_branch() -> None:
    bread = read(sample("claude.json"))[0]
    active = [
        each["content"] for each, of in zip(said(bread), bread.messages, strict=True) if of.active
    ]
    assert "Two days." not in active
    assert active[-2:] == ["Twelve hours.", "Thank you."]
    states = [line.state for line in archived(bread).lines]
    assert states.count("superseded") == 1


def test_the_branch_that_the_file_names_is_active() -> None:
    messages = [message("q", ""), message("a", "q", "assistant"), message("b", "q", "assistant")]
    (found,) = read(dumped([chat(messages, current_leaf_message_uuid="a")]))
    assert [each.active for each in found.messages] == [True, True, False]


def test_tools_are_calls_with_results_though_they_have_no_ids() -> None:
    bread = read(sample("claude.json"))[0]
    call, result = said(bread)[2:4]
    assert call["content"] == "I look it up."
    assert call["tool_calls"][0]["function"] == {
        "name": "web_search",
        "arguments": '{"query":"rye starter time"}',
    }
    assert result == {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": "Twelve hours at 24 degrees.",
    }


def test_a_call_without_a_result_is_a_line_and_a_result_without_a_call_is_left_out() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "gone", "content": "stray"},
        {"type": "tool_use", "id": "x", "name": "run", "input": {"a": 1}},
        {"type": "text", "text": "I stop here."},
    ]
    _, (found,), warnings = read_all(
        dumped([chat([message("q", ""), message("a", "q", "assistant", content=blocks)])])
    )
    assert said(found)[1] == {
        "role": "assistant",
        "content": '[call of run: {"a":1}]\nI stop here.',
    }
    assert len(warnings) == 2


def test_files_are_lines_with_the_text_that_was_in_them_and_thoughts_are_told() -> None:
    _, (bread, _), warnings = read_all(sample("claude.json"))
    assert said(bread)[0]["content"].split("\n") == [
        "How long does my rye starter need?",
        "[txt, 21 bytes, notes.txt]",
        "Fed on Friday evening.",
        "[image, starter.jpg]",
    ]
    assert b"Rye is fast" not in b"".join(each.message for each in bread.messages)
    assert [w.partition(":")[0] for w in warnings] == [
        "Files and images are lines in brackets",
        "What a model only thought was left out.",
        "Conversation 3 says nothing and was left out.",
    ]


def test_messages_in_a_ring_and_ids_that_come_twice_are_told() -> None:
    messages = [
        message("q", ""),
        message("r1", "r2"),
        message("r2", "r1"),
        message("q", "", text="another"),
    ]
    _, (found,), warnings = read_all(dumped([chat(messages)]))
    assert [each["content"] for each in said(found)] == ["text of q"]
    assert warnings == [
        "Conversation 1 has an id of messages twice; the first counts.",
        "2 messages of conversation 1 follow each other in a ring and are left out.",
    ]


def test_wrong_types_are_as_if_they_were_not_there() -> None:
    hostile = chat(
        [
            message("q", 7),  # type: ignore[arg-type]
            5,
            {"uuid": [], "sender": {}, "content": [None, 3, {"type": 4}], "text": ["x"]},
            {"uuid": "a", "sender": "assistant", "content": {"type": "text"}, "text": "Yes."},
        ],
        name=3,
        created_at={"a": 1},
    )
    (found,) = read(dumped([hostile]))
    assert [each["content"] for each in said(found)] == ["text of q", "Yes."]
    assert (found.title, found.created_at) == (None, None)


def message(id: str, parent: str, sender: str = "human", **more: Any) -> dict[str, Any]:
    return {
        "uuid": id,
        "sender": sender,
        "text": f"text of {id}",
        "created_at": "2025-01-01T00:00:00Z",
        "parent_message_uuid": parent,
        **more,
    }


def chat(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"uuid": "c", "name": "n", "chat_messages": messages, **more}
