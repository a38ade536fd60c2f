"""One chunk of a streamed answer with one choice, taken apart: what is not touched keeps its bytes.

Pure; knows OpenAI's chunks.
"""

from __future__ import annotations

from proxy.chat import jsontext

IDENTITY = ("id", "created", "model")
"""Fields that are the same in all chunks of an answer."""

_NOTHING = (b"null", b'""', b"[]", b"{}")


class Chunk:
    """``fields`` of the chunk, of its ``choice``, and of the delta; change them and ``write``."""

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
        """None for what is no chunk."""
        try:
            fields = jsontext.fields(payload)
            choices = fields.get("choices", b"null")
            return cls(fields, jsontext.items(choices) if says(choices) else [])
        except jsontext.UNREADABLE:  # [DONE], and what means nothing to us
            return None

    @property
    def finish(self) -> str | None:
        """Why the answer is finished."""
        raw = self.choice.get("finish_reason")
        reason = jsontext.decode(raw) if raw is not None and says(raw) else None
        return reason if isinstance(reason, str) else None

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
        """The pieces of tool calls in it, each as JSON.  Raises jsontext.UNREADABLE."""
        raw = self.delta.get("tool_calls")
        return jsontext.items(raw) if says(raw) and raw is not None else []

    def put_pieces(self, pieces: list[bytes]) -> None:
        """These pieces of tool calls instead."""
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
