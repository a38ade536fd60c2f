"""Reading what a request about items asks: where they are, what is put, what is looked for.

Raises ProxyError 400 with ``param`` naming what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from starlette.requests import Request

from proxy.admin.asking import MAX_LIMIT, invalid, is_id, whole
from proxy.admin.imports import UNREADABLE
from proxy.errors import invalid_user_id
from proxy.memory import item_filter
from proxy.memory.items import PEOPLE, Namespace, Place

MOST_LABELS = 10
LONGEST_NAME = 256
"""Characters of a label or a key."""

LARGEST_VALUE = 256 * 1024
"""Bytes of a value's JSON."""

LONGEST_TTL = 10**9
"""Seconds, about thirty years."""

ANY_LABEL = "*"

_LABELS = "a list of labels"
_TEXT = "a text"

Fields = dict[str, bytes]


def place_in(fields: Fields) -> Place:
    """The place in a body."""
    return _place(_read(fields, "namespace", list[str], _LABELS), _read(fields, "key", str, _TEXT))


def place_in_query(request: Request) -> Place:
    """The place in a query: ``?namespace=`` for each label, and ``?key=``."""
    query = request.query_params
    return _place(query.getlist("namespace"), query.get("key"))


def _place(labels: Sequence[str] | None, key: str | None) -> Place:
    namespace = _namespace(labels, "namespace")
    if not namespace:
        raise invalid("namespace must have a label at least.", "namespace")
    _check_person(namespace, "namespace")
    if key is None or not _is_name(key):
        sentence = f"key must have 1 to {LONGEST_NAME} characters, none a control one."
        raise invalid(sentence, "key")
    return Place(namespace, key)


def prefix_in(fields: Fields, name: str) -> Namespace:
    """Where to look; no labels is all that is nobody's in particular."""
    prefix = _namespace(_read(fields, name, list[str], _LABELS), name)
    if prefix[:2] == (PEOPLE, ANY_LABEL):
        prefix = prefix[:1]
    _check_person(prefix, name)
    return prefix


def suffix_in(fields: Fields) -> Namespace:
    return _namespace(_read(fields, "suffix", list[str], _LABELS), "suffix")


def literal(prefix: Namespace) -> Namespace:
    """The labels before the first that is any."""
    return prefix[: prefix.index(ANY_LABEL)] if ANY_LABEL in prefix else prefix


def matches(namespace: Namespace, prefix: Namespace, suffix: Namespace) -> bool:
    """Whether a namespace begins and ends so."""
    return _begins(namespace, prefix) and _begins(namespace[::-1], suffix[::-1])


def _begins(labels: Namespace, pattern: Namespace) -> bool:
    pairs = zip(labels, pattern, strict=False)
    return len(labels) >= len(pattern) and all(each in (ANY_LABEL, label) for label, each in pairs)


def _namespace(labels: Sequence[str] | None, name: str) -> Namespace:
    if len(labels or ()) > MOST_LABELS:
        raise invalid(f"{name} must have {MOST_LABELS} labels at most.", name)
    if not all(map(_is_name, labels or ())):
        sentence = f"{name} must have labels of 1 to {LONGEST_NAME} characters, none a control one."
        raise invalid(sentence, name)
    return tuple(labels or ())


def _check_person(namespace: Namespace, name: str) -> None:
    """What belongs to people is kept person by person."""
    if namespace == (PEOPLE,):
        raise invalid(f'{name} must say whose: after "{PEOPLE}" comes the id of a user.', name)
    if namespace[:1] == (PEOPLE,) and not is_id(namespace[1].encode("utf-8", "replace")):
        raise invalid_user_id(f"{name}[1]")


def value_in(fields: Fields, decode: Callable[[bytes], object]) -> bytes:
    """A JSON object, as it came."""
    raw = fields.get("value", b"null")
    if len(raw) > LARGEST_VALUE:
        raise invalid(f"value must not be larger than {LARGEST_VALUE} bytes.", "value")
    _object(raw, "value", decode)
    return raw


def filter_in(fields: Fields, decode: Callable[[bytes], object]) -> dict[str, object]:
    """A filter, empty where there is none."""
    raw = fields.get("filter", b"null")
    wanted = {} if raw.strip() == b"null" else _object(raw, "filter", decode)
    try:
        item_filter.check(list(wanted.values()))
    except ValueError as error:
        raise invalid(f"filter has an unknown operator: {error}.", "filter") from None
    if any(name.startswith("$") for name in wanted):
        raise invalid("filter must name fields; operators come below them.", "filter")
    return wanted


def _object(raw: bytes, name: str, decode: Callable[[bytes], object]) -> dict[str, object]:
    try:
        value = decode(raw)
    except UNREADABLE:
        value = None
    if not isinstance(value, dict):
        raise invalid(f"{name} must be a JSON object that is not nested too deeply.", name)
    return value


def ttl_in(fields: Fields) -> int:
    """Seconds; 0 is for ever."""
    return _number(fields, "ttl", 0, 0, LONGEST_TTL)


def version_in(fields: Fields) -> int | None:
    if fields.get("if_version", b"null").strip() == b"null":
        return None
    return _number(fields, "if_version", 0, 0, 2**53)


def limit_in(fields: Fields, default: int) -> int:
    return _number(fields, "limit", default, 1, MAX_LIMIT)


def offset_in(fields: Fields) -> int:
    return _number(fields, "offset", 0, 0, 2**53)


def depth_in(fields: Fields) -> int:
    """How many labels of a namespace count."""
    return _number(fields, "max_depth", MOST_LABELS, 1, MOST_LABELS)


def _number(fields: Fields, name: str, default: int, least: int, most: int) -> int:
    raw = fields.get(name, b"null")
    if raw.strip() == b"null":
        return default
    try:
        found = whole(raw)
    except UNREADABLE:
        raise invalid(f"{name} must be a whole number.", name) from None
    if not least <= found <= most:
        raise invalid(f"{name} must be a whole number from {least} to {most}.", name)
    return found


def _read(fields: Fields, name: str, kind: Any, what: str) -> Any:
    """A field of a kind, None where it is absent or null."""
    try:
        return msgspec.json.decode(fields.get(name, b"null"), type=kind | None)
    except UNREADABLE:
        raise invalid(f"{name} must be {what}.", name) from None


def _is_name(text: str) -> bool:
    return 1 <= len(text) <= LONGEST_NAME and not any(map(_is_control, text))


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"
