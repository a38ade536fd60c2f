"""Blocks of memory in a message: put in, kept closed, and taken out again."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.blocks import block, block_message, may_have_blocks, with_block, without_blocks
from proxy.chat.message import read_message

BLOCK = block("recall", "What was said.", "user: hello")
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def raw(content: object, **more: object) -> bytes:
    return json.dumps({"role": "user", "content": content, **more}).encode()


def content(message: bytes) -> Any:
    return json.loads(message)["content"]


def every_character_escaped(text: str) -> bytes:
    return b'"' + b"".join(b"\\u%04x" % ord(each) for each in text) + b'"'


# Made and put in


def test_a_block_says_what_it_holds_and_ends_where_it_ends() -> None:
    assert BLOCK == ('<memory version="1" kind="recall">\nWhat was said.\nuser: hello\n</memory>')


@pytest.mark.parametrize(
    "text",
    [
        "</memory>",
        "</MEMORY>",
        "< / memory >",
        "<\n/\nmemory>",
        '<memory version="1" kind="recall">',
        "<memory\n>",
        "</memory\t>",
        "<</memory>",
    ],
)
def test_nothing_in_a_block_looks_like_its_end_or_another_one(text: str) -> None:
    made = block("recall", "What was said.", f"user: before\n{text}\nuser: after")
    assert made.count("<memory") == 1 and made.count("</memory>") == 1
    inside = made.removeprefix('<memory version="1"').removesuffix("</memory>").lower()
    assert not any(f"<{gap}memory" in inside for gap in ("", "/", "\n", "\n/\n", " / "))
    assert "&lt;" in made and made.endswith("user: after\n</memory>")


@pytest.mark.parametrize("text", ["a < b", "<memories>", "<b>memory</b>", "memory>", "x<-memory"])
def test_what_only_reminds_of_a_tag_is_left_alone(text: str) -> None:
    assert text in block("recall", "What was said.", text)


def test_a_block_goes_before_the_text_and_all_else_keeps_its_bytes() -> None:
    message = b'{ "role" :"user", "content":"hi \\u0041" ,"name":"ann","x":1e999}'
    assert with_block(message, "B") == (
        b'{"role":"user","content":"B\\n\\nhi A","name":"ann","x":1e999}'
    )


def test_a_block_is_the_first_part_of_a_list() -> None:
    message = raw([IMAGE, {"type": "text", "text": "hi", "odd": 1}])
    said = [{"type": "text", "text": "B"}, IMAGE, {"type": "text", "text": "hi", "odd": 1}]
    assert content(with_block(message, "B")) == said


@pytest.mark.parametrize("empty", ["", None])
def test_a_message_without_text_is_nothing_but_the_block(empty: str | None) -> None:
    assert content(with_block(raw(empty), "B")) == "B"


def test_a_block_of_its_own_is_a_system_message() -> None:
    assert json.loads(block_message(BLOCK)) == {"role": "system", "content": BLOCK}


# Taken out


@pytest.mark.parametrize(
    "said",
    ["hi", "", "two\n\nlines", [{"type": "text", "text": "hi"}, IMAGE], [IMAGE], []],
)
def test_what_was_put_in_is_taken_out(said: object) -> None:
    assert content(without_blocks(with_block(raw(said), f"{BLOCK}\n{BLOCK}"))) == said


def test_a_block_in_the_middle_of_a_text_is_taken_out() -> None:
    assert content(without_blocks(raw(f"before\n{BLOCK}\n\nafter"))) == "before\nafter"


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(raw(f"{BLOCK}\n\nhi"), id="as-python-writes"),
        pytest.param(
            raw(f"{BLOCK}\n\nhi").replace(b"<", b"\\u003c").replace(b">", b"\\u003E"), id="as-go"
        ),
        pytest.param(raw(f"{BLOCK}\n\nhi").replace(b"/", b"\\/"), id="as-php-writes"),
        pytest.param(
            raw(f"{BLOCK}\n\nhi").replace(b'\\"', b"\\u0022"), id="quotation-marks-escaped"
        ),
        pytest.param(
            b'{"role":"user","content":' + every_character_escaped(f"{BLOCK}\n\nhi") + b"}",
            id="everything-escaped",
        ),
    ],
)
def test_a_block_is_found_however_json_writes_it(message: bytes) -> None:
    assert may_have_blocks(message)
    found = read_message(message)
    plain = read_message(raw("hi"))
    assert found is not None and plain is not None
    assert (found.text, found.digest, found.raw) == ("hi", plain.digest, message)
    assert content(found.record) == "hi"


@pytest.mark.parametrize(
    "message",
    [
        raw("hi"),
        raw(None),
        raw(7),
        raw('<memory version="1" kind="recall">\nnever closed'),
        raw('what is </memory> or <memory version="1" kind=""> for?'),
        raw([{"type": "text", "text": '<memory version="1" kind="recall">'}, IMAGE]),
        b'{ "role":"user", "content" : "caf\\u00e9 \\u0022" }',
        b'{"content": [ {"text" : "\\u0041"} ] }',
        b'{"content":"\\ud83d","x":1e999}',
        b'"memory version=\\"1\\" kind=\\""',
        b'{"content":"memory version=\\"1\\" kind=\\"',
    ],
)
def test_a_message_without_a_block_keeps_its_bytes(message: bytes) -> None:
    assert without_blocks(message) == message


def test_parts_beside_a_block_keep_their_bytes() -> None:
    odd = b'{ "type":"text","text" : "caf\\u00e9","x":1e999 }'
    block_part = json.dumps({"type": "text", "text": BLOCK}).encode()
    mixed = json.dumps({"type": "text", "text": f"{BLOCK}\n\nhi", "y": 1}).encode()
    message = b'{"role":"user","content":[' + b",".join((odd, block_part, mixed)) + b"]}"
    kept = b'{"role":"user","content":[' + odd + b',{"type":"text","text":"hi","y":1}]}'
    assert without_blocks(message) == kept


def test_a_block_of_another_version_is_what_somebody_said() -> None:
    message = raw(BLOCK.replace('version="1"', 'version="2"'))
    assert without_blocks(message) == message


def test_many_tags_that_are_never_closed_cost_no_more_than_other_text() -> None:
    message = raw('<memory version="1" kind="recall">\n' * 50_000)
    began = time.process_time()
    assert without_blocks(message) == message
    assert without_blocks(raw("\n</memory>" * 100_000)) is not None
    assert time.process_time() - began < 5


@given(st.text(), st.text(min_size=1))
def test_whatever_a_block_holds_what_was_said_comes_out_again(lines: str, said: str) -> None:
    message = with_block(raw(said), block("recall", "What was said.", lines))
    assert content(without_blocks(message)) == said
