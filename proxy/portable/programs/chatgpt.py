"""``conversations.json`` of a ChatGPT data export: a list of conversations, read one by one.  Pure.

A conversation is a tree of messages, of which one branch was the last.  Nodes that say nothing (the
root, what is hidden) are left out, and what follows them follows the node before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from proxy.chat import jsontext
from proxy.portable.check import Fields, fields_in, list_in, text_in, time_in
from proxy.portable.programs.blocks import ToolCall, ToolResult, answer
from proxy.portable.programs.content import in_brackets
from proxy.portable.programs.tree import Branches, TimedMessage, cycle_warning, parents_first
from proxy.portable.source import Conversation, Warnings

SKIPPED_TYPES = frozenset({"thoughts", "reasoning_recap", "model_editable_context"})
"""Content types of the model's reasoning, and of context for the model only."""

INSTRUCTIONS = "user_editable_context"
"""The content type of the user's custom instructions."""


def text_of(message: Fields) -> str:
    """All that a message says; a line in brackets for each image, recording and file."""
    content = fields_in(message, "content")
    text = "\n".join(filter(None, _texts(content)))
    return "\n".join([text, *_attached(message, text)]).strip("\n")


def _texts(content: Fields) -> Iterator[str]:
    kind = text_in(content, "content_type")
    if kind in SKIPPED_TYPES:
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
    return in_brackets(*details)


NOT_TOOLS = ("", "all", "assistant")
"""Recipients of messages that are not tool calls."""


def conversation_of(fields: Fields, warnings: Warnings, number: int) -> Conversation | None:
    """None if nothing is said in it."""
    mapping = fields_in(fields, "mapping")
    tree = _Tree(mapping, warnings)
    if tree.reached < len(mapping):
        warnings.add(cycle_warning(len(mapping) - tree.reached, number))
    if not len(tree.branches):
        return None
    return Conversation(
        messages=tree.branches.messages(text_in(fields, "current_node")),
        system=tuple(jsontext.encode(message) for message in tree.system),
        id=text_in(fields, "conversation_id") or text_in(fields, "id") or None,
        title=text_in(fields, "title"),
        created_at=time_in(fields, "create_time"),
    )


class _Entry(msgspec.Struct, frozen=True):
    """The message of a node.  ``role`` is "" for an empty one; ``tool`` is the tool that the text
    is sent to."""

    role: str = ""
    text: str = ""
    tool: str = ""
    at: float | None = None


def _entry(message: Fields) -> _Entry:
    role, text = text_in(fields_in(message, "author"), "role"), text_of(message)
    kind = text_in(fields_in(message, "content"), "content_type")
    if text and (kind == INSTRUCTIONS or role == "system"):
        return _Entry("system", text)
    if role not in ("user", "assistant", "tool") or _is_hidden(message):
        return _Entry()
    to = text_in(message, "recipient")
    tool = to if role == "assistant" and to not in NOT_TOOLS else ""
    if not text and not tool and role != "tool":
        return _Entry()
    return _Entry(role, text, tool, time_in(message, "create_time"))


def _is_hidden(message: Fields) -> bool:
    return fields_in(message, "metadata").get("is_visually_hidden_from_conversation") is True


class _Tree:
    """The nodes of a conversation as branches; ``reached`` counts those that are in no cycle."""

    def __init__(self, mapping: Fields, warnings: Warnings) -> None:
        self._warnings = warnings
        self.branches = Branches()
        self.system: list[Fields] = []
        parents = {id: text_in(fields_in(mapping, id), "parent") for id in mapping}
        order = list(parents_first(parents, lambda id: list_in(fields_in(mapping, id), "children")))
        self.reached = len(order)
        messages = {id: fields_in(fields_in(mapping, id), "message") for id, _ in order}
        self._entries = {id: _entry(message) for id, message in messages.items()}
        self._results = _results(order, self._entries)
        for id, parent in order:
            self.branches.add(id, parent, self._messages_of(id, self._entries[id]))

    def _messages_of(self, id: str, entry: _Entry) -> Iterator[TimedMessage]:
        """A result stands with its call, as one: a tool may tell it in several messages."""
        if entry.role == "system":
            if not len(self.branches):
                self.system.append({"role": "system", "content": entry.text})
        elif entry.tool:
            arguments = jsontext.encode({"input": entry.text}).decode()
            call = ToolCall(entry.tool, arguments, f"call_{id}", entry.at)
            yield from answer([call, *self._result(id)], id, self._warnings)
        elif entry.role == "tool":
            yield from answer(self._result(id), id, self._warnings)
        elif entry.role:
            yield TimedMessage({"role": entry.role, "content": entry.text}, entry.at)

    def _result(self, id: str) -> list[ToolResult]:
        entries = self._results.get(id, [])
        text = "\n".join(entry.text for entry in entries)
        return [ToolResult(text, at=entries[0].at)] if entries else []


def _results(
    order: Iterable[tuple[str, str]], entries: Mapping[str, _Entry]
) -> dict[str, list[_Entry]]:
    """The results of tools by the node of their call, or by their own node without a call.

    Empty nodes may be between call and result.
    """
    results: dict[str, list[_Entry]] = {}
    calls: dict[str, str] = {}
    for id, parent in order:
        entry, call_id = entries[id], calls.get(parent, "")
        if entry.role == "tool":
            results.setdefault(call_id or id, []).append(entry)
        calls[id] = id if entry.tool else call_id if entry.role in ("", "tool") else ""
    return results
