"""A choice of a streamed reply, under construction."""

from __future__ import annotations

from proxy.chat.calls import Calls
from proxy.chat.deltas import Node, Rope, grow, whole
from proxy.chat.slim import is_light


class Draft:
    """Collects what deltas say of one choice."""

    __slots__ = ("_calls", "_extra", "_node", "finish_reason")

    def __init__(self) -> None:
        self._node: Node = {}
        self._extra: Node = {}
        self._calls = Calls()
        self.finish_reason: str | None = None

    def add_text(self, key: str, text: str) -> None:
        """More of a field that is text."""
        rope = self._node.get(key)
        if isinstance(rope, Rope):
            rope.add(text)
        else:
            grow(self._node, {key: text})

    def add_choice(self, choice: dict[str, object]) -> None:
        """A choice of a chunk, of whatever shape."""
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            self._add(delta)
        if isinstance(message, dict):
            self._add_whole(message)
        grow(self._extra, {"logprobs": choice.get("logprobs")})
        reason = choice.get("finish_reason")
        if reason:
            self.finish_reason = reason if isinstance(reason, str) else "unknown"

    def message(self) -> dict[str, object]:
        """The message that the deltas add up to."""
        calls = [whole(node) for node in self._calls.nodes]
        return {**{key: whole(value) for key, value in self._node.items()}, "tool_calls": calls}

    def lighten(self) -> bool:
        """Let go of what is too much to be read again at once; texts stay.  Was there such?"""
        extra, node, calls = map(is_light, (self._extra, self._node, self._calls.nodes))
        if not extra:
            self._extra = {}
        if not node:
            self._node = {key: old for key, old in self._node.items() if isinstance(old, Rope)}
        if not calls:
            self._calls = Calls()
        return not (extra and node and calls)

    def logprobs(self) -> object:
        return whole(self._extra.get("logprobs"))

    def _add(self, delta: dict[str, object]) -> None:
        self._calls.add(delta.pop("tool_calls", None))
        grow(self._node, delta)

    def _add_whole(self, message: dict[str, object]) -> None:
        """A message instead of a delta: what it says takes the place of what was said."""
        calls = message.pop("tool_calls", None)
        if calls:
            self._calls = Calls()
            self._calls.add(calls)
        for key, value in message.items():
            rope = self._node.get(key)
            if isinstance(rope, Rope) and isinstance(value, str):
                rope.add_whole(value)
            elif value:
                self._node.pop(key, None)
                grow(self._node, {key: value})
