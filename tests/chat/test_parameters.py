"""An error that names a parameter of the client's is the client's; any other may be memory's."""

from __future__ import annotations

import json

import pytest

from proxy.chat.parameters import is_about_parameters

FIELDS = ("model", "messages", "temperature", "tools", "input", "detail")


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "Too much", "param": "temperature"}},
        {"error": {"message": "Bad schema", "param": "tools[0].function.parameters"}},
        {"error": {"message": "model: claude-0", "type": "not_found_error"}},
        {"error": {"message": "`temperature`: 0..1", "param": None}},
        {"object": "error", "message": {"detail": [{"loc": ["body", "temperature"]}]}},
        {"detail": [{"loc": ["body", "temperature"]}, {"loc": ["body", "tools", 0]}]},
    ],
)
def test_a_named_parameter_of_the_clients_is_told(error: object) -> None:
    assert is_about_parameters(json.dumps(error).encode(), FIELDS)


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "No.", "param": None}},
        {"error": {"message": "No.", "param": "messages.[0].content"}},
        {"error": {"message": "No.", "param": "input[1].id"}},
        {"error": {"message": "No.", "param": "url"}},
        {"error": {"message": "No.", "param": "store"}},
        {"error": {"message": "messages.0.content.1: extra"}},
        {"error": {"message": "temperature is odd, and so is all else"}},
        {"detail": [{"loc": ["body", "temperature"]}, {"loc": ["body", "messages", 0]}]},
        {"detail": "No."},
        {"error": "temperature: 0..1"},
        ["temperature"],
        "temperature",
    ],
)
def test_any_other_error_is_not(error: object) -> None:
    assert not is_about_parameters(json.dumps(error).encode(), FIELDS)


@pytest.mark.parametrize("error", [b"", b"<html>", b"temperature: 0..1", b'{"error":', b"[" * 9999])
def test_what_cannot_be_read_is_not(error: bytes) -> None:
    assert not is_about_parameters(error, FIELDS)
