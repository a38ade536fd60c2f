"""What LangChain's own function writes, and what its older releases wrote."""

from __future__ import annotations

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from proxy.portable.source import InvalidFile
from tests.support.talk.foreign import archived, dumped, read, read_all, said

CALL = {"name": "search", "args": {"q": "dogs"}, "id": "c1", "type": "tool_call"}


def written(*messages: BaseMessage) -> bytes:
    return dumped(messages_to_dict(list(messages)))


def test_all_kinds_of_messages_are_read() -> None:
    content = written(
        SystemMessage("Be kind."),
        HumanMessage("Dogs?", name="alice"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("Bello", tool_call_id="c1"),
        AIMessage("Bello is a dog."),
        HumanMessage("And now?"),
        FunctionMessage(content="7", name="f"),
        AIMessageChunk(content="Bye."),
        ChatMessage(content="More.", role="user"),
    )

    format, (found,), warnings = read_all(content)

    assert (format, warnings) == ("langchain", [])
    assert found.system == (b'{"role":"system","content":"Be kind."}',)
    function = {"name": "search", "arguments": '{"q":"dogs"}'}
    calls = [{"id": "c1", "type": "function", "function": function}]
    assert said(found) == [
        {"role": "user", "content": "Dogs?", "name": "alice"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "Bello", "tool_call_id": "c1"},
        {"role": "assistant", "content": "Bello is a dog."},
        {"role": "user", "content": "And now?"},
        {"role": "function", "content": "7", "name": "f"},
        {"role": "assistant", "content": "Bye."},
        {"role": "user", "content": "More."},
    ]
    cards = [line.card for line in archived(found).lines]
    assert (cards[1].calls, cards[2].answers) == (("c1",), "c1")


def test_calls_of_older_files_stand_in_openais_shape() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    older = [
        {"type": "human", "data": {"content": "x", "additional_kwargs": {}, "example": False}},
        {"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_calls": calls}}},
        {
            "type": "ai",
            "data": {
                "content": "",
                "additional_kwargs": {"function_call": {"name": "f", "arguments": "{}"}},
            },
        },
    ]
    _, first, second = said(read(dumped(older))[0])
    assert first["tool_calls"] == calls
    assert second["function_call"] == {"name": "f", "arguments": "{}"}


def test_blocks_of_several_providers_become_openais_parts() -> None:
    blocks: list[str | dict[str, object]] = [
        "plain",
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "https://example.com/dog.png"}},
        {"type": "image", "source_type": "base64", "data": "AAAA", "mime_type": "image/jpeg"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "BB"}},
        {"type": "image", "source_type": "url", "url": "https://example.com/cat.png"},
        {"type": "video", "url": "https://example.com/dog.mp4"},
    ]
    answer: list[str | dict[str, object]] = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "A dog."},
    ]
    user, assistant = said(read(written(HumanMessage(blocks), AIMessage(answer)))[0])
    assert [part.get("text") or part["image_url"]["url"] for part in user["content"]] == [
        "plain",
        "What is it?",
        "https://example.com/dog.png",
        "data:image/jpeg;base64,AAAA",
        "data:image/gif;base64,BB",
        "https://example.com/cat.png",
        "[video]",
    ]
    assert assistant["content"] == "A dog."


def test_a_list_of_lists_is_as_many_conversations() -> None:
    lists = [messages_to_dict([HumanMessage(text)]) for text in ("one", "two")]
    format, found, _ = read_all(dumped(lists))
    assert format == "langchain"
    assert [said(each)[0]["content"] for each in found] == ["one", "two"]
    assert len({archived(each).session.id for each in found}) == 2


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'[{"type": "human"}]', id="no data"),
        pytest.param(b'[{"type": "alien", "data": {"content": "x"}}]', id="an unknown type"),
        pytest.param(b'[{"type": "human", "data": {"content": "x"}}', id="cut off"),
        pytest.param(b"[1]", id="numbers"),
        pytest.param(b"{}", id="an object"),
        pytest.param(b"[" * 5000, id="nested deeply"),
    ],
)
def test_what_is_no_list_of_messages_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidFile):
        read(content, "langchain")
