"""Converts content blocks of the Messages API to chat content parts and back.  Pure.

    text                       text
    image (base64, URL)        image_url
    document (base64)          file
    document (text, content)   text
    search_result              text
    anything else              a line of text that describes it

A chat part without an equivalent block also becomes a line of text.  If a conversion loses
something, the block itself is kept with the stored message: see ``proxy.formats.native``.

https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.chat.jsontext import objects_in
from proxy.chat.media.parts import InlineMedia, describe_json, describe_part

Json = dict[str, object]

THINKING = ("thinking", "redacted_thinking")

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Media types that the API accepts for images."""

_PDF = "application/pdf"
_BASE64 = ";base64,"


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def is_blank(block: Mapping[str, object]) -> bool:
    """Whether it is a text block without text, which the API refuses."""
    text = block.get("text")
    return block.get("type") == "text" and isinstance(text, str) and not text.strip()


def part_from_block(block: Json) -> Json:
    """The content part for a block, as far as chat completions can express it."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return text_block(str(block["text"]))
    source = block.get("source")
    if isinstance(source, dict) and kind == "image":
        url = _image_url(source)
        if url is not None:
            return {"type": "image_url", "image_url": {"url": url}}
    if isinstance(source, dict) and kind == "document":
        part = _document(block, source)
        if part is not None:
            return part
    if kind == "search_result" and isinstance(block.get("content"), list):
        return text_block("\n".join(_search_result_texts(block)))
    return text_block(describe_json(kind, block))


def text_from_block(block: Json) -> Json:
    """The text part for a block, for messages that may only have text."""
    part = part_from_block(block)
    return part if part["type"] == "text" else text_block(describe_json(block.get("type"), block))


def block_from_part(part: object) -> Json:
    """The block for a content part, as far as the Messages API can express it."""
    if isinstance(part, str):
        return text_block(part)
    if not isinstance(part, dict):
        return text_block(describe_part(part))
    kind = part.get("type")
    text = part.get("refusal" if kind == "refusal" else "text")
    if isinstance(text, str):
        return text_block(text)
    if kind == "image_url":
        image = part.get("image_url")
        source = _image_source(image.get("url") if isinstance(image, dict) else image)
        if source is not None:
            return {"type": "image", "source": source}
    if kind == "file" and isinstance(part.get("file"), dict):
        document = _read_file(part["file"])
        if document is not None:
            return document
    return text_block(describe_part(part))


def with_small_media(value: object, limit: int) -> object:
    """The block with base64 data over ``limit`` characters replaced by a line of text."""
    if isinstance(value, list):
        return [with_small_media(item, limit) for item in value]
    if not isinstance(value, dict):
        return value
    line = _media_placeholder(value, limit)
    if line is not None:
        return text_block(line)
    inner = {key: value[key] for key in ("source", "content") if key in value}
    return {**value, **{key: _inner_with_small_media(each, limit) for key, each in inner.items()}}


def _inner_with_small_media(inner: object, limit: int) -> object:
    """``with_small_media`` for a block's content.  A single inner block keeps its type, since a
    fetched page, for example, must be a document."""
    line = _media_placeholder(inner, limit) if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or line is None:
        return with_small_media(inner, limit)
    return {**inner, "source": {"type": "text", "media_type": "text/plain", "data": line}}


def _media_placeholder(block: Json, limit: int) -> str | None:
    """The line of text for a block with base64 data over ``limit`` characters; None for others."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") == "text":
        return None
    data, name = source.get("data"), source.get("media_type")
    if not isinstance(data, str) or len(data) <= limit:
        return None
    return InlineMedia(name if isinstance(name, str) else "media", data).placeholder()


def _search_result_texts(result: Json) -> Iterator[str]:
    """The title and the texts of a search result."""
    title, content = result.get("title"), result["content"]
    if isinstance(title, str):
        yield title
    yield from _texts(content)


def _texts(parts: object) -> Iterator[str]:
    for part in objects_in(parts):
        text = part.get("text")
        if isinstance(text, str):
            yield text


def _image_url(source: Json) -> str | None:
    """The URL, or data URL, of an image's source; None for a file's id."""
    url, data, media = source.get("url"), source.get("data"), source.get("media_type")
    if source.get("type") == "url" and isinstance(url, str):
        return url
    if source.get("type") == "base64" and isinstance(data, str) and isinstance(media, str):
        return f"data:{media}{_BASE64}{data}"
    return None


def _image_source(url: object) -> Json | None:
    """The source for an image's URL or data URL; None if the API does not accept it."""
    if not isinstance(url, str):
        return None
    if url[:5].lower() != "data:":
        return {"type": "url", "url": url} if url.lower().startswith(("http:", "https:")) else None
    media, marker, data = url[5:].partition(_BASE64)
    if not marker or media not in IMAGES:
        return None
    return {"type": "base64", "media_type": media, "data": data}


def _document(block: Json, source: Json) -> Json | None:
    text, title = _document_text(source), block.get("title")
    if text is not None:
        return text_block(text)
    url = _image_url(source) if source.get("type") == "base64" else None
    if url is None:
        return None
    name = {"filename": title} if isinstance(title, str) else {}
    return {"type": "file", "file": {**name, "file_data": url}}


def _document_text(source: Json) -> str | None:
    """The text of a document's source, whole or in chunks; None if it is not only text."""
    content = source.get({"text": "data", "content": "content"}.get(str(source.get("type")), ""))
    if isinstance(content, str):
        return content
    chunks = content if isinstance(content, list) else []
    texts = [*_texts(chunks)]
    return "\n".join(texts) if texts and len(texts) == len(chunks) else None


def _read_file(file: Json) -> Json | None:
    """The document block for a file part; None for an id, or a file that is not a PDF."""
    url, name = file.get("file_data"), file.get("filename")
    if not isinstance(url, str):
        return None
    media, marker, data = url.removeprefix("data:").partition(_BASE64)
    if not marker or media != _PDF:
        return None
    source = {"type": "base64", "media_type": _PDF, "data": data}
    title = {"title": name} if isinstance(name, str) and name else {}
    return {"type": "document", "source": source, **title}
