"""``conversations.json`` of a ChatGPT data export: a list of conversations, read one by one.  Pure.

A conversation is a tree of messages, of which one branch was the last.  Nodes that say nothing (the
root, what is hidden) are left out, and what follows them follows the node before.
"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.chat import jsontext
from proxy.portable.check import Fields, fields_in, list_in, text_in, time_in
from proxy.portable.programs.content import bracketed
from proxy.portable.programs.tree import Branches, Node, Spoken, in_a_ring, parents_first
from proxy.portable.source import Conversation, Warnings

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
    return bracketed(*details)


ALL = ("", "all", "assistant")
"""To whom a message is addressed that calls no tool."""


def conversation_of(fields: Fields, warnings: Warnings, number: int) -> Conversation | None:
    """None if nothing is said in it."""
    mapping = fields_in(fields, "mapping")
    tree = _Tree(mapping)
    if tree.seen < len(mapping):
        warnings.add(in_a_ring(len(mapping) - tree.seen, number))
    if not len(tree.branches):
        return None
    return Conversation(
        said=tree.branches.said(text_in(fields, "current_node")),
        system=tuple(jsontext.encode(message) for message in tree.system),
        id=text_in(fields, "conversation_id") or text_in(fields, "id") or None,
        title=text_in(fields, "title"),
        created_at=time_in(fields, "create_time"),
    )


class _Tree:
    """``seen`` is how many nodes there were, rings left aside."""

    def __init__(self, mapping: Fields) -> None:
        self._mapping = mapping
        self.branches = Branches()
        self.system: list[Fields] = []
        self.seen = 0
        parents = {id: text_in(fields_in(mapping, id), "parent") for id in mapping}
        for id, parent in parents_first(parents, self._children):
            message = fields_in(fields_in(mapping, id), "message")
            self.branches.add(id, parent, self._said(id, parent, message))
            self.seen += 1

    def _children(self, id: str) -> list[object]:
        return list_in(fields_in(self._mapping, id), "children")

    def _said(self, id: str, parent: str, message: Fields) -> Iterator[Spoken]:
        role = text_in(fields_in(message, "author"), "role")
        text = text_of(message)
        kind = text_in(fields_in(message, "content"), "content_type")
        if text and (kind == INSTRUCTIONS or role == "system"):
            if not len(self.branches):
                self.system.append({"role": "system", "content": text})
            return
        if role not in ("user", "assistant", "tool") or _is_hidden(message):
            return
        called, at = text_in(message, "recipient"), time_in(message, "create_time")
        if role == "assistant" and called not in ALL:
            yield Spoken(_calling(f"call_{id}", called, text), at)
        elif role == "tool":
            call = _answered(self.branches.end(parent)) or id
            yield Spoken({"role": role, "tool_call_id": call, "content": text}, at)
        elif text:
            yield Spoken({"role": role, "content": text}, at)


def _is_hidden(message: Fields) -> bool:
    return fields_in(message, "metadata").get("is_visually_hidden_from_conversation") is True


def _calling(call: str, tool: str, text: str) -> Fields:
    function = {"name": tool, "arguments": jsontext.encode({"input": text}).decode()}
    calls = [{"id": call, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _answered(before: Node | None) -> str:
    """The call that a result which follows this node answers; "" if it has an answer already.

    A result without a call stays in history and is never sent.
    """
    calls = list_in(before.said.message, "tool_calls") if before else []
    return text_in(calls[0], "id") if calls and isinstance(calls[0], dict) else ""
