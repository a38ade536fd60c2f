"""Joins the JSON answers of several tool rounds to one, as a stream would show them.  Pure."""

from __future__ import annotations

from proxy.chat import jsontext
from proxy.chat.reply.reply import TEXTS, read_reply
from proxy.chat.tools.memory_calls import MemoryCalls, is_memory_call, memory_calls
from proxy.chat.tools.stream import Chunk, has_value, separator
from proxy.chat.usage import add_usages


def memory_calls_in(body: bytes) -> MemoryCalls | None:
    """The calls of memory's tools in a JSON answer; None if there are none."""
    if b"tool_calls" not in body and b"\\u00" not in body:  # as in nearly all answers
        return None
    reply = read_reply(body)
    return memory_calls(reply) if reply is not None else None


class RoundJoiner:
    """Collects texts and usage of the answers before the last one."""

    def __init__(self) -> None:
        self._identity: dict[str, bytes] = {}
        self._texts: dict[str, bytes] = {}
        self._usage: bytes | None = None

    def add(self, body: bytes) -> None:
        """Add an answer that has called only memory's tools."""
        answer = Chunk.read(body)
        if answer is None:
            return
        self._identity = self._identity or answer.identity
        self._usage = add_usages(self._usage, _usage(answer))
        for key in TEXTS:
            joined = _joined_contents(self._texts.get(key), answer.delta.get(key))
            if joined is not None:
                self._texts[key] = joined

    def joined_answer(self, body: bytes) -> bytes:
        """The last answer, with the texts and usage of those before, without memory's calls."""
        answer = Chunk.read(body)
        if answer is None or not answer.choice:
            return body
        answer.take_identity(self._identity)
        for key, before in self._texts.items():
            answer.delta[key] = _joined_contents(before, answer.delta.get(key)) or before
        usage = add_usages(self._usage, _usage(answer))
        if usage is not None:
            answer.fields["usage"] = usage
        client_calls = [call for call in answer.pieces() if not is_memory_call(call)]
        answer.put_pieces(client_calls)
        if not client_calls:
            answer.stop()
        return answer.write()


def _usage(answer: Chunk) -> bytes | None:
    usage = answer.fields.get("usage", b"null")
    return usage if usage.startswith(b"{") else None


def _joined_contents(before: bytes | None, after: bytes | None) -> bytes | None:
    """Two contents (JSON) joined: as text, or as a list of parts if one of them is a list."""
    if not has_value(after) or after is None:
        return before
    if before is None:
        return after
    first, second = jsontext.decode(before), jsontext.decode(after)
    if isinstance(first, str) and isinstance(second, str):
        return jsontext.encode(first + separator(first, second) + second)
    return jsontext.encode([*_parts(first), *_parts(second)])


def _parts(content: object) -> list[object]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
