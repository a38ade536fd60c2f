"""Tool calls, merged from the pieces of a stream."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat import jsontext
from proxy.chat.reply.deltas import Node, Rope, merge_delta


class Calls:
    """Tool calls under construction.

    A piece belongs to the call with its ``index``; without one, to the call with its id; without
    either, to the newest call, or to the call at its own place in the delta if it has a name.
    """

    __slots__ = ("_by_id", "_by_index", "nodes")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._by_index: dict[int, Node] = {}
        self._by_id: dict[str, Node] = {}

    def add(self, pieces: object) -> list[Node]:
        """Merge the pieces of a delta; returns the call that each belongs to."""
        objects = jsontext.objects_in(pieces)
        return [self._add(piece, position) for position, piece in enumerate(objects)]

    def _add(self, piece: Mapping[str, object], position: int) -> Node:
        node = self._find(piece, position)
        if node is None or _begins_another_call(node, piece):
            self.nodes.append(node := {})
        index, id = piece.get("index"), piece.get("id")
        if isinstance(index, int):
            self._by_index[index] = node
        if isinstance(id, str) and id:
            self._by_id[id] = node
        merge_delta(node, piece)
        return node

    def _find(self, piece: Mapping[str, object], position: int) -> Node | None:
        index, id = piece.get("index"), piece.get("id")
        if isinstance(index, int):
            return self._by_index.get(index)
        if isinstance(id, str) and id:
            return self._by_id.get(id)
        if not _field(piece, "name"):
            return self.nodes[-1] if self.nodes else None
        return self.nodes[position] if position < len(self.nodes) else None


def _begins_another_call(node: Node, piece: Mapping[str, object]) -> bool:
    """Whether a piece with a name begins another call although its index is in use.

    It does if the id differs, or if it has no id and complete arguments while the call has some:
    some upstreams send every call with index 0.
    """
    if not _field(piece, "name"):
        return False
    id, node_id = piece.get("id"), node.get("id")
    if id and node_id and id != node_id:
        return True
    return bool(_field(node, "arguments")) and not id and _is_object(_field(piece, "arguments"))


def _is_object(arguments: object) -> bool:
    if not isinstance(arguments, str) or not arguments.strip().startswith("{"):
        return isinstance(arguments, dict)
    try:
        return isinstance(jsontext.decode(arguments.encode()), dict)
    except jsontext.UNREADABLE:  # a piece
        return False


def _field(call: Mapping[str, object], name: str) -> object:
    """A field of a call's function; an empty Rope is nothing."""
    function = call.get("function")
    value = function.get(name) if isinstance(function, dict) else None
    return None if isinstance(value, Rope) and not value.size else value
