"""A file's format is told by how it begins."""

from __future__ import annotations

import pytest

from proxy.portable.opening import Limits, detect, opened
from proxy.portable.source import Broken, Warnings

HEADER = b'{"kind":"header","format":"memory-proxy","version":1,"scope":"user","exported_at":1}\n'


@pytest.mark.parametrize(
    ("beginning", "format"),
    [
        pytest.param(HEADER, "memory-proxy", id="an export"),
        pytest.param(b'{"messages": [{"role": "u', "chat_jsonl", id="a line cut"),
        pytest.param(b'{"messages": []}\n{"messages": []}', "chat_jsonl", id="lines"),
        pytest.param(b'{\n  "messages": [\n', "openai", id="one pretty object"),
        pytest.param(b'\xef\xbb\xbf \n[{"role": "user"', "openai", id="a byte order mark"),
        pytest.param(b'[[{"content": "x", "role": "user"', "openai", id="lists of messages"),
        pytest.param(b'[{"title": "x", "mapping": {"a', "chatgpt", id="conversations"),
        pytest.param(b'{"title": "x", "mapping": {"a', "chatgpt", id="one conversation"),
        pytest.param(b'[{"type": "human", "data": {"co', "langchain", id="dicts"),
        pytest.param(b'[[{"type": "human", "data": {"role": 1', "langchain", id="lists"),
    ],
)
def test_each_format_is_known_by_its_beginning(beginning: bytes, format: str) -> None:
    assert detect(beginning) == format


@pytest.mark.parametrize(
    ("beginning", "what"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"PK\x03\x04", "is a ZIP archive"),
        (b"hello", "has no format that is known here"),
        (b"{}", "has no format that is known here"),
        (b"[]", "has no format that is known here"),
        (b"[" * 5000, "has no format that is known here"),
        pytest.param(
            b'[{"n": ' + b"9" * 5000 + b"}]", "has no format that is known here", id="many digits"
        ),
        (b"\xff\xfe[", "has no format that is known here"),
        (b'{"kind": "header", "format": "another"}', "has no format that is known here"),
    ],
)
def test_what_is_not_known_is_said(beginning: bytes, what: str) -> None:
    with pytest.raises(Broken, match=what):
        opened(beginning, None, Limits(1000, 1000), Warnings())
