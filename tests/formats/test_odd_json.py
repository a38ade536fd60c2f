"""Answers with what JSON does not have are read all the same: each API, streamed and plain."""

from __future__ import annotations

import json

import pytest

from proxy.chat.reply.answer import Reply
from proxy.formats.chat_completions import ChatCompletions
from proxy.formats.format import Format
from proxy.formats.messages.messages import Messages
from proxy.formats.responses.api import Responses

NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"-1e999"]

CHAT = b'{"choices":[{"index":0,"%b":{"role":"assistant","content":"hi"},"logprobs":{"x":ODD}'
MESSAGE = b'{"type":"message","role":"assistant","content":[{"type":"text","text":"hi","x":ODD}]'
TEXT = b'{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}'
RESPONSE = b'{"id":"r","object":"response","status":"completed","x":ODD,"output":[' + TEXT + b"]}"

PLAIN: list[tuple[Format, bytes]] = [
    (ChatCompletions(), CHAT % b"message" + b',"finish_reason":"stop"}]}'),
    (Messages(), MESSAGE + b',"stop_reason":"end_turn"}'),
    (Responses(), RESPONSE),
]
STREAMED: list[tuple[Format, list[bytes]]] = [
    (ChatCompletions(), [CHAT % b"delta" + b',"finish_reason":"stop"}]}']),
    (
        Messages(),
        [
            b'{"type":"content_block_start","index":0,"content_block":'
            b'{"type":"text","text":"hi","x":ODD}}',
            b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"x":ODD}}',
        ],
    ),
    (Responses(), [b'{"type":"response.completed","response":' + RESPONSE + b"}"]),
]
NAMES = ["chat", "messages", "responses"]


def check(reply: Reply | None) -> None:
    assert reply is not None
    (choice,) = reply.choices
    assert (choice.text, choice.complete) == ("hi", True)
    for kept in (choice.body, choice.wire, reply.usage):
        json.loads(kept or b"null", parse_constant=pytest.fail)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(("format", "raw"), PLAIN, ids=NAMES)
def test_a_plain_answer_with_such_a_number_is_read(
    format: Format, raw: bytes, number: bytes
) -> None:
    check(format.read_reply(raw.replace(b"ODD", number)))


@pytest.mark.parametrize(("format", "raw"), PLAIN, ids=NAMES)
def test_a_plain_answer_behind_a_byte_order_mark_is_read(format: Format, raw: bytes) -> None:
    check(format.read_reply(b"\xef\xbb\xbf" + raw.replace(b"ODD", b"1")))


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(("format", "events"), STREAMED, ids=NAMES)
def test_a_stream_with_such_a_number_is_read_and_its_finish_is_seen(
    format: Format, events: list[bytes], number: bytes
) -> None:
    reader = format.read_stream()
    payloads = [event.replace(b"ODD", number) for event in events]
    for payload in payloads:
        reader.feed(payload)
    assert reader.may_end(payloads[-1]) and reader.end_signal(payloads[-1]) == "finish"
    check(reader.build())
