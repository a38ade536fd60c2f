"""Content blocks of the Messages API, and the chat parts that say the same.  Pure.

    text                       text
    image (base64, URL)        image_url
    document (base64)          file
    document (text, content)   text
    search_result              text
    anything else              a line of text that says what it was

A chat part that has no block is a line of text as well.  Where a block says more than its part
does, the block itself is kept with the stored message: see ``proxy.formats.native``.

https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.chat.media.parts import Inline, line_for, named

Json = dict[str, object]

THINKING = ("thinking", "redacted_thinking")

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""What the API takes as an image."""

_PDF = "application/pdf"
_BASE64 = ";base64,"


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def is_blank(block: Mapping[str, object]) -> bool:
    """Is it a text without any?  The API refuses those."""
    text = block.get("text")
    return block.get("type") == "text" and isinstance(text, str) and not text.strip()


def part_of(block: Json) -> Json:
    """The content part that says of a block what chat completions can say."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return text_block(str(block["text"]))
    source = block.get("source")
    if isinstance(source, dict) and kind == "image":
        url = _url(source)
        if url is not None:
            return {"type": "image_url", "image_url": {"url": url}}
    if isinstance(source, dict) and kind == "document":
        said = _document(block, source)
        if said is not None:
            return said
    if kind == "search_result" and isinstance(block.get("content"), list):
        return text_block("\n".join(_said(block)))
    return text_block(named(kind, block))


def line_of(block: Json) -> Json:
    """The same for a message that may hold nothing but text."""
    part = part_of(block)
    return part if part["type"] == "text" else text_block(named(block.get("type"), block))


def block_of(part: object) -> Json:
    """The block that says of a content part what the Messages API can say."""
    if isinstance(part, str):
        return text_block(part)
    if not isinstance(part, dict):
        return text_block(line_for(part))
    kind = part.get("type")
    text = part.get("refusal" if kind == "refusal" else "text")
    if isinstance(text, str):
        return text_block(text)
    if kind == "image_url":
        image = part.get("image_url")
        source = _source(image.get("url") if isinstance(image, dict) else image)
        if source is not None:
            return {"type": "image", "source": source}
    if kind == "file" and isinstance(part.get("file"), dict):
        document = _read_file(part["file"])
        if document is not None:
            return document
    return text_block(line_for(part))


def lightened(value: object, limit: int) -> object:
    """A block in which base64 over ``limit`` characters is a line of text."""
    if isinstance(value, list):
        return [lightened(item, limit) for item in value]
    if not isinstance(value, dict):
        return value
    line = _line_for(value, limit)
    if line is not None:
        return text_block(line)
    inner = {key: value[key] for key in ("source", "content") if key in value}
    return {**value, **{key: _lightened_in(each, limit) for key, each in inner.items()}}


def _lightened_in(inner: object, limit: int) -> object:
    """The same of what a block holds.  What stands there alone has to stay of its kind, as a page
    that was fetched is a document."""
    line = _line_for(inner, limit) if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or line is None:
        return lightened(inner, limit)
    return {**inner, "source": {"type": "text", "media_type": "text/plain", "data": line}}


def _line_for(block: Json, limit: int) -> str | None:
    """What stands for the base64 that a block is, if that is too much."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") == "text":
        return None
    data, name = source.get("data"), source.get("media_type")
    if not isinstance(data, str) or len(data) <= limit:
        return None
    return Inline(name if isinstance(name, str) else "media", data).placeholder()


def _said(result: Json) -> Iterator[str]:
    """The title and the texts of a search result."""
    title, content = result.get("title"), result["content"]
    if isinstance(title, str):
        yield title
    yield from _texts(content if isinstance(content, list) else [])


def _texts(parts: list[object]) -> Iterator[str]:
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            yield text


def _url(source: Json) -> str | None:
    """The URL, or data URL, of an image's source; a file's id is none."""
    url, data, media = source.get("url"), source.get("data"), source.get("media_type")
    if source.get("type") == "url" and isinstance(url, str):
        return url
    if source.get("type") == "base64" and isinstance(data, str) and isinstance(media, str):
        return f"data:{media}{_BASE64}{data}"
    return None


def _source(url: object) -> Json | None:
    """The source of an image at a URL, or in a data URL, as far as the API takes it."""
    if not isinstance(url, str):
        return None
    if url[:5].lower() != "data:":
        return {"type": "url", "url": url} if url.lower().startswith(("http:", "https:")) else None
    media, sign, data = url[5:].partition(_BASE64)
    if not sign or media not in IMAGES:
        return None
    return {"type": "base64", "media_type": media, "data": data}


def _document(block: Json, source: Json) -> Json | None:
    words, title = _words(source), block.get("title")
    if words is not None:
        return text_block(words)
    url = _url(source) if source.get("type") == "base64" else None
    if url is None:
        return None
    name = {"filename": title} if isinstance(title, str) else {}
    return {"type": "file", "file": {**name, "file_data": url}}


def _words(source: Json) -> str | None:
    """What a document of text says, whole or in chunks that can be cited; None if it is more."""
    said = source.get({"text": "data", "content": "content"}.get(str(source.get("type")), ""))
    if isinstance(said, str):
        return said
    chunks = said if isinstance(said, list) else []
    texts = [*_texts(chunks)]
    return "\n".join(texts) if texts and len(texts) == len(chunks) else None


def _read_file(file: Json) -> Json | None:
    """The document that a file is; None for an id, or where it is no PDF."""
    url, name = file.get("file_data"), file.get("filename")
    if not isinstance(url, str):
        return None
    media, sign, data = url.removeprefix("data:").partition(_BASE64)
    if not sign or media != _PDF:
        return None
    source = {"type": "base64", "media_type": _PDF, "data": data}
    title = {"title": name} if isinstance(name, str) and name else {}
    return {"type": "document", "source": source, **title}
