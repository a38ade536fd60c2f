"""Event streams by the letter of the standard, the simplest way: the gate is held against them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from proxy.wire.sse import Gate, HoldPoint

NULL = re.compile(rb'"finish_reason"\s*:\s*null')


def suspect(raw: bytes) -> bool:
    """False only where ``classify`` surely answers None."""
    if raw.count(b"finish_reason") != len(NULL.findall(raw)):
        return True
    return b"[DONE]" in raw or b'"error"' in raw or b"\\u00" in raw


def classify(raw: bytes) -> str | None:
    if raw == b"[DONE]":
        return "done"
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    if value.get("error"):
        return "error"
    choices = value.get("choices") or [{}]
    first = [choice for choice in choices if choice.get("index", 0) == 0]
    return "finish" if first and first[0].get("finish_reason") else None


def reference(stream: bytes) -> list[bytes]:
    """Payloads by the letter of WHATWG HTML 9.2.6, and an event's end at the stream's end."""
    text = stream.removeprefix(b"\xef\xbb\xbf")
    text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    payloads: list[bytes] = []
    data: list[bytes] = []
    for line in [*text.split(b"\n"), b""]:
        if not line and data:
            payloads.append(b"\n".join(data))
        if not line:
            data = []
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
    return payloads


def reference_marks(stream: bytes) -> list[tuple[int, str]]:
    """Where marked lines begin and what they are, line by line, with absolute positions."""
    marks: list[tuple[int, str]] = []
    data: list[bytes] = []
    kinds: set[str] = set()
    start = 0
    for end in [*re.finditer(rb"\r\n|\n|\r", stream), None]:
        line = stream[start : end.start() if end else None]
        begin, start = start, end.end() if end else len(stream)
        if begin == 0:
            line = line.removeprefix(b"\xef\xbb\xbf")
        name, _, value = line.partition(b":")
        if not line:
            data, kinds = [], set()
        elif name == b"data":
            data.append(value.removeprefix(b" "))
            kind = classify(b"\n".join(data))
            if kind and kind not in kinds:
                kinds.add(kind)
                marks.append((begin, kind))
    return marks


class Played:
    """A stream as a gate saw it: marks with absolute positions, payloads, bytes let through."""

    def __init__(self, chunks: Sequence[bytes], gate: Gate | None = None) -> None:
        gate = gate or Gate(suspect, classify)
        self.gate = gate
        self.marks: list[tuple[int, str]] = []
        self.payloads: list[bytes] = []
        self.passed = b""  # before the first mark
        at = 0
        for chunk in chunks:
            marks = gate.feed(chunk)
            self._note(marks, at, chunk)
            self.payloads += gate.take()
            at += len(chunk)
        self._note(gate.close(), at, b"")
        self.payloads += gate.take()

    def _note(self, marks: list[HoldPoint], at: int, chunk: bytes) -> None:
        if not self.marks:
            self.passed += chunk[: marks[0].offset] if marks else chunk
        self.marks += [(at + mark.offset, mark.kind) for mark in marks]


def line_end(stream: bytes, start: int) -> int:
    """Where the line that begins at ``start`` ends, its first line-end byte excluded."""
    found = re.compile(rb"[\r\n]").search(stream, start)
    return found.start() if found else len(stream)


def check(stream: bytes, chunks: Sequence[bytes]) -> None:
    """What must hold for any way to cut a stream."""
    played = Played(chunks)
    expected = reference_marks(stream)
    assert played.payloads == reference(stream)
    assert [kind for _, kind in played.marks] == [kind for _, kind in expected]
    starts = [0]
    for chunk in chunks:
        starts.append(starts[-1] + len(chunk))
    for (seen, _), (begin, _) in zip(played.marks, expected, strict=True):
        # At the line's beginning, or at the chunk in which its end came.
        assert seen == begin or (seen in starts and begin < seen <= line_end(stream, begin))
    if expected:
        assert stream.startswith(played.passed)
        assert len(played.passed) <= line_end(stream, expected[0][0])
