"""Plain answers of several requests, joined to the one that a stream would have shown.  Pure."""

from __future__ import annotations

from proxy.chat import jsontext
from proxy.chat.reply.reply import TEXTS, read_reply
from proxy.chat.tools.called import Called, called, is_ours
from proxy.chat.tools.stream import Chunk, gap, says
from proxy.chat.tools.usage import summed


def called_in(body: bytes) -> Called | None:
    """What a plain answer (JSON) asks of memory; None if nothing."""
    if b"tool_calls" not in body and b"\\u00" not in body:  # as in nearly all answers
        return None
    reply = read_reply(body)
    return called(reply) if reply is not None else None


class Joined:
    """What was said and spent before the last answer."""

    def __init__(self) -> None:
        self._identity: dict[str, bytes] = {}
        self._texts: dict[str, bytes] = {}
        self._usage: bytes | None = None

    def add(self, body: bytes) -> None:
        """An answer that called nothing but memory."""
        answer = Chunk.read(body)
        if answer is None:
            return
        self._identity = self._identity or answer.identity
        self._usage = summed(self._usage, _usage(answer))
        for key in TEXTS:
            joined = _joined(self._texts.get(key), answer.delta.get(key))
            if joined is not None:
                self._texts[key] = joined

    def ended(self, body: bytes) -> bytes:
        """The last answer, with all before it and without calls of memory."""
        answer = Chunk.read(body)
        if answer is None or not answer.choice:
            return body
        answer.take_identity(self._identity)
        for key, before in self._texts.items():
            answer.delta[key] = _joined(before, answer.delta.get(key)) or before
        usage = summed(self._usage, _usage(answer))
        if usage is not None:
            answer.fields["usage"] = usage
        own = [call for call in answer.pieces() if not is_ours(call)]
        answer.put_pieces(own)
        if not own:
            answer.stop()
        return answer.write()


def _usage(answer: Chunk) -> bytes | None:
    usage = answer.fields.get("usage", b"null")
    return usage if usage.startswith(b"{") else None


def _joined(before: bytes | None, then: bytes | None) -> bytes | None:
    """Two texts (JSON) as one; a later one in parts gets the earlier one as its first part."""
    if not says(then) or then is None:
        return before
    if before is None:
        return then
    first, second = jsontext.decode(before), jsontext.decode(then)
    if isinstance(first, str) and isinstance(second, str):
        return jsontext.encode(first + gap(first, second) + second)
    return jsontext.encode([*_parts(first), *_parts(second)])


def _parts(content: object) -> list[object]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
