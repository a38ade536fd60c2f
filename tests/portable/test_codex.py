"""Transcripts of Codex, as they are now and as they were before."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.portable.source import InvalidFile
from tests.support.talk.foreign import Json, archived, dumped, read, read_all, said, sample


def test_a_transcript_becomes_a_conversation_with_its_dates() -> None:
    format, (found,), _ = read_all(sample("codex.jsonl"))
    assert (format, found.id) == ("codex", "33333333-0000-7000-8000-000000000001")
    assert (found.created_at, found.messages[0].at) == (1762084800.0, 1762084801.0)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    question = {"type": "text", "text": "How often does the lamp turn?"}
    assert said(found)[0] == {"role": "user", "content": [question, image]}


def test_calls_of_all_kinds_have_their_results() -> None:
    (found,) = read(sample("codex.jsonl"))
    calls, one, two, answer = said(found)[1:5]
    assert [call["function"] for call in calls["tool_calls"]] == [
        {"name": "shell", "arguments": '{"command":["cat","lamp.ini"]}'},
        {"name": "apply_patch", "arguments": '{"input":"*** Begin Patch"}'},
    ]
    assert [one["tool_call_id"], two["tool_call_id"]] == ["call_1", "call_2"]
    assert two["content"] == "ok"
    assert answer["content"] == "[web search: lamp]\nSix times a minute."


def test_turns_that_were_taken_back_are_superseded() -> None:
    (found,) = read(sample("codex.jsonl"))
    states = [(m["content"], of.active) for m, of in zip(said(found), found.messages, strict=True)]
    assert states[5:] == [
        ("Make it seven.", False),
        ("It is seven.", False),
        ("Leave it at six.", True),
        ("It stays.", True),
    ]
    assert found.messages[7].parent == 4


def test_what_the_program_put_in_is_left_out_and_told() -> None:
    _, (found,), warnings = read_all(sample("codex.jsonl"))
    whole = b"".join(each.message for each in found.messages)
    assert b"environment_context" not in whole and b"Ask before" not in whole
    assert warnings == [
        "What the program itself has put in for the model was left out (3 times).",
        "What a model only thought was left out.",
    ]


def test_of_what_an_editor_tells_only_the_request_is_the_users() -> None:
    told = "# Context from my IDE setup:\n## Open tabs: a.py\n## My request for Codex:\nWhy?"
    (found,) = read(lines(META, message("user", told), message("assistant", "So.")))
    assert [m["content"] for m in said(found)] == ["Why?", "So."]


def test_older_transcripts_have_items_without_dates() -> None:
    (found,) = read(sample("codex_before.jsonl"))
    assert found.id == "33333333-0000-4000-8000-000000000002"
    question, call, result, answer = said(found)
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "lsh_1"
    assert (question["content"], answer["content"]) == ("Where is the map?", "In map.txt.")
    assert {line.card.created_at for line in archived(found).lines} == {1748865600.0}


def item(kind: str = "message", **payload: Any) -> Json:
    return {
        "timestamp": "2025-01-01T00:00:00Z",
        "type": "response_item",
        "payload": {"type": kind, **payload},
    }


def message(role: str, text: str) -> Json:
    return item(role=role, content=[{"type": "input_text", "text": text}])


META = {
    "timestamp": "2025-01-01T00:00:00Z",
    "type": "session_meta",
    "payload": {"id": "first", "timestamp": "2025-01-01T00:00:00Z"},
}


def lines(*each: object) -> bytes:
    return b"\n".join(map(dumped, each))


def test_a_result_that_comes_behind_another_question_is_that_of_its_call() -> None:
    call = item("function_call", name="run", arguments="{}", call_id="c")
    output = item("function_call_output", call_id="c", output={"content": "9", "success": True})
    talk = [message("user", "Go"), call, message("user", "Faster"), output]
    (found,) = read(lines(META, *talk, message("assistant", "Done")))
    assert [m["role"] for m in said(found)] == ["user", "assistant", "tool", "user", "assistant"]
    assert said(found)[2]["content"] == "9"


def test_the_first_line_names_the_thread_also_where_it_goes_on_from_another() -> None:
    source = {**META, "payload": {"id": "source"}}
    (found,) = read(lines(META, source, message("user", "Hi")))
    assert found.id == "first"


def test_what_an_agent_did_on_its_own_is_left_out() -> None:
    meta = {**META, "payload": {"id": "x", "source": {"subagent": {"thread_spawn": {}}}}}
    _, found, warnings = read_all(lines(meta, message("user", "Hi")))
    assert (found, len(warnings)) == ([], 2)


@pytest.mark.parametrize("turns", [None, -1, 0, 10**30, "2", True])
def test_a_wrong_number_of_turns_does_no_harm(turns: object) -> None:
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": turns}}
    (found,) = read(lines(META, message("user", "Hi"), back, message("user", "Ho")))
    assert [each["content"] for each in said(found)] == ["Hi", "Ho"]
    assert found.messages[1].active


def test_wrong_types_are_as_if_they_were_not_there() -> None:
    hostile = [
        item(role="user", content="x"),
        item(role="user", content=[3, {"type": 5, "text": 6}]),
        item("function_call", name=3, arguments=[1], call_id=None),
        item("function_call_output", call_id=7, output=3),
        {"type": "response_item", "payload": 7},
        {"type": 9, "payload": {}},
    ]
    (found,) = read(lines(META, *hostile, message("user", "Hi")))
    assert said(found)[-1] == {"role": "user", "content": "Hi"}


def test_a_broken_line_is_named() -> None:
    with pytest.raises(InvalidFile) as broken:
        read(lines(META, message("user", "Hi")) + b"\n[1]\n")
    assert (broken.value.line, broken.value.problem) == (3, "has no object")
