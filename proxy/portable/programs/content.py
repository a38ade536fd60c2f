"""Converts the content of other programs' messages to that of OpenAI's chat.  Pure."""

from __future__ import annotations

from proxy.portable.check import Fields, fields_in, text_in


def in_brackets(*details: str) -> str:
    """A line of text in place of a file: "[image, 640x480, dog.png]"."""
    return f"[{', '.join(filter(None, details))}]"


def file_line(fields: Fields, *, kind: str, name: str = "name", size: str = "size") -> str:
    """The line of a file; ``name`` and ``size`` (bytes) are the fields that have them."""
    count = fields.get(size)
    known = isinstance(count, int) and not isinstance(count, bool)
    bytes = f"{count} bytes" if known else ""
    return in_brackets(kind, bytes, text_in(fields, name))


SKIPPED_TYPES = frozenset({"tool_use", "tool_call", "thinking", "reasoning", "redacted_thinking"})
"""Calls stand elsewhere, and thoughts do not belong into a chat's messages."""


def content_of(content: object) -> object:
    """As OpenAI's chat has it: text, or a list of parts; one part of text is text."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def _part(block: object) -> Fields | None:
    if isinstance(block, str):
        return _text(block)
    if not isinstance(block, dict):
        return None
    kind = text_in(block, "type")
    if kind in SKIPPED_TYPES:
        return None
    if kind == "text":
        return _text(text_in(block, "text"))
    if kind == "image_url":
        image = block.get("image_url")
        return _image(image if isinstance(image, str) else text_in(fields_in(block, kind), "url"))
    if kind == "image":
        return _image(_address(block))
    if kind in ("input_audio", "file") and fields_in(block, kind):
        return {"type": kind, kind: block[kind]}
    return _text(in_brackets(kind or "unknown content", text_in(block, "title")))


def _text(text: str) -> Fields:
    return {"type": "text", "text": text}


def _image(url: str) -> Fields:
    return {"type": "image_url", "image_url": {"url": url}} if url else _text("[image]")


def _address(block: Fields) -> str:
    """Of an image: its link, or its data as a link; in LangChain's own shape or Anthropic's."""
    source = fields_in(block, "source") or block
    data = text_in(source, "data") or text_in(source, "base64")
    kind = text_in(source, "mime_type") or text_in(source, "media_type") or "image/png"
    return text_in(source, "url") or (f"data:{kind};base64,{data}" if data else "")
