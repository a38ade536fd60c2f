"""Conversations whose messages form a tree with one current branch.  Pure.

An entry of a program may be several of OpenAI's messages, or none; then its children follow its
parent.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from proxy.chat import jsontext
from proxy.portable.check import Fields
from proxy.portable.source import Conversation, ImportedMessage, Warnings


class TimedMessage(msgspec.Struct, frozen=True):
    """A message in OpenAI's chat format, and its time (Unix seconds, None if not known)."""

    message: Fields
    at: float | None = None


class Node(msgspec.Struct):
    """A message in its tree.  ``time`` is its parent's if it has none."""

    content: TimedMessage
    parent: Node | None
    time: float
    number: int
    active: bool = False
    index: int = -1
    children: list[Node] = msgspec.field(default_factory=list)

    @property
    def order(self) -> tuple[float, int]:
        return self.time, self.number


def cycle_warning(count: int, number: int) -> str:
    """The warning about messages whose parents form a cycle."""
    return f"{count} messages of conversation {number} follow each other in a ring and are left out"


def parents_first(
    parents: Mapping[str, str], listed: Callable[[str], Sequence[object]] = lambda id: ()
) -> Iterator[tuple[str, str]]:
    """Pairs of id and parent ("" for none), depth first, parents before children.

    ``listed`` returns the children of an id in order; others come after them, in the order of
    ``parents``.  Ids in a cycle are omitted.
    """
    below: dict[str, list[str]] = {}
    for id, parent in parents.items():
        below.setdefault(parent if parent in parents else "", []).append(id)
    for parent, ids in below.items():
        place = {id: n for n, id in enumerate(listed(parent)) if isinstance(id, str)}
        ids.sort(key=lambda id: place.get(id, len(place)))
    todo = [(id, "") for id in reversed(below.get("", []))]
    while todo:
        id, parent = todo.pop()
        yield id, parent
        todo += [(child, id) for child in reversed(below.get(id, []))]


class Branches:
    def __init__(self) -> None:
        self._ends: dict[str, Node | None] = {}
        self._nodes: list[Node] = []
        self._roots: list[Node] = []

    def __len__(self) -> int:
        """The number of messages."""
        return len(self._nodes)

    def add(self, id: str, parent_id: str, messages: Iterable[TimedMessage]) -> None:
        """Add an entry after another one, which was added before; "": it follows none."""
        end = self._ends.get(parent_id)
        for each in messages:
            end = self._append(each, end)
        self._ends[id] = end

    def _append(self, content: TimedMessage, parent: Node | None) -> Node:
        parent_time = parent.time if parent else 0.0
        time = parent_time if content.at is None else content.at
        node = Node(content, parent, time, len(self._nodes))
        (parent.children if parent else self._roots).append(node)
        self._nodes.append(node)
        return node

    def messages(self, current: str) -> tuple[ImportedMessage, ...]:
        """All messages; the branch that ends with entry ``current`` is active, or the one with the
        newest message if there is no such entry."""
        newest = max(self._nodes, key=lambda node: node.order, default=None)
        node = self._ends.get(current) or newest
        while node is not None:
            node.active = True
            node = node.parent
        return tuple(map(_imported, self._in_order()))

    def _in_order(self) -> Iterator[Node]:
        """All messages by time, parents first, with answers directly after what they answer."""
        waiting = [(*node.order, node) for node in self._roots]
        heapq.heapify(waiting)
        index = 0
        while waiting:
            node: Node | None = heapq.heappop(waiting)[-1]
            while node is not None:
                node.index = index
                index += 1
                yield node
                next_node = next(
                    (x for x in node.children[:1] if x.content.message.get("role") != "user"), None
                )
                for child in node.children:
                    if child is not next_node:
                        heapq.heappush(waiting, (*child.order, child))
                node = next_node


def _imported(node: Node) -> ImportedMessage:
    parent = node.parent.index if node.parent else -1
    return ImportedMessage(
        jsontext.encode(node.content.message), node.content.at, parent, node.active
    )


class TreeEntry(msgspec.Struct, frozen=True):
    """A program's entry, with the messages that it becomes; ``parent`` is the id before it."""

    id: str
    parent: str
    messages: tuple[TimedMessage, ...] = ()


def conversation(
    entries: Iterable[TreeEntry],
    warnings: Warnings,
    number: int,
    *,
    current: str = "",
    system: Sequence[Fields] = (),
    id: str = "",
    title: str = "",
    created_at: float | None = None,
    user: str = "",
) -> Conversation | None:
    """The conversation of entries in any order; None if it has no messages.

    ``number`` is its place in the file.  Of entries with the same id the first counts.
    """
    known: dict[str, TreeEntry] = {}
    for entry in entries:
        if entry.id in known and entry.messages:
            warnings.add(f"conversation {number} has an id of messages twice; the first counts")
        known.setdefault(entry.id, entry)
    branches, reached = Branches(), 0
    for id_, parent in parents_first({entry.id: entry.parent for entry in known.values()}):
        branches.add(id_, parent, known[id_].messages)
        reached += 1
    if reached < len(known):
        warnings.add(cycle_warning(len(known) - reached, number))
    if not len(branches):
        return None
    return Conversation(
        messages=branches.messages(current),
        system=tuple(map(jsontext.encode, system)),
        id=id or None,
        title=title or None,
        created_at=created_at,
        user=user or None,
    )
