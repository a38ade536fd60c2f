"""The content of messages in a data export of ChatGPT, as text."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.reading import Fields, fields_in, list_in, text_in

PASSED_OVER = frozenset({"thoughts", "reasoning_recap", "model_editable_context"})
"""What the model thought, and what was shown to it alone."""

INSTRUCTIONS = "user_editable_context"
"""What a person has told the model about themselves and how to answer."""


def text_of(message: Fields) -> str:
    """All that a message says; a line in brackets for each image, recording and file."""
    content = fields_in(message, "content")
    text = "\n".join(filter(None, _said(content)))
    return "\n".join([text, *_attached(message, text)]).strip("\n")


def _said(content: Fields) -> Iterator[str]:
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
