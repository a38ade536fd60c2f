"""Token usage as upstreams report it, in any API: reads and adds usage objects.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeGuard

from proxy.chat.jsontext import UNREADABLE, decode, encode

_MAX_NUMBER = 2**53
"""Larger numbers are no plausible counts of one request."""

_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITTEN = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")

_EXCLUSIVE_CACHE_FIELDS = ("cache_read_input_tokens", "cache_creation_input_tokens")
_INCLUSIVE_FIELDS = ("prompt_tokens", *_DETAILS)
"""In a usage object with the former and none of the latter (Anthropic's), ``input_tokens`` excludes
cached tokens; in all others the prompt's tokens include them."""


class TokenUsage(NamedTuple):
    """Tokens as an upstream reports them, 0 for what it does not report.

    Of the prompt's tokens, ``cached`` were read from its cache and ``written`` to it.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    written: int = 0


def read_usage(usage: bytes | None) -> TokenUsage:
    """Read a usage object (JSON) of OpenAI's chat or responses API, Anthropic's or DeepSeek's.

    Anything else counts as 0.
    """
    fields = _decoded(usage)
    nested = (each for name in _DETAILS if isinstance(each := fields.get(name), Mapping))
    details: Mapping[str, object] = {**fields, **next(nested, {})}
    cached, written = _first_count(details, _CACHED), _first_count(details, _WRITTEN)
    prompt = _first_count(fields, _PROMPT)
    has_exclusive = any(name in fields for name in _EXCLUSIVE_CACHE_FIELDS)
    if has_exclusive and not any(name in fields for name in _INCLUSIVE_FIELDS):
        prompt += cached + written
    return TokenUsage(prompt, _first_count(fields, _COMPLETION), cached, written)


def _decoded(usage: bytes | None) -> Mapping[str, object]:
    try:
        decoded = decode(usage or b"null")
    except UNREADABLE:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _first_count(fields: Mapping[str, object], names: Iterable[str]) -> int:
    """The first of these fields that is a valid count, else 0."""
    for name in names:
        value = fields.get(name)
        if _is_number(value) and 0 <= value < _MAX_NUMBER:
            return int(value)
    return 0


def add_usages(first: bytes | None, second: bytes | None) -> bytes | None:
    """Two usage objects (JSON) added field by field, nested ones too; None counts as empty.

    Values that are not numbers are taken from the second.
    """
    if first is None or second is None:
        return second if first is None else first
    return encode(_sum(decode(first), decode(second)))


def _sum(first: object, second: object) -> object:
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys((*first, *second))
        return {key: _sum(first.get(key), second.get(key)) for key in keys}
    if _is_number(first) and _is_number(second):
        return first + second
    return first if second is None else second


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
