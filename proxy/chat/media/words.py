"""A stored message told in words alone, for an upstream that refuses what else is in it.  Pure.

Links expire and files are deleted, recordings are kept for an hour; a model may see no pictures,
and a part of one upstream's is unknown to another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxy.chat import jsontext
from proxy.chat.media.parts import line_for
from proxy.chat.native import FIELD, beside, words_of

_REFUSING = (400, 404, 415, 422)
_FAILING = (500, 501)
_UNSUPPORTED = re.compile(
    rb"not support|unsupported|(image|audio|video|file) input|multimodal", re.IGNORECASE
)
"""How servers say it that take it for a failure of theirs, as llama.cpp and Ollama do."""

_TEXTS = ("text", "refusal")


def may_refuse_media(status: int) -> bool:
    return status in _REFUSING or status in _FAILING


def refuses_media(status: int, error: bytes) -> bool:
    """May an error be for something that is no text?  Upstreams say it in all ways."""
    if status in _FAILING:
        return _UNSUPPORTED.search(error) is not None
    return status in _REFUSING


def in_words(message: bytes) -> bytes:
    """A stored message (JSON) with a line of text for each part that is none; itself where it has
    none of these."""
    try:
        said = jsontext.value(message)
    except jsontext.UNREADABLE:  # it goes as it came
        return message
    told = _told(said) if isinstance(said, dict) else said
    return message if told == said else jsontext.encode(told)


def _told(said: Mapping[str, object]) -> Mapping[str, object]:
    kept = {key: each for key, each in said.items() if key != FIELD or not beside(said)}
    content, audio = kept.get("content"), kept.pop("audio", None)
    if isinstance(content, list):
        kept["content"] = [part if _is_text(part) else _line(part) for part in content]
    elif audio is not None and not content:
        kept["content"] = words_of(said) or line_for({"type": "audio", "audio": audio})
    return kept


def _is_text(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") in _TEXTS)


def _line(part: object) -> Mapping[str, object]:
    return {"type": "text", "text": line_for(part)}
