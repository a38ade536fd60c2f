"""Messages as lines: everything that was said, nothing that is not text."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat import jsontext
from proxy.chat.models.tokens import Tokenizers
from proxy.memory.model import Card
from proxy.summary.lines import TranscriptLine, lines_of, split_line
from tests.support.store.commits import card
from tests.support.talk.summarising import words

COUNT = Tokenizers().counter_for(None).count_text
BASE64 = base64.b64encode(random.Random(1).randbytes(900)).decode()
CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"a":1}'}}


def lines(role: str = "user", content: object = None, **more: Any) -> list[str]:
    known: Card = card("x", 0, role, incomplete=more.pop("incomplete", False))
    message = {"role": role, "content": content, **more}
    return [str(line) for line in lines_of(known, json.dumps(message).encode(), jsontext.decode)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "Hello\nthere "}, ["Human: Hello\nthere "]),
        ({"role": "assistant", "content": "Hi"}, ["AI: Hi"]),
        ({"role": "tool", "content": "31", "tool_call_id": "c"}, ["Tool: 31"]),
        ({"role": "tool", "content": "", "tool_call_id": "c"}, ["Tool: "]),
        ({"role": "function", "name": "f", "content": "31"}, ["Tool (f): 31"]),
        ({"role": "narrator", "content": "Later."}, ["narrator: Later."]),
        ({"content": "Hello", "name": "Anna"}, ["Human (Anna): Hello"]),
        ({"role": "assistant", "content": "Hi", "name": "Marvin"}, ["AI (Marvin): Hi"]),
        ({"role": "assistant", "tool_calls": [CALL]}, ['AI calls weather({"a":1})']),
        (
            {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL, CALL]},
            ["AI: Let me see.", 'AI calls weather({"a":1})', 'AI calls weather({"a":1})'],
        ),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": {"b": "ä"}}},
            ['AI calls f({"b":"ä"})'],
        ),
        (
            {"role": "assistant", "tool_calls": [{"custom": {"name": "run", "input": "ls"}}]},
            ["AI calls run(ls)"],
        ),
        ({"role": "assistant", "refusal": "I won't."}, ["AI: I won't."]),
        ({"role": "assistant", "audio": {"id": "a"}}, ["AI: [audio]"]),
        ({"content": [{"type": "text", "text": "a"}, "b"]}, ["Human: a\nb"]),
        ({"content": 7}, ["Human: 7"]),
    ],
)
def test_a_message_is_said_by_its_speaker(message: dict[str, Any], expected: list[str]) -> None:
    assert lines(**message) == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}, "[image]"),
        ({"type": "input_audio", "input_audio": {"data": BASE64, "format": "wav"}}, "[audio]"),
        ({"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA"}}, "[video]"),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": BASE64}}, "[file: a.pdf]"),
        ({"type": "file", "file": {"file_id": "f"}}, "[file]"),
        ({"type": "map", "map": {"x": 1}}, "[map]"),
        ({"x": BASE64}, "[content]"),
    ],
)
def test_media_are_named(part: dict[str, Any], expected: str) -> None:
    assert lines(content=[{"type": "text", "text": "See"}, part]) == [f"Human: See\n{expected}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"![plot](data:image/png;base64,{BASE64}) nice", "![plot]([image]) nice"),
        (f'{{"data":"{BASE64}","n":1}}', '{"data":"[file]","n":1}'),
        (f"a {BASE64} b", "a [file] b"),
        ("x" * 5000, "x" * 5000),
        ("data: image/png;base64, is how they begin", "data: image/png;base64, is how they begin"),
    ],
)
def test_media_written_into_a_text_are_named_too(text: str, expected: str) -> None:
    assert lines(content=text) == [f"Human: {expected}"]
    call = {"function": {"name": "f", "arguments": text}}
    assert lines("assistant", tool_calls=[call]) == [f"AI calls f({expected})"]


def test_an_incomplete_answer_is_marked() -> None:
    assert lines("assistant", "It was a dark and", incomplete=True) == [
        "AI: It was a dark and [incomplete]"
    ]
    assert lines("assistant", "", incomplete=True) == ["AI: [incomplete]"]


def test_a_blank_message_has_no_lines() -> None:
    assert lines_of(card("x", 0, "assistant", blank=True), b"{}", jsontext.decode) == []


@pytest.mark.parametrize("body", [b"no json", b"[1]", b"[" * 100_000])
def test_what_cannot_be_read_is_said_to_be_so(body: bytes) -> None:
    (line,) = lines_of(card("x", 0), body, jsontext.decode)
    assert str(line) == "Human: [unreadable]"


def test_half_a_character_does_not_keep_a_line_from_being_sent() -> None:
    body = rb'{"role":"user","content":"\ud83d\ude00 \ud83d","name":"\udc00"}'
    (line,) = lines_of(card("x", 0), body, jsontext.decode)
    assert str(line).encode()
    assert "\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}" in str(line)


TEXTS = st.text(st.sampled_from("ab \n.。ä漢\N{GRINNING FACE}<|>"), max_size=400)


@given(text=TEXTS, most=st.integers(8, 60))
def test_pieces_fit_and_hold_everything(text: str, most: int) -> None:
    line = TranscriptLine("Human", ": ", text)
    pieces = list(split_line(line, most, COUNT))
    assert all(COUNT(piece) <= most for piece in pieces)
    first, *others = pieces
    again = "Human (continued): "
    assert all(piece.startswith(again) for piece in others)
    said = "".join([first.removeprefix("Human: "), *(p.removeprefix(again) for p in others)])
    assert said == text


def test_a_line_that_fits_is_one_piece() -> None:
    assert list(split_line(TranscriptLine("AI", " calls ", "f()"), 50, COUNT)) == ["AI calls f()"]


def test_a_long_text_is_cut_at_its_paragraphs() -> None:
    text = "\n\n".join(["one two three four five."] * 40)
    for piece in list(split_line(TranscriptLine("AI", ": ", text), 60, COUNT))[:-1]:
        assert piece.endswith("five.\n\n")


def test_no_piece_is_empty_however_small_the_room_is() -> None:
    pieces = list(split_line(TranscriptLine("Human", ": ", "\N{GRINNING FACE}" * 5), 1, COUNT))
    assert len(pieces) == 5


def test_cutting_takes_time_that_grows_with_the_text_alone() -> None:
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return words(text)

    text = "word " * 100_000
    pieces = list(split_line(TranscriptLine("Human", ": ", text), 500, count))
    assert len(pieces) > 150
    assert counted < 4 * len(text)
