"""An answer with one choice, or a chunk of one, taken apart: what is not touched keeps its bytes.

Pure; knows OpenAI's format.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat import jsontext
from proxy.chat.slim import is_heavy

_IDENTITY = ("id", "created", "model")
_NOTHING = (b"null", b'""', b"[]", b"{}")


class Chunk:
    """``fields`` of all, of the ``choice``, and of its ``delta``; change them and ``write``.

    The delta is the message where there is one instead, as in a plain answer.
    """

    __slots__ = ("_place", "_rest", "choice", "delta", "fields")

    def __init__(self, fields: dict[str, bytes], choices: list[bytes]) -> None:
        self.fields = fields
        self.choice = jsontext.fields(choices[0]) if choices else {}
        self._rest = choices[1:]
        whole = "message" in self.choice and not says(self.choice.get("delta"))
        self._place = "message" if whole else "delta"
        delta = self.choice.get(self._place, b"null")
        self.delta = jsontext.fields(delta) if says(delta) else {}

    @classmethod
    def read(cls, payload: bytes) -> Chunk | None:
        """None for what is no chunk, or holds too much to be taken apart."""
        if is_heavy(payload):
            return None
        try:
            fields = jsontext.fields(payload)
            choices = fields.get("choices", b"null")
            return cls(fields, jsontext.items(choices) if says(choices) else [])
        except jsontext.UNREADABLE:  # [DONE], and what means nothing to us
            return None

    @property
    def finished(self) -> bool:
        return says(self.choice.get("finish_reason"))

    def stop(self) -> None:
        """Nothing is called any more: an answer that ended with calls has just ended."""
        if self.choice.get("finish_reason") == b'"tool_calls"':
            self.choice["finish_reason"] = b'"stop"'

    @property
    def empty(self) -> bool:
        """Is nothing in it that a client could use?"""
        return not (
            self._rest
            or any(map(says, self.delta.values()))
            or any(says(self.choice.get(name)) for name in ("finish_reason", "logprobs", "usage"))
            or says(self.fields.get("usage"))
            or not self.choice
        )

    def pieces(self) -> list[bytes]:
        """The tool calls in it, or pieces of them, each as JSON."""
        raw = self.delta.get("tool_calls", b"null")
        try:
            return jsontext.items(raw) if says(raw) else []
        except jsontext.UNREADABLE:  # no list
            return []

    def take_identity(self, identity: Mapping[str, bytes]) -> None:
        """Be a part of the answer with this identity, where it says which it is."""
        self.fields |= {key: raw for key, raw in identity.items() if key in self.fields}

    @property
    def identity(self) -> dict[str, bytes]:
        """What is the same in all chunks of an answer."""
        return {key: self.fields[key] for key in _IDENTITY if key in self.fields}

    def put_pieces(self, pieces: list[bytes]) -> None:
        """These instead."""
        if pieces:
            self.delta["tool_calls"] = jsontext.join_items(pieces)
        else:
            self.delta.pop("tool_calls", None)

    def write(self) -> bytes:
        """The chunk as JSON."""
        if not self.choice:
            return jsontext.join_fields(self.fields)
        choice = {**self.choice}
        if self.delta or self._place in choice:
            choice[self._place] = jsontext.join_fields(self.delta)
        choices = jsontext.join_items([jsontext.join_fields(choice), *self._rest])
        return jsontext.join_fields({**self.fields, "choices": choices})


def says(raw: bytes | None) -> bool:
    """Does a value (JSON; None: absent) say anything?"""
    return raw is not None and raw not in _NOTHING
