"""Files of other programs, as they really write them; and reading them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proxy.memory.archive import SessionArchive
from proxy.portable.detection import Limits, open_source
from proxy.portable.names import Format
from proxy.portable.session_conversion import ImportOptions, to_session
from proxy.portable.source import Conversation, ImportedPart, Warnings

LIMITS = Limits(max_line_bytes=10_000, max_bytes=100_000)
NOW = 1_750_000_000.0
Json = dict[str, Any]


def read(
    content: bytes, wanted: Format | None = None, piece: int = 7, line: int = LIMITS.max_line_bytes
) -> list[Conversation]:
    """The conversations in a file that comes in small pieces."""
    return read_all(content, wanted, piece, line)[1]


def read_all(
    content: bytes, wanted: Format | None = None, piece: int = 7, line: int = LIMITS.max_line_bytes
) -> tuple[Format, list[Conversation], list[str]]:
    """The format, the conversations and the warnings."""
    warnings = Warnings()
    format, source = open_source(content, wanted, Limits(line, LIMITS.max_bytes), warnings)
    found: list[ImportedPart] = []
    for at in range(0, len(content), piece):
        found += source.feed(content[at : at + piece])
    found += source.finish()
    conversations = [each for each in found if isinstance(each, Conversation)]
    assert len(conversations) == len(found)
    return format, conversations, warnings.all


def archived(conversation: Conversation, **more: Any) -> SessionArchive:
    """The session that a conversation becomes; every message weighs as many tokens as bytes."""
    return to_session(
        conversation, ImportOptions(count=len, now=NOW, media=65_536, **more)
    ).archived


def said(conversation: Conversation) -> list[Json]:
    """Its messages, in order."""
    return [json.loads(each.message) for each in conversation.messages]


def node(
    id: str, parent: str | None, role: str = "", *parts: object, children: Any = (), **more: Any
) -> Json:
    """A node of a ChatGPT export's ``mapping``; fields of the message by their names."""
    if not role:
        return {"id": id, "message": None, "parent": parent, "children": list(children)}
    name = more.pop("name", None)
    content = more.pop("content", {"content_type": "text", "parts": list(parts)})
    message = {
        "id": id,
        "author": {"role": role, "name": name, "metadata": {}},
        "create_time": more.pop("at", None),
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("to", "all"),
        "channel": None,
    }
    assert not more
    return {"id": id, "message": message, "parent": parent, "children": list(children)}


def conversation(*nodes: Json, current: str | None = None, id: str = "c-1", **more: Any) -> Json:
    """A conversation of a ChatGPT export."""
    return {
        "title": more.pop("title", "Dogs"),
        "create_time": more.pop("at", 1_700_000_000.25),
        "update_time": 1_700_000_900.5,
        "mapping": {each["id"]: each for each in nodes},
        "moderation_results": [],
        "current_node": current or nodes[-1]["id"],
        "plugin_ids": None,
        "conversation_id": id,
        "conversation_template_id": None,
        "gizmo_id": None,
        "is_archived": False,
        "safe_urls": [],
        "default_model_slug": "gpt-4o",
        "id": id,
        **more,
    }


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


SAMPLES = Path(__file__).parent / "programs"


def sample(name: str) -> bytes:
    """A small file as a program writes it."""
    return (SAMPLES / name).read_bytes()
