"""A ChatGPT data export: trees of messages become sessions with branches."""

from __future__ import annotations

import pytest
from msgspec.structs import astuple

from proxy.memory.history.branches import switch_to
from proxy.portable.detection import open_source
from proxy.portable.programs.blocks import CALLS_WITHOUT_RESULT, RESULTS_WITHOUT_CALL
from proxy.portable.source import Conversation, InvalidFile, Warnings
from tests.support.talk.foreign import (
    LIMITS,
    Json,
    archived,
    conversation,
    dumped,
    node,
    read,
    read_all,
    said,
)

ROOT = node("root", None, children=["s"])
HIDDEN = {"is_visually_hidden_from_conversation": True}
SYSTEM = node("s", "root", "system", "", children=["u1"], metadata=HIDDEN)


def talk(*nodes: Json, current: str | None = None) -> bytes:
    return dumped([conversation(ROOT, SYSTEM, *nodes, current=current)])


def test_a_conversation_without_branches_is_its_messages_in_order() -> None:
    content = talk(
        node("u1", "s", "user", "What does Bello eat?", at=1_700_000_001.5, children=["a1"]),
        node("a1", "u1", "assistant", "Dog food.", at=1_700_000_002, children=["u2"]),
        node("u2", "a1", "user", "And cats?", at=1_700_000_003, children=["a2"]),
        node("a2", "u2", "assistant", "Cat food.", at=1_700_000_004),
    )

    format, (found,), warnings = read_all(content)

    assert (format, warnings) == ("chatgpt", [])
    assert said(found) == [
        {"role": "user", "content": "What does Bello eat?"},
        {"role": "assistant", "content": "Dog food."},
        {"role": "user", "content": "And cats?"},
        {"role": "assistant", "content": "Cat food."},
    ]
    assert (found.id, found.title, found.system) == ("c-1", "Dogs", ())
    session = archived(found, user="alice").session
    assert (session.created_at, session.last_active_at) == (1_700_000_000.25, 1_700_000_004)
    assert (session.user, session.messages, session.details.title) == ("alice", 4, "Dogs")
    assert [astuple(line.position) for line in archived(found).lines] == [
        (1, 1),
        (1, 2),
        (3, 3),
        (3, 4),
    ]


BRANCHED = talk(
    node("u1", "s", "user", "one", at=10, children=["a1", "a1b"]),
    node("a1", "u1", "assistant", "first answer", at=11, children=["u2"]),
    node("u2", "a1", "user", "two", at=12, children=["a2"]),
    node("a2", "u2", "assistant", "second answer", at=13),
    node("a1b", "u1", "assistant", "another answer", at=14, children=["u3"]),
    node("u3", "a1b", "user", "three", at=15, children=["a3"]),
    node("a3", "u3", "assistant", "third answer", at=16),
    current="a3",
)


def test_other_branches_are_superseded() -> None:
    (found,) = read(BRANCHED)
    lines = archived(found).lines
    texts = [each["content"] for each in said(found)]
    assert texts == [
        "one",
        "first answer",
        "two",
        "second answer",
        "another answer",
        "three",
        "third answer",
    ]
    active = [line.state == "active" for line in lines]
    assert active == [True, False, False, False, True, True, True]
    turns = [line.position.turn for line in lines]
    assert turns == [1, 1, 3, 3, 1, 6, 6]


def test_a_branch_can_be_made_the_active_one_again() -> None:
    (found,) = read(BRANCHED)
    session = archived(found)
    ids = [line.card.id for line in session.lines]

    switch = switch_to(session.lines, session.exchanges, ids[3])

    assert switch is not None
    assert set(switch.activated) == {ids[1], ids[2], ids[3]}
    assert set(switch.superseded) == {ids[4], ids[5], ids[6]}


def test_an_edited_question_is_a_branch_of_its_own() -> None:
    (found,) = read(
        talk(
            node("u1", "s", "user", "old", at=1, children=["a1"]),
            node("a1", "u1", "assistant", "to old", at=2),
            node("u1b", "s", "user", "new", at=3, children=["a1b"]),
            node("a1b", "u1b", "assistant", "to new", at=4),
            current="a1b",
        )
    )
    session = archived(found)
    assert [line.state for line in session.lines] == ["superseded"] * 2 + ["active"] * 2
    assert [placed.exchange.follows for placed in session.exchanges] == ["", ""]


def test_without_times_messages_keep_the_order_of_the_tree() -> None:
    (found,) = read(
        talk(
            node("u1", "s", "user", "one", children=["a1"]),
            node("a1", "u1", "assistant", "two", children=["u2"]),
            node("u2", "a1", "user", "three"),
        )
    )
    assert [each["content"] for each in said(found)] == ["one", "two", "three"]
    assert {line.card.created_at for line in archived(found).lines} == {1_700_000_000.25}


def test_tools_are_calls_and_their_results() -> None:
    code = {"content_type": "code", "language": "unknown", "text": "print(6*7)"}
    output = {"content_type": "execution_output", "text": "42"}
    (found,) = read(
        talk(
            node("u1", "s", "user", "6*7?", at=1, children=["c1"]),
            node("c1", "u1", "assistant", content=code, to="python", at=2, children=["t1"]),
            node("t1", "c1", "tool", content=output, name="python", at=3, children=["a1"]),
            node("a1", "t1", "assistant", "42.", at=5),
        )
    )
    _, call, result, answer = said(found)
    function = {"name": "python", "arguments": '{"input":"print(6*7)"}'}
    assert call == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_c1", "type": "function", "function": function}],
    }
    assert result == {"role": "tool", "tool_call_id": "call_c1", "content": "42"}
    assert answer == {"role": "assistant", "content": "42."}
    cards = [line.card for line in archived(found).lines]
    assert (cards[1].calls, cards[2].answers) == (("call_c1",), "call_c1")
    assert len(archived(found).exchanges) == 1


def test_what_a_tool_told_in_several_messages_is_one_result() -> None:
    content = talk(
        node("u1", "s", "user", "The tallest tower?", at=1, children=["c1"]),
        node("c1", "u1", "assistant", "search", to="browser", at=2, children=["t1"]),
        node("t1", "c1", "tool", "Page one: Alpha, 100 m", at=3, children=["h"]),
        node("h", "t1", "assistant", "hidden", metadata=HIDDEN, children=["t2"]),
        node("t2", "h", "tool", "Page two: Beta, 200 m", at=4, children=["a1"]),
        node("a1", "t2", "assistant", "Beta.", at=5),
    )
    _, (found,), warnings = read_all(content)
    _, call, result, answer = said(found)
    assert result == {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": "Page one: Alpha, 100 m\nPage two: Beta, 200 m",
    }
    assert (answer["content"], warnings) == ("Beta.", [])
    assert [line.card.created_at for line in archived(found).lines] == [1, 2, 3, 5]


def test_calls_without_a_result_are_lines_and_results_without_a_call_are_left_out() -> None:
    content = talk(
        node("u1", "s", "user", "Draw it", children=["t1"]),
        node("t1", "u1", "tool", "stray", children=["c1"]),
        node("c1", "t1", "assistant", "a tower", to="dalle", children=["u2"]),
        node("u2", "c1", "user", "Never mind", children=["a2"]),
        node("a2", "u2", "assistant", "Stopped."),
    )
    _, (found,), warnings = read_all(content)
    texts = [each["content"] for each in said(found)]
    assert texts == ["Draw it", '[call of dalle: {"input":"a tower"}]', "Never mind", "Stopped."]
    assert warnings == [
        f"{each[0].upper()}{each[1:]}." for each in (RESULTS_WITHOUT_CALL, CALLS_WITHOUT_RESULT)
    ]


def test_images_recordings_and_files_are_lines_of_text() -> None:
    image = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-abc",
        "size_bytes": 1234,
        "width": 640,
        "height": 480,
        "metadata": None,
    }
    heard = {"content_type": "audio_transcription", "text": "Hello.", "direction": "in"}
    recording = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_9"}
    parts = [image, heard, recording, "What is this?"]
    files = {
        "attachments": [
            {"id": "file-abc", "name": "dog.png", "size": 1234, "mime_type": "image/png"},
            {"id": "file-def", "name": "dog.pdf", "size": 99, "mime_type": "application/pdf"},
        ]
    }
    content = {"content_type": "multimodal_text", "parts": parts}
    (found,) = read(talk(node("u1", "s", "user", content=content, metadata=files)))
    assert said(found)[0]["content"].split("\n") == [
        "[image, 640x480, 1234 bytes, file-service://file-abc]",
        "Hello.",
        "[audio, sediment://file_9]",
        "What is this?",
        "[application/pdf, 99 bytes, dog.pdf]",
    ]


def test_what_was_hidden_or_only_thought_is_left_out_and_instructions_are_the_sessions() -> None:
    instructions = {
        "content_type": "user_editable_context",
        "user_profile": "I have a dog.",
        "user_instructions": "Be brief.",
    }
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "x", "content": "secret"}]}
    content = talk(
        node("i", "s", "user", content=instructions, metadata=HIDDEN, children=["h"]),
        node("h", "i", "user", "hidden", metadata=HIDDEN, children=["u1"]),
        node("u1", "h", "user", "Hi", children=["t"]),
        node("t", "u1", "assistant", content=thoughts, children=["a1"]),
        node("a1", "t", "assistant", "Hello"),
    )
    (found,) = read(content)
    assert [each["content"] for each in said(found)] == ["Hi", "Hello"]
    assert found.system == (b'{"role":"system","content":"I have a dog.\\nBe brief."}',)
    assert archived(found).session.details.system == b"[" + found.system[0] + b"]"


def test_conversations_that_say_nothing_are_left_out_with_a_warning() -> None:
    content = dumped([conversation(ROOT), conversation(ROOT, node("u", "root", "user", "x")), {}])
    _, found, warnings = read_all(content)
    assert len(found) == 1
    assert warnings == [
        "Conversation 1 says nothing and was left out.",
        "Conversation 3 says nothing and was left out.",
    ]


def test_one_conversation_alone_can_be_a_file() -> None:
    alone = dumped(conversation(ROOT, node("u", "root", "user", "x")))
    assert said(read(alone)[0]) == [{"role": "user", "content": "x"}]


def test_a_tree_with_a_ring_or_without_its_current_node_does_no_harm() -> None:
    nodes = [node("a", "b", "user", "ring"), node("b", "a", "user", "ring")]
    content = dumped([conversation(*nodes, node("u", "gone", "user", "x"), current="nowhere")])
    (found,) = read(content)
    assert said(found) == [{"role": "user", "content": "x"}]
    assert found.messages[0].active


def test_a_very_deep_tree_is_read() -> None:
    chain = [node("n0", None, "user", "0")]
    chain += [node(f"n{i}", f"n{i - 1}", "user", str(i)) for i in range(1, 200)]
    (found,) = read(dumped([conversation(*chain)]), piece=4000)
    assert len(found.messages) == 200


@pytest.mark.parametrize("cut", [3, 40, 400, -2])
def test_a_file_that_is_cut_off_is_noticed(cut: int) -> None:
    with pytest.raises(InvalidFile, match="no end: it is cut off, behind conversation 0"):
        read(BRANCHED[:cut], "chatgpt")


@pytest.mark.parametrize("piece", [7, 100_000])
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b'{"mapping": oops}]', id="no JSON"),
        pytest.param(b'{"mapping": {', id="cut off"),
        pytest.param(b'{"create_time": ' + b"9" * 5000 + b"}]", id="many digits"),
        pytest.param(b'{"create_time": 1e' + b"9" * 50 + b"}]", id="a large exponent"),
    ],
)
def test_what_is_complete_before_something_broken_is_read(broken: bytes, piece: int) -> None:
    whole = [conversation(ROOT, node("u", "root", "user", "x"), id=f"c-{i}") for i in range(2)]
    content = dumped(whole)[:-1] + b"," + broken
    found: list[object] = []
    _, source = open_source(content, None, LIMITS, Warnings())
    with pytest.raises(InvalidFile, match="behind conversation 2"):
        for at in range(0, len(content), piece):
            found += source.feed(content[at : at + piece])
        found += source.finish()
    assert [each.id for each in found if isinstance(each, Conversation)] == ["c-0", "c-1"]


def test_a_conversation_that_is_too_large_is_refused() -> None:
    content = talk(node("u1", "s", "user", "x" * 200_000))
    with pytest.raises(
        InvalidFile, match="more than 100000 bytes of item 1, behind conversation 0"
    ):
        read(content, piece=10_000)


def test_brackets_without_end_are_refused_before_they_take_memory() -> None:
    whole = dumped([conversation(ROOT, node("u", "root", "user", "hello"))])
    with pytest.raises(InvalidFile, match="too deep a nesting, behind conversation 1"):
        read(whole[:-1] + b"," + b"[" * 100_000, piece=len(whole))


def test_many_conversations_are_read_one_by_one() -> None:
    many = [
        conversation(ROOT, node("u", "root", "user", "x" * 900), id=f"c-{i}") for i in range(500)
    ]
    assert len(dumped(many)) > 5 * 100_000
    found = read(dumped(many), piece=10_000)
    assert [each.id for each in found] == [f"c-{i}" for i in range(500)]
