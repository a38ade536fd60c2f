"""Recognises errors about a client's own parameters, which less of memory would not mend.  Pure.

OpenAI and vLLM name the parameter in ``param``, FastAPI and Mistral in ``loc``, Anthropic and
Bedrock begin the message with it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from proxy.chat import jsontext

_CONVERSATION = ("messages", "input", "system", "instructions")
"""Fields, by whatever API, into which memory writes."""

_MAX_ERROR = 64 * 1024
_MAX_DETAILS = 16

_NAME = re.compile(r"\W?(?:body\.)?(\w{1,64})")
_BEGINNING = re.compile(r"\W?(\w{1,64})\W?[.:\[]")


def is_about_parameters(error: bytes, fields: Container[str]) -> bool:
    """Whether an error names parameters that are among the client's ``fields``, and no message."""
    names = set(_names(error[:_MAX_ERROR]))
    return bool(names) and all(name in fields and name not in _CONVERSATION for name in names)


def _names(error: bytes) -> Iterator[str]:
    """The fields of the request that an error names."""
    try:
        decoded = jsontext.decode_shallow(error)
    except jsontext.UNREADABLE:  # plain text, or an HTML page
        return
    holder = decoded.get("error", decoded) if isinstance(decoded, dict) else None
    if not isinstance(holder, dict):
        return
    message = holder.get("message")
    yield from _names_in_details(holder.get("detail"))
    yield from _names_in_details(message.get("detail") if isinstance(message, dict) else None)
    name = _first_group(_NAME, holder.get("param")) or _first_group(_BEGINNING, message)
    if name:
        yield name


def _names_in_details(details: object) -> Iterator[str]:
    for detail in details[:_MAX_DETAILS] if isinstance(details, list) else ():
        match detail:
            case {"loc": ["body", str(name), *_]}:
                yield name


def _first_group(pattern: re.Pattern[str], text: object) -> str:
    found = pattern.match(text) if isinstance(text, str) else None
    return found[1] if found else ""
