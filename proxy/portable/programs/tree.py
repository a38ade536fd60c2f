"""A conversation whose messages form a tree, of which one branch was the last.  Pure.

What a program calls one message may be several of OpenAI's, or none: what follows one that says
nothing follows the one before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from proxy.chat import jsontext
from proxy.portable.check import Fields
from proxy.portable.source import Conversation, ImportedMessage, Warnings


class Spoken(msgspec.Struct, frozen=True):
    """A message as OpenAI's chat has it, and when it was said (Unix seconds, None: not known)."""

    message: Fields
    at: float | None = None


class Node(msgspec.Struct):
    """An utterance in its tree.  ``time`` is that of the one before where it has none itself."""

    said: Spoken
    parent: Node | None
    time: float
    number: int
    active: bool = False
    index: int = -1
    children: list[Node] = msgspec.field(default_factory=list)

    @property
    def order(self) -> tuple[float, int]:
        return self.time, self.number


def in_a_ring(count: int, number: int) -> str:
    """The warning of messages that are each said to be before the other."""
    return f"{count} messages of conversation {number} follow each other in a ring and are left out"


def _unlisted(id: str) -> Sequence[object]:
    return ()


def parents_first(
    parents: Mapping[str, str], listed: Callable[[str], Sequence[object]] = _unlisted
) -> Iterator[tuple[str, str]]:
    """Ids with that of the one before ("": none), which comes first; depth first.

    ``listed`` names those that follow one, in order; others come behind them, in the order of
    ``parents``.  Those that follow each other in a ring do not come at all.
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
        """How many utterances there are."""
        return len(self._nodes)

    def add(self, id: str, before: str, said: Iterable[Spoken]) -> None:
        """An entry that follows another, which was added already; "": it follows none."""
        end = self._ends.get(before)
        for each in said:
            end = self._appended(each, end)
        self._ends[id] = end

    def _appended(self, said: Spoken, parent: Node | None) -> Node:
        before = parent.time if parent else 0.0
        node = Node(said, parent, before if said.at is None else said.at, len(self._nodes))
        (parent.children if parent else self._roots).append(node)
        self._nodes.append(node)
        return node

    def said(self, current: str) -> tuple[ImportedMessage, ...]:
        """All of them; active is the branch that ends with this entry, or, where there is no such
        entry, with the newest."""
        newest = max(self._nodes, key=lambda node: node.order, default=None)
        node = self._ends.get(current) or newest
        while node is not None:
            node.active = True
            node = node.parent
        return tuple(map(_imported, self._in_order()))

    def _in_order(self) -> Iterator[Node]:
        """All of them in time, but answers directly behind what they answer, parents first."""
        waiting = [(*node.order, node) for node in self._roots]
        heapq.heapify(waiting)
        index = 0
        while waiting:
            node: Node | None = heapq.heappop(waiting)[-1]
            while node is not None:
                node.index = index
                index += 1
                yield node
                goes_on = next((x for x in node.children[:1] if not _asks(x)), None)
                for child in node.children:
                    if child is not goes_on:
                        heapq.heappush(waiting, (*child.order, child))
                node = goes_on


def _asks(node: Node) -> bool:
    return node.said.message.get("role") == "user"


def _imported(node: Node) -> ImportedMessage:
    parent = node.parent.index if node.parent else -1
    return ImportedMessage(jsontext.encode(node.said.message), node.said.at, parent, node.active)


class TreeEntry(msgspec.Struct, frozen=True):
    """What a program calls one message; ``parent`` is the id of the one before."""

    id: str
    parent: str
    said: tuple[Spoken, ...] = ()


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
    """The conversation that entries in any order make; None if nothing is said in it.

    ``number`` is its place in the file.  Of entries with the same id the first counts.
    """
    known: dict[str, TreeEntry] = {}
    for entry in entries:
        if entry.id in known and entry.said:
            warnings.add(f"conversation {number} has an id of messages twice; the first counts")
        known.setdefault(entry.id, entry)
    branches, seen = Branches(), 0
    for own, parent in parents_first({entry.id: entry.parent for entry in known.values()}):
        branches.add(own, parent, known[own].said)
        seen += 1
    if seen < len(known):
        warnings.add(in_a_ring(len(known) - seen, number))
    if not len(branches):
        return None
    return Conversation(
        said=branches.said(current),
        system=tuple(map(jsontext.encode, system)),
        id=id or None,
        title=title or None,
        created_at=created_at,
        user=user or None,
    )
