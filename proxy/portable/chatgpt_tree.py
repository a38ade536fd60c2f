"""A conversation of a ChatGPT data export: a tree of messages, of which one branch was the last.

Pure.  Nodes that say nothing (the root, what is hidden) are left out, and what follows them follows
the node before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from proxy.chat import jsontext
from proxy.portable.chatgpt_content import INSTRUCTIONS, text_of
from proxy.portable.piece import Conversation, Said
from proxy.portable.reading import Fields, fields_in, list_in, text_in, time_in

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


def _said(node: _Node) -> Said:
    parent = node.parent.index if node.parent else -1
    return Said(jsontext.encode(node.message), node.at, parent, node.active)


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
