"""Merges the deltas of a streamed message.

Strings concatenate, lists extend, objects merge; fields like id, type and role do not concatenate,
because some upstreams repeat them in every delta.  Time is linear in the input.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat import jsontext

Node = dict[str, object]
"""An object under construction: its strings are Ropes."""

_NOT_CONCATENATED = {"id", "type", "role", "index", "format", "name", "signature"}
_STREAMED_PARTS = ("text", "thinking", "output_text")
"""Types of content parts that are streamed piece by piece."""

_MAX_LOOKBACK = 64
"""Last items of a list among which an equal ``index`` is searched."""


class Rope:
    """A string that is built from pieces."""

    __slots__ = ("pieces", "size")

    def __init__(self, text: str = "") -> None:
        self.pieces = [text]
        self.size = len(text)

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)

    def add_whole(self, text: str) -> None:
        """Replace by ``text`` if that begins with the current string, else append it."""
        if len(text) >= self.size and text.startswith("".join(self.pieces)):
            self.pieces, self.size = [text], len(text)
        else:
            self.add(text)

    def __str__(self) -> str:
        return jsontext.join_surrogates("".join(self.pieces))


def merge_delta(node: Node, delta: Mapping[str, object]) -> None:
    """Merge a delta into an object; null only adds the key."""
    for key, new in delta.items():
        if new is None:
            node.setdefault(key, None)
        else:
            old = node.get(key)
            is_label = key in _NOT_CONCATENATED and isinstance(new, str | int)
            node[key] = _label(key, old, new) if is_label else _merged(old, new)


def join_ropes(value: object) -> object:
    """The value with its Ropes as strings."""
    if isinstance(value, Rope):
        return str(value)
    if isinstance(value, dict):
        return {key: join_ropes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [join_ropes(item) for item in value]
    return value


def _label(key: str, old: object, new: object) -> object:
    """The merged label: a name may be repeated or come in pieces; of others the first one stays."""
    if key == "name" and isinstance(old, str) and isinstance(new, str):
        return new if new.startswith(old) else old if old.endswith(new) else old + new
    return new if old is None or old == "" else old


def _merged(old: object, new: object) -> object:
    if isinstance(new, str):
        return _with_text(old, new)
    if isinstance(new, list):
        return _with_items(old, new)
    if isinstance(new, dict):
        node: Node = old if isinstance(old, dict) else {}
        merge_delta(node, new)
        return node
    return new


def _with_text(old: object, text: str) -> object:
    """``old`` with more text; a list of content parts gets a text part."""
    if isinstance(old, Rope):
        old.add(text)
        return old
    if isinstance(old, list):
        return _with_items(old, [{"type": "text", "text": text}] if text else [])
    return Rope(text)


def _with_items(old: object, new: list[object]) -> list[object]:
    items: list[object] = old if isinstance(old, list) else []
    if isinstance(old, Rope) and old.size:
        items = [{"type": "text", "text": old}]
    for item in new:
        continued = _continued_item(items, item)
        if isinstance(item, dict):
            if continued is None:
                items.append(continued := {})
            merge_delta(continued, item)
        else:
            items.append(item)
    return items


def _continued_item(items: list[object], item: object) -> Node | None:
    """The item that this one continues: by its index, or the last text part of the same type."""
    if not isinstance(item, dict) or not items:
        return None
    index = item.get("index")
    if isinstance(index, int):
        recent = (old for old in items[: -_MAX_LOOKBACK - 1 : -1] if isinstance(old, dict))
        return next((old for old in recent if old.get("index") == index), None)
    last, kind = items[-1], item.get("type")
    is_continued = isinstance(last, dict) and last.get("type") == kind and kind in _STREAMED_PARTS
    return last if is_continued and isinstance(last, dict) else None
