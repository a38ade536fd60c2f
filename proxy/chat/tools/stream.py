"""Removes calls of memory's tools from a streamed answer and lets all else through.

Sans I/O: events in, events out.  Events without any part of such a call are returned unchanged; the
others are rewritten or dropped.  Knows OpenAI's format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from proxy.chat import jsontext
from proxy.chat.large_answers import may_have_many_values
from proxy.chat.reply.deltas import Node, join_ropes
from proxy.chat.reply.events import end_signal, may_end
from proxy.chat.reply.reply import ReplyBuilder
from proxy.chat.tools.calls import Calls
from proxy.chat.tools.memory_calls import MemoryCalls, memory_calls
from proxy.chat.tools.offer import NAMES
from proxy.chat.usage import add_usages

_IDENTITY = ("id", "created", "model")
_NOTHING = (b"null", b'""', b"[]", b"{}")


class Chunk:
    """A chunk: its ``fields``, those of the first ``choice``, and of the ``delta``, to be changed
    and written.

    In a JSON answer ``delta`` is the message.
    """

    __slots__ = ("_message_key", "_other_choices", "choice", "delta", "fields")

    def __init__(self, fields: dict[str, bytes], choices: list[bytes]) -> None:
        self.fields = fields
        self.choice = jsontext.fields(choices[0]) if choices else {}
        self._other_choices = choices[1:]
        is_message = "message" in self.choice and not has_value(self.choice.get("delta"))
        self._message_key = "message" if is_message else "delta"
        delta = self.choice.get(self._message_key, b"null")
        self.delta = jsontext.fields(delta) if has_value(delta) else {}

    @classmethod
    def read(cls, payload: bytes) -> Chunk | None:
        """Parse a chunk; None for anything else, or if it has too many values."""
        if may_have_many_values(payload):
            return None
        try:
            fields = jsontext.fields(payload)
            choices = fields.get("choices", b"null")
            return cls(fields, jsontext.items(choices) if has_value(choices) else [])
        except jsontext.UNREADABLE:  # [DONE], and what means nothing to us
            return None

    @property
    def has_finish_reason(self) -> bool:
        return has_value(self.choice.get("finish_reason"))

    def stop(self) -> None:
        """Change the finish reason of an answer whose calls were removed."""
        if self.choice.get("finish_reason") == b'"tool_calls"':
            self.choice["finish_reason"] = b'"stop"'

    @property
    def is_empty(self) -> bool:
        """Whether a client needs nothing of it."""
        return not (
            self._other_choices
            or any(map(has_value, self.delta.values()))
            or any(
                has_value(self.choice.get(name)) for name in ("finish_reason", "logprobs", "usage")
            )
            or has_value(self.fields.get("usage"))
            or not self.choice
        )

    def pieces(self) -> list[bytes]:
        """The tool calls in it, or pieces of calls, each as JSON."""
        raw = self.delta.get("tool_calls", b"null")
        try:
            return jsontext.items(raw) if has_value(raw) else []
        except jsontext.UNREADABLE:  # no list
            return []

    def take_identity(self, identity: Mapping[str, bytes]) -> None:
        """Replace its identifying fields by those of another answer."""
        self.fields |= {key: raw for key, raw in identity.items() if key in self.fields}

    @property
    def identity(self) -> dict[str, bytes]:
        """The fields that are the same in all chunks of an answer."""
        return {key: self.fields[key] for key in _IDENTITY if key in self.fields}

    def put_pieces(self, pieces: list[bytes]) -> None:
        if pieces:
            self.delta["tool_calls"] = jsontext.join_items(pieces)
        else:
            self.delta.pop("tool_calls", None)

    def write(self) -> bytes:
        if not self.choice:
            return jsontext.join_fields(self.fields)
        choice = {**self.choice}
        if self.delta or self._message_key in choice:
            choice[self._message_key] = jsontext.join_fields(self.delta)
        choices = jsontext.join_items([jsontext.join_fields(choice), *self._other_choices])
        return jsontext.join_fields({**self.fields, "choices": choices})


def has_value(raw: bytes | None) -> bool:
    """Whether a value (JSON, None if absent) is neither null nor empty."""
    return raw is not None and raw not in _NOTHING


class Event(Protocol):
    """An event of a stream, with a payload."""

    @property
    def payload(self) -> bytes: ...

    def replaced(self: EventT, payload: bytes) -> EventT:
        """The same event with another payload."""
        ...


EventT = TypeVar("EventT", bound=Event)


class _HeldEvent(NamedTuple, Generic[EventT]):
    """A held event, with the calls that the pieces in it belong to."""

    event: EventT
    chunk: Chunk | None
    nodes: list[Node]


class ToolCallFilter(Generic[EventT]):
    """Separates one stream's events for the client from the calls of memory's tools.

    While a call's name may still become one of ours, the call and everything after it are held:
    names come whole, or in pieces before any arguments.  Once a stream with a call of memory's
    tools has finished, the finish and everything after it are held for ``held_events``.
    """

    def __init__(self) -> None:
        self._calls, self._builder = Calls(), ReplyBuilder()
        self._held: list[_HeldEvent[EventT]] = []
        self._held_end: list[EventT] | None = None
        """The finish and what follows it, once a stream with calls of memory's tools has it."""
        self._memory_nodes: set[int] = set()
        self._client_indexes: dict[int, int | None] = {}
        """The client's calls, by ``id()`` of their nodes: the index to send, None if unchanged."""
        self.identity: dict[str, bytes] = {}
        """``Chunk.identity`` of the answer, once it has finished with calls of memory's tools."""

    def take(self, event: EventT) -> list[EventT]:
        """Take an event; returns the events that the client may see now."""
        self._builder.feed(event.payload)
        if not self._may_need_change(event.payload):
            return [event]
        chunk = Chunk.read(event.payload)
        self._held.append(_HeldEvent(event, chunk, self._nodes(chunk)))
        if end_signal(event.payload) is None and self._may_become_memory_call:
            return []
        return self._release_held()

    def memory_calls(self) -> MemoryCalls | None:
        """The calls of memory's tools, after the end of the stream."""
        return memory_calls(self._builder.build()) if self._held_end is not None else None

    def held_events(self) -> list[EventT]:
        """The held events, for an answer that ends here."""
        waiting = self._release_held()
        end, self._held_end = self._held_end or [], []
        return [*waiting, *(end if self._client_indexes else map(_with_stop_reason, end))]

    def _may_need_change(self, payload: bytes) -> bool:
        if self._held or self._held_end is not None:
            return True
        if b"tool_calls" in payload or b"\\u00" in payload:
            return True
        return bool(self._memory_nodes) and may_end(payload)

    def _nodes(self, chunk: Chunk | None) -> list[Node]:
        pieces = [jsontext.decode(raw) for raw in chunk.pieces()] if chunk else []
        if not all(isinstance(piece, dict) for piece in pieces):
            return []
        return self._calls.add(pieces)

    @property
    def _may_become_memory_call(self) -> bool:
        return any(_may_become_memory_tool(node) for held in self._held for node in held.nodes)

    def _release_held(self) -> list[EventT]:
        held, self._held = self._held, []
        return [event for held_event in held for event in self._sort(held_event)]

    def _sort(self, held: _HeldEvent[EventT]) -> Iterator[EventT]:
        """The event for the client, without pieces of memory's calls; none if nothing is left of it
        or the end of the stream is held."""
        event, chunk, nodes = held
        if chunk is not None:
            pieces = chunk.pieces() if nodes else []
            client_pieces = [
                _renumbered(piece, self._client_index(node))
                for piece, node in zip(pieces, nodes, strict=True)
                if not self._is_memory_call(node)
            ]
            if client_pieces != pieces:
                chunk.put_pieces(client_pieces)
                event = event.replaced(chunk.write())
            if chunk.has_finish_reason and self._memory_nodes and self._held_end is None:
                self._held_end, self.identity = [], chunk.identity
            if event is not held.event and chunk.is_empty:
                return
        if self._held_end is None:
            yield event
        else:
            self._held_end.append(event)

    def _is_memory_call(self, node: Node) -> bool:
        if id(node) not in self._client_indexes and _name_of(node) in NAMES:
            self._memory_nodes.add(id(node))
        return id(node) in self._memory_nodes

    def _client_index(self, node: Node) -> int | None:
        """The client's index of its call: counted again if calls of memory's tools precede it."""
        if id(node) not in self._client_indexes:
            count = len(self._client_indexes)
            self._client_indexes[id(node)] = count if self._memory_nodes else None
        return self._client_indexes[id(node)]


class Continuation(Generic[EventT]):
    """Rewrites the events of further rounds' streams to continue the first answer.

    ``identity``: the fields that all its chunks share.  ``usage``: the usage so far (JSON).
    ``texts``: the texts so far, by field.
    """

    def __init__(
        self, identity: Mapping[str, bytes], usage: bytes | None, texts: Mapping[str, str]
    ) -> None:
        self.identity, self._usage = identity, usage
        self._texts = dict(texts)

    def take(self, event: EventT) -> EventT | None:
        """The event for the client; None if it is empty."""
        chunk = Chunk.read(event.payload)
        if chunk is None:
            return event
        chunk.take_identity(self.identity)
        chunk.delta.pop("role", None)
        self._separate_texts(chunk.delta)
        for holder in (chunk.fields, chunk.choice):
            if holder.get("usage", b"").startswith(b"{"):
                holder["usage"] = add_usages(self._usage, holder["usage"]) or b"null"
        return None if chunk.is_empty else event.replaced(chunk.write())

    def _separate_texts(self, delta: dict[str, bytes]) -> None:
        """Put a separator before this round's first text in each field that has a text already."""
        for key in [key for key in self._texts if has_value(delta.get(key))]:
            before, text = self._texts.pop(key), jsontext.decode(delta[key])
            if isinstance(text, str) and (gap := separator(before, text)):
                delta[key] = jsontext.encode(gap + text)


def separator(before: str, after: str) -> str:
    """The separator of the texts of two rounds: a blank line, unless there is white space."""
    needs_gap = before and after and not (before[-1].isspace() or after[0].isspace())
    return "\n\n" if needs_gap else ""


def _may_become_memory_tool(node: Node) -> bool:
    name = _name_of(node)
    if name in NAMES or not any(known.startswith(name) for known in NAMES):
        return False
    function = node.get("function")
    arguments = join_ropes(function.get("arguments")) if isinstance(function, dict) else None
    return "custom" not in node and not (name and arguments)


def _name_of(node: Node) -> str:
    function = node.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _renumbered(piece: bytes, index: int | None) -> bytes:
    fields = jsontext.fields(piece)
    if index is None or "index" not in fields:
        return piece
    return jsontext.join_fields({**fields, "index": b"%d" % index})


def _with_stop_reason(event: EventT) -> EventT:
    """The event with a finish reason other than "tool_calls"."""
    chunk = Chunk.read(event.payload)
    if chunk is None or not chunk.has_finish_reason:
        return event
    chunk.stop()
    return event.replaced(chunk.write())
