"""What answers ask of memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.reply.reply import read_reply
from proxy.chat.tools.memory_calls import MAX_ARGUMENTS, MemoryCall, MemoryCalls, memory_calls
from proxy.chat.tools.offer import SAVE, SEARCH
from tests.support.upstream.answers import USAGE, chat_completion, tool_call


def asked(*calls: dict[str, Any], **more: Any) -> MemoryCalls | None:
    reply = read_reply(json.dumps(chat_completion("so", tool_calls=calls, **more)).encode())
    assert reply is not None
    return memory_calls(reply)


def test_an_answer_without_our_calls_asks_nothing() -> None:
    assert asked() is None
    assert asked(tool_call("f", "{}")) is None


def test_calls_of_memory_are_told_from_the_clients() -> None:
    found = asked(tool_call(SAVE, "x", "m1"), tool_call("f", "{}", "c1"))
    assert found is not None
    assert (found.calls, found.has_client_calls) == ((MemoryCall("m1", SAVE, "x"),), True)
    assert json.loads(found.usage or b"") == USAGE
    alone = asked(tool_call(SAVE, "x", "m1"), tool_call(SEARCH, "y", "m2"))
    assert alone is not None
    assert not alone.has_client_calls
    assert [call.name for call in alone.calls] == [SAVE, SEARCH]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_calls_of_an_answer_that_was_cut_off_are_not_believed(finish: str) -> None:
    assert asked(tool_call(SAVE, "x"), finish_reason=finish) is None


def test_every_call_has_an_id_of_its_own() -> None:
    same = [tool_call(SAVE, "{}", id) for id in ("", "a", "a")]
    found = asked(*same)
    assert found is not None
    ids = [call.id for call in found.calls]
    assert len(set(ids)) == 3 and "" not in ids
    assert [call["id"] for call in json.loads(found.message)["tool_calls"]] == ids


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ('{"text": " Kai lives in Kiel. "}', "Kai lives in Kiel."),
        ('{"text": "x", "more": 1}', "x"),
        ('{"text": "\\ud83d"}', "\ufffd"),
    ],
)
def test_the_argument_is_read(arguments: str, argument: str) -> None:
    assert MemoryCall("m", SAVE, arguments).argument() == argument


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "{",
        "null",
        "[]",
        '"x"',
        "{}",
        '{"text": 5}',
        '{"text": ""}',
        '{"query": "x"}',
        "[" * 5000,
    ],
)
def test_what_is_wrong_with_arguments_is_said(arguments: str) -> None:
    with pytest.raises(ValueError, match='not a JSON object with a text as "text"'):
        MemoryCall("m", SAVE, arguments).argument()


@pytest.mark.parametrize("letter", ["x", "\u00fc"])
def test_arguments_are_bounded_in_bytes(letter: str) -> None:
    room = MAX_ARGUMENTS - len('{"text":""}')
    fits = letter * (room // len(letter.encode()))
    assert MemoryCall("m", SAVE, f'{{"text":"{fits}"}}').argument() == fits
    with pytest.raises(ValueError, match="longer than 8192 bytes"):
        MemoryCall("m", SAVE, f'{{"text":"{fits}xx"}}').argument()
