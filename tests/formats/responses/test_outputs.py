"""Outputs with media: history has those in the item that goes back, and none in the text."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from proxy.chat.message import ChatMessage, read_message
from proxy.chat.models.tokens import bytes_counter
from proxy.chat.request import MAX_TEXT, ChatRequest
from proxy.formats.responses.api import Responses
from proxy.memory.recording.commit import SpooledMessage

LIMIT = 65_536
LINE = "[image/png, 9000 bytes, sha256 "

Json = dict[str, Any]


def picture(size: int = 9_000) -> str:
    return "data:image/png;base64," + b64encode(b"x" * size).decode()


def of_function(url: str) -> Json:
    seen = [{"type": "input_text", "text": "Seen:"}, {"type": "input_image", "image_url": url}]
    return {"type": "function_call_output", "call_id": "c1", "output": seen}


def of_custom(url: str) -> Json:
    return {**of_function(url), "type": "custom_tool_call_output"}


def of_computer(url: str) -> Json:
    seen = {"type": "computer_screenshot", "image_url": url}
    return {"type": "computer_call_output", "call_id": "c1", "output": seen}


OUTPUTS = pytest.mark.parametrize("output", [of_function, of_custom, of_computer])


def read(*items: Json) -> tuple[ChatMessage, ...]:
    body = json.dumps({"model": "m", "input": items}).encode()
    request = Responses().read(body, LIMIT)
    assert isinstance(request, ChatRequest)
    return request.messages


@OUTPUTS
def test_an_image_is_kept_once_and_costs_what_images_cost(output: Any) -> None:
    [message] = read(output(picture()))
    kept = json.loads(message.record)
    assert kept["native"]["parts"] == [output(picture())]
    assert LINE in kept["content"] and "base64" not in kept["content"]
    assert 765 < bytes_counter().count(message.record) < 850
    assert SpooledMessage.of(message).message.record == message.recorded().record == message.record


@OUTPUTS
def test_a_larger_one_is_a_line_of_text_alone(output: Any) -> None:
    [message] = read(output(picture(90_000)))
    assert b"base64" not in message.record and b"[image/png, 90000 bytes, " in message.record
    assert bytes_counter().count(message.record) < 100


@OUTPUTS
def test_it_equals_what_older_releases_have_recorded_of_it(output: Any) -> None:
    [message] = read(output(picture()))
    told = json.dumps(output(picture())["output"], separators=(",", ":"))
    older = {"role": "tool", "tool_call_id": "c1", "content": told}
    before = read_message(json.dumps(older).encode())
    assert before is not None
    assert (message.digest, message.shape) == (before.digest, before.shape)


def test_other_images_are_other_messages() -> None:
    assert read(of_function(picture(90_000))) != read(of_function(picture(90_001)))
    [one], [other] = read(of_function(picture(90_000))), read(of_function(picture(90_001)))
    assert one.digest != other.digest


@pytest.mark.parametrize("said", ["data: 5", "data:image/png;base64,AAAA"])
def test_a_text_about_media_stays_as_it_is(said: str) -> None:
    shell = {"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": said}]}
    [message] = read(shell)
    assert json.loads(json.loads(message.record)["content"]) == [{"stdout": said}]
    plain = {"type": "function_call_output", "call_id": "c1", "output": f'["{picture()}"]'}
    [message] = read(plain)
    assert json.loads(message.record)["content"] == plain["output"]


def test_screenshots_are_no_text_of_a_request_that_has_too_much_of_it() -> None:
    seen = of_computer(picture(MAX_TEXT // 2))
    assert len(read(seen, {**seen, "call_id": "c2"})) == 2
    long = {**of_function(picture()), "call_id": "c2"}
    long["output"] = [*long["output"], {"type": "input_text", "text": "x" * (MAX_TEXT + 1)}]
    body = json.dumps({"model": "m", "input": [seen, long]}).encode()
    assert Responses().read(body, LIMIT) == "too_much_text"
