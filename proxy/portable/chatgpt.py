"""``conversations.json`` of a ChatGPT data export: a list of conversations, read one by one.  Pure.

A conversation is a tree of messages, of which one branch was the last.  Nodes that say nothing (the
root, what is hidden) are left out, and what follows them follows the node before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from proxy.chat import jsontext
from proxy.portable.check import Fields, fields_in, list_in, text_in, time_in, value_of
from proxy.portable.source import Broken, Conversation, ImportedMessage, Listed, Piece, Warnings

UNREADABLE = "what is no JSON, too large a number, or nested too deeply"


class ChatGPT:
    """See :class:`proxy.portable.source.ImportSource`; ``most`` bounds a conversation, in bytes."""

    def __init__(self, most: int, warnings: Warnings) -> None:
        self._items, self._warnings = Listed(most), warnings
        self._count = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        try:
            for item in self._items.feed(data):
                yield from self._conversation(item)
        except ValueError as error:
            raise self._broken(error) from None

    def finish(self) -> Iterator[Piece]:
        try:
            self._items.finish()
        except ValueError as error:
            raise self._broken(error) from None
        return iter(())

    def _conversation(self, item: bytes) -> Iterator[Piece]:
        value = value_of(item, UNREADABLE)
        self._count += 1
        found = conversation_of(value) if isinstance(value, dict) else None
        if found is None:
            self._warnings.add(f"conversation {self._count} says nothing and was left out")
        else:
            yield found

    def _broken(self, error: ValueError) -> Broken:
        """By the conversation before."""
        return Broken(f"has {error}, behind conversation {self._count}")


PASSED_OVER = frozenset({"thoughts", "reasoning_recap", "model_editable_context"})
"""What the model thought, and what was shown to it alone."""

INSTRUCTIONS = "user_editable_context"
"""What a person has told the model about themselves and how to answer."""


def text_of(message: Fields) -> str:
    """All that a message says; a line in brackets for each image, recording and file."""
    content = fields_in(message, "content")
    text = "\n".join(filter(None, _texts(content)))
    return "\n".join([text, *_attached(message, text)]).strip("\n")


def _texts(content: Fields) -> Iterator[str]:
    kind = text_in(content, "content_type")
    if kind in PASSED_OVER:
        return
    if kind == INSTRUCTIONS:
        yield text_in(content, "user_profile")
        yield text_in(content, "user_instructions")
    elif kind == "tether_quote":
        yield text_in(content, "title")
        yield text_in(content, "url")
        yield text_in(content, "text")
    elif kind == "system_error":
        yield f"{text_in(content, 'name')}: {text_in(content, 'text')}"
    elif list_in(content, "parts"):
        yield from map(_part, list_in(content, "parts"))
    else:
        yield text_in(content, "text") or text_in(content, "result")


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = text_in(part, "content_type")
    inner = fields_in(part, "audio_asset_pointer")
    if inner:
        return _part({"content_type": "audio_asset_pointer", **inner})
    if text_in(part, "asset_pointer"):
        return _placeholder(kind.partition("_")[0] or "file", part, text_in(part, "asset_pointer"))
    return text_in(part, "text") or f"[{kind or 'unknown content'}]"


def _attached(message: Fields, text: str) -> Iterator[str]:
    """The files that are not in the content already."""
    for file in list_in(fields_in(message, "metadata"), "attachments"):
        if isinstance(file, dict) and not (text_in(file, "id") and text_in(file, "id") in text):
            kind = text_in(file, "mime_type") or text_in(file, "mimeType") or "file"
            yield _placeholder(kind, file, text_in(file, "name"))


def _placeholder(kind: str, about: Fields, name: str) -> str:
    width, height = about.get("width"), about.get("height")
    size = about.get("size_bytes", about.get("size"))
    details = [
        kind,
        f"{width}x{height}" if isinstance(width, int) and isinstance(height, int) else "",
        f"{size} bytes" if isinstance(size, int) else "",
        name,
    ]
    return f"[{', '.join(filter(None, details))}]"


ALL = ("", "all", "assistant")
"""To whom a message is addressed that calls no tool."""


@dataclass(slots=True)
class _Node:
    """A message that is kept.  ``call`` is the id of the call that it makes, or answers."""

    role: str
    message: Fields
    at: float | None
    parent: _Node | None
    number: int
    call: str = ""
    active: bool = False
    index: int = -1
    children: list[_Node] = field(default_factory=list)

    @property
    def order(self) -> tuple[float, int]:
        """By time; what has none comes when the one before it does."""
        node: _Node | None = self
        while node is not None and node.at is None:
            node = node.parent
        return (node.at or 0.0 if node else 0.0, self.number)


def conversation_of(fields: Fields) -> Conversation | None:
    """None if nothing is said in it."""
    tree = _Tree(fields_in(fields, "mapping"))
    tree.activate(text_in(fields, "current_node"))
    said = tuple(_said(node) for node in tree.in_order())
    if not said:
        return None
    return Conversation(
        said=said,
        system=tuple(jsontext.encode(message) for message in tree.system),
        id=text_in(fields, "conversation_id") or text_in(fields, "id") or None,
        title=text_in(fields, "title"),
        created_at=time_in(fields, "create_time"),
    )


def _said(node: _Node) -> ImportedMessage:
    parent = node.parent.index if node.parent else -1
    return ImportedMessage(jsontext.encode(node.message), node.at, parent, node.active)


class _Tree:
    """``nodes`` are those that are kept, by id; one that is not has that of the one before."""

    def __init__(self, mapping: Fields) -> None:
        self._mapping = mapping
        self.nodes: dict[str, _Node | None] = {}
        self.roots: list[_Node] = []
        self.system: list[Fields] = []
        self._last: _Node | None = None
        for id, parent in self._walk():
            self._add(id, parent)

    def _walk(self) -> Iterator[tuple[str, str]]:
        """Ids with that of the one before, which comes first; as they are listed, depth first."""
        below: dict[str, list[str]] = {}
        for id in self._mapping:
            parent = text_in(fields_in(self._mapping, id), "parent")
            below.setdefault(parent if parent in self._mapping else "", []).append(id)
        for parent, ids in below.items():
            listed = list_in(fields_in(self._mapping, parent), "children")
            place = {id: n for n, id in enumerate(listed) if isinstance(id, str)}
            ids.sort(key=lambda id: place.get(id, len(place)))
        todo = [(id, "") for id in reversed(below.get("", []))]
        while todo:
            id, parent = todo.pop()
            yield id, parent
            todo += [(child, id) for child in reversed(below.get(id, []))]

    def _add(self, id: str, before: str) -> None:
        parent = self.nodes.get(before)
        node = self._node(id, fields_in(fields_in(self._mapping, id), "message"), parent)
        self.nodes[id] = node or parent
        if node is not None:
            (parent.children if parent else self.roots).append(node)
            self._last = node

    def _node(self, id: str, message: Fields, parent: _Node | None) -> _Node | None:
        role = text_in(fields_in(message, "author"), "role")
        text = text_of(message)
        kind = text_in(fields_in(message, "content"), "content_type")
        if text and (kind == INSTRUCTIONS or role == "system"):
            if parent is None and not self.roots:
                self.system.append({"role": "system", "content": text})
            return None
        if role not in ("user", "assistant", "tool") or _is_hidden(message):
            return None
        called = text_in(message, "recipient")
        node = _Node(role, {}, time_in(message, "create_time"), parent, len(self.nodes))
        if role == "assistant" and called not in ALL:
            node.call = f"call_{id}"
            node.message = _calling(node.call, called, text)
        elif role == "tool":
            node.call = _answered(parent) or id
            node.message = {"role": role, "tool_call_id": node.call, "content": text}
        elif text:
            node.message = {"role": role, "content": text}
        else:
            return None
        return node

    def activate(self, current: str) -> None:
        """The branch that ends with this node, or, without one, with the last that is listed."""
        node = self.nodes.get(current, self._last)
        while node is not None:
            node.active = True
            node = node.parent

    def in_order(self) -> Iterator[_Node]:
        """All of them in time, but answers directly behind what they answer, parents first."""
        waiting = [(*node.order, node) for node in self.roots]
        heapq.heapify(waiting)
        index = 0
        while waiting:
            node: _Node | None = heapq.heappop(waiting)[-1]
            while node is not None:
                node.index = index
                index += 1
                yield node
                goes_on = next((x for x in node.children[:1] if x.role != "user"), None)
                for child in node.children:
                    if child is not goes_on:
                        heapq.heappush(waiting, (*child.order, child))
                node = goes_on


def _is_hidden(message: Fields) -> bool:
    return fields_in(message, "metadata").get("is_visually_hidden_from_conversation") is True


def _calling(call: str, tool: str, text: str) -> Fields:
    function = {"name": tool, "arguments": jsontext.encode({"input": text}).decode()}
    calls = [{"id": call, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _answered(before: _Node | None) -> str:
    """The call that a result which follows this node answers; "" if it has an answer already.

    A result without a call stays in history and is never sent.
    """
    if before is not None and before.role == "assistant":
        return before.call
    return ""
