"""Transcripts of Claude Code: a tree of lines, of which one branch was the last."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.portable.source import InvalidFile
from tests.support.talk.foreign import Json, archived, dumped, read, read_all, said, sample

SAMPLE = sample("claude_code.jsonl")


def test_a_transcript_becomes_one_conversation() -> None:
    format, (found,), _ = read_all(SAMPLE)
    assert (format, found.id) == ("claude_code", "22222222-0000-4000-8000-000000000001")
    assert (found.title, found.created_at) == ("Port of the harbour service", 1759305600.0)
    first, last = found.messages[0], found.messages[-1]
    assert (first.at, last.at) == (1759305601.0, 1759305782.0)


def test_an_answer_of_several_lines_is_one_message_with_all_its_calls_and_results() -> None:
    (found,) = read(SAMPLE)
    call, first, second, answer = said(found)[1:5]
    assert call["content"] == "I look at two files."
    assert [each["id"] for each in call["tool_calls"]] == ["toolu_1", "toolu_2"]
    assert first == {"role": "tool", "tool_call_id": "toolu_1", "content": "port = 4711"}
    assert second == {"role": "tool", "tool_call_id": "toolu_2", "content": "# Harbour\n[image]"}
    assert answer["content"] == "It uses port 4711."
    assert all(each.active for each in found.messages[:5])


def test_what_was_taken_back_is_superseded_and_a_compaction_cuts_nothing_off() -> None:
    (found,) = read(SAMPLE)
    states = [
        (m.get("content"), of.active) for m, of in zip(said(found), found.messages, strict=True)
    ]
    assert states[5:] == [
        ("Delete the service.", False),
        ("Deleted.", False),
        ("/review harbour.toml", True),
        ('All is well.\n[call of Bash: {"command":"make"}]', True),
    ]
    assert [line.state for line in archived(found).lines].count("superseded") == 2


def test_what_the_program_put_in_is_left_out_and_told() -> None:
    _, (found,), warnings = read_all(SAMPLE)
    whole = b"\n".join(each.message for each in found.messages)
    for hidden in (b"Caveat", b"The date is today", b"continued from", b"on your own", b"done<"):
        assert hidden not in whole
    assert warnings == [
        "What the program itself has put in for the model was left out (5 times).",
        "What a model only thought was left out.",
        "What agents did on their own, in side conversations, was left out (line 11).",
        "Calls of tools that never had a result are lines in brackets.",
    ]


def line(uuid: str, parent: str | None, kind: str = "user", **more: Any) -> Json:
    content = more.pop("content", f"text of {uuid}")
    if kind == "assistant" and isinstance(content, str):
        content = [{"type": "text", "text": content}]
    message = {"role": kind, "content": content, "id": more.pop("id", uuid)}
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "timestamp": "2025-01-01T00:00:00Z",
        "message": message,
        **more,
    }


def lines(*each: Json) -> bytes:
    return b"\n".join(map(dumped, each)) + b"\n"


def texts(content: bytes) -> list[tuple[str, bool]]:
    (found,) = read(content)
    return [(m["content"], of.active) for m, of in zip(said(found), found.messages, strict=True)]


def queued(uuid: str, parent: str, **attachment: Any) -> Json:
    attachment = {"type": "queued_command", "prompt": f"text of {uuid}", **attachment}
    return line(uuid, parent, "attachment", attachment=attachment, message=None)


def test_what_was_sent_while_an_answer_was_made_is_a_message_of_the_user() -> None:
    call = [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "port = 4711"}]
    note = "<task-notification>done</task-notification>"
    content = lines(
        line("a", None),
        line("b", "a", "assistant", content=call),
        line("c", "b", content=result),
        queued("d", "c", commandMode="prompt", origin={"kind": "human"}),
        queued("e", "d", prompt=[{"type": "text", "text": "And now?"}]),
        queued("f", "e", commandMode="task-notification", prompt=note),
        queued("g", "f", type="file", prompt="no message"),
        queued("h", "g", origin={"kind": "coordinator"}),
        line("i", "h", "assistant"),
    )
    assert texts(content) == [
        ("text of a", True),
        (None, True),
        ("port = 4711", True),
        ("text of d", True),
        ("And now?", True),
        ("text of i", True),
    ]


def test_the_last_line_says_which_branch_counts_or_a_later_mark_does() -> None:
    talk = [line("a", None), line("b", "a", "assistant"), line("c", "a", "assistant")]
    assert [active for _, active in texts(lines(*talk))] == [True, False, True]
    mark = {"type": "last-prompt", "leafUuid": "b", "sessionId": "s"}
    assert [active for _, active in texts(lines(*talk, mark))] == [True, True, False]


def test_a_line_behind_one_that_is_not_there_follows_the_one_before_it() -> None:
    content = lines(line("a", None), line("b", "gone", "assistant"))
    _, (found,), warnings = read_all(content)
    assert [each.parent for each in found.messages] == [-1, 0]
    assert "is not in the file" in warnings[0] and "(line 2)" in warnings[0]


def test_a_line_that_comes_twice_counts_once_and_rings_cannot_be() -> None:
    ring = [line("a", "b"), line("b", "a", "assistant"), line("a", "b", content="other")]
    assert texts(lines(*ring)) == [("text of a", True), ("text of b", True)]


def test_a_file_of_an_agents_own_lines_has_no_conversation() -> None:
    content = lines(line("a", None, isSidechain=True))
    _, found, warnings = read_all(content)
    assert found == []
    assert len(warnings) == 2


@pytest.mark.parametrize("piece", [7, 100_000])
def test_a_broken_line_is_named_and_nothing_is_given(piece: int) -> None:
    content = lines(line("a", None)) + b'{"type": "user", "uuid": "b"\n' + lines(line("c", "a"))
    with pytest.raises(InvalidFile) as broken:
        read(content, piece=piece)
    assert broken.value.line == 2


def test_a_transcript_that_is_too_long_is_refused() -> None:
    many = [line(f"m{n}", None, content="x" * 900) for n in range(100)]
    with pytest.raises(InvalidFile, match="more than 100000 bytes of a conversation before it"):
        read(lines(*many), piece=5000)


def test_results_without_their_call_are_left_out_and_told() -> None:
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
    content = lines(line("a", None), line("b", "a", content=result))
    _, (found,), warnings = read_all(content)
    assert (len(found.messages), len(warnings)) == (1, 1)
