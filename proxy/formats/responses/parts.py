"""Converts message content between this API and chat completions.  Pure.

Parts without an equivalent become a line of text that names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proxy.chat.jsontext import objects_in

Part = dict[str, object]

_TEXTS = ("input_text", "output_text", "text")


def chat_content(content: object) -> object:
    """Convert the content of a user's or system message, or of an output, to chat content.

    A single text becomes a string.
    """
    if not isinstance(content, list):
        return content
    parts = [_chat_part(part) for part in content]
    if len(parts) == 1 and parts[0].keys() == {"type", "text"} and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def item_content(content: object) -> object:
    if not isinstance(content, list):
        return "" if content is None else content
    return [_item_part(part) for part in content]


def texts_of(content: object) -> Iterable[str]:
    """The texts in a model's message, without refusals."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else []:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


def refusals_of(content: object) -> Iterable[str]:
    for part in objects_in(content):
        refusal = part.get("refusal")
        if isinstance(refusal, str):
            yield refusal


def is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS


def _chat_part(part: object) -> Part:
    if not isinstance(part, dict):
        return _text(part if isinstance(part, str) else "")
    kind = part.get("type")
    if is_text(part):
        return _text(part.get("text"))
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return {"type": "image_url", "image_url": _image(part)}
    if kind == "input_file" and not part.get("file_url"):
        file = {key: part[key] for key in ("file_id", "filename", "file_data") if part.get(key)}
        return {"type": "file", "file": file}
    if kind in ("input_image", "input_file"):
        reference = part.get("file_url") or part.get("file_id") or ""
        return _text(f"[{kind.removeprefix('input_')} {reference}]")
    if (
        isinstance(kind, str) and kind in part
    ):  # a chat content part, which some servers accept as well
        return part
    return _text(f"[{kind}]")


def _image(part: Mapping[str, object]) -> Part:
    image: Part = {"url": part["image_url"]}
    if part.get("detail") not in (None, "auto"):
        image["detail"] = part["detail"]
    return image


def _item_part(part: object) -> object:
    if not isinstance(part, dict):
        return {"type": "input_text", "text": part if isinstance(part, str) else ""}
    kind = part.get("type")
    inner = part.get(kind) if isinstance(kind, str) else None
    if kind == "text":
        return {"type": "input_text", "text": part.get("text") or ""}
    if kind == "image_url":
        image = inner if isinstance(inner, dict) else {"url": inner}
        image_part: Part = {"type": "input_image", "image_url": image.get("url")}
        return {**image_part, "detail": image.get("detail") or "auto"}
    if kind == "file" and isinstance(inner, dict):
        return {"type": "input_file", **inner}
    return part


def _text(text: object) -> Part:
    return {"type": "text", "text": text if isinstance(text, str) else ""}
