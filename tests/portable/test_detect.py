"""A file's format is told by how it begins."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from proxy.portable.detection import Limits, detect, open_source
from proxy.portable.names import Format
from proxy.portable.source import InvalidFile, Warnings
from tests.support.talk.foreign import conversation, node, read

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
        (b"\x1f\x8b\x08", "is compressed with gzip"),
        pytest.param('[{"title": "Caf\u00e9"'.encode("latin-1"), "not in UTF-8", id="latin-1"),
        pytest.param("\u00e9".encode()[:1], "has no format", id="a letter that is cut"),
        (b'{"kind": "header", "format": "another"}', "has no format that is known here"),
    ],
)
def test_what_is_not_known_is_said(beginning: bytes, what: str) -> None:
    with pytest.raises(InvalidFile, match=what):
        open_source(beginning, None, Limits(1000, 1000), Warnings())


FILES: Mapping[Format, object] = {
    "openai": [{"role": "user", "content": "Caf\u00e9"}],
    "chat_jsonl": {"messages": [{"role": "user", "content": "Caf\u00e9"}]},
    "chatgpt": [conversation(node("u", None, "user", "Caf\u00e9"))],
    "langchain": [{"type": "human", "data": {"content": "Caf\u00e9"}}],
    "claude_code": {"parentUuid": None, "sessionId": "s", "type": "user", "x": "Caf\u00e9"},
    "librechat": {"conversationId": "c", "messages": [{"text": "Caf\u00e9"}]},
    "mem0": [{"id": "1", "memory": "Caf\u00e9", "user_id": "kai"}],
    "memory-proxy": {"kind": "header", "format": "memory-proxy", "scope": "Caf\u00e9"},
}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("wanted", FILES)
def test_a_file_in_another_encoding_is_told_so(wanted: Format, encoding: str) -> None:
    content = json.dumps(FILES[wanted], ensure_ascii=False).encode(encoding)
    with pytest.raises(InvalidFile, match="not in UTF-8"):
        read(content, wanted)
