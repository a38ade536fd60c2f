"""Stored messages with text alone, for an upstream that refuses their other content parts.  Pure.

A link may have expired, a file or a recording may have been deleted; a model may accept no images;
a part that one upstream has made may be unknown to another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxy.chat import jsontext
from proxy.chat.media.parts import describe_part
from proxy.chat.native import FIELD, parts_beyond_chat, transcript_of

_REQUEST_ERRORS = (400, 404, 415, 422)
_SERVER_ERRORS = (500, 501)
_UNSUPPORTED = re.compile(
    rb"not support|unsupported|(image|audio|video|file) input|multimodal", re.IGNORECASE
)
"""Wordings of servers that report unsupported input as an internal error: llama.cpp, Ollama."""

_ABOUT_MEDIA = re.compile(
    rb"image|picture|audio|video|voice|file|document|media|vision|modal|attachment"
    rb"|content|item|block|container|part\b|url\b|download|text[ -]only|only (\w{1,20} )?text",
    re.IGNORECASE,
)
"""An error with none of these words is not about content parts."""

_TEXTS = ("text", "refusal")


def may_refuse_media(status: int) -> bool:
    """Whether the body of an error with this status is worth reading for ``refuses_media``."""
    return status in _REQUEST_ERRORS or status in _SERVER_ERRORS


def refuses_media(status: int, error: bytes) -> bool:
    """Whether an error may be about a content part that is not text.

    There is no common wording: any request error may be, an internal error only if it says so.
    What is not found (404) is named: a file or an item, or else the model or the path.
    """
    if status in _SERVER_ERRORS:
        return _UNSUPPORTED.search(error) is not None
    return status in _REQUEST_ERRORS and (status != 404 or names_media(error))


def names_media(error: bytes) -> bool:
    return _ABOUT_MEDIA.search(error) is not None


def with_text_only(message: bytes) -> bytes:
    """A stored message (JSON) with each part that is not text replaced by a line of text; the same
    object if it has text alone."""
    try:
        decoded = jsontext.value(message)
    except jsontext.UNREADABLE:  # sent unchanged
        return message
    text_only = _text_only_fields(decoded) if isinstance(decoded, dict) else decoded
    return message if text_only == decoded else jsontext.encode(text_only)


def _text_only_fields(message: Mapping[str, object]) -> Mapping[str, object]:
    fields = {
        key: each for key, each in message.items() if key != FIELD or not parts_beyond_chat(message)
    }
    content, audio = fields.get("content"), fields.pop("audio", None)
    if isinstance(content, list):
        fields["content"] = [part if _is_text(part) else _description(part) for part in content]
    elif audio is not None and not content:
        described = {"type": "audio", "audio": audio}
        fields["content"] = transcript_of(message) or describe_part(described)
    return fields


def _is_text(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") in _TEXTS)


def _description(part: object) -> Mapping[str, object]:
    return {"type": "text", "text": describe_part(part)}
