"""Parses parameters of requests for items: places, prefixes and filters.

Raises ProxyError 400 with ``param`` naming what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec
from starlette.requests import Request

from proxy.chat.jsontext import decode_shallow
from proxy.errors import invalid_user_id
from proxy.memory.ids import is_id
from proxy.memory.items import PEOPLE, Namespace, Place, check_filter
from proxy.memory_api.fields import REFUSAL, error_text, invalid

MAX_LABELS = 10
MAX_NAME = 256
"""Characters of a label or a key."""

MAX_VALUE_BYTES = 256 * 1024
"""Bytes of a value's JSON."""

MAX_TTL_SECONDS = 10**9
"""Seconds, about thirty years."""

ANY_LABEL = "*"

NAMES = f"of 1 to {MAX_NAME} characters, none a control one"
LABELS = error_text(f"must be a list of at most {MAX_LABELS} labels {NAMES}.")
NAMESPACE = error_text(f"must be a list of 1 to {MAX_LABELS} labels {NAMES}.")
KEY = error_text(f"must be a text {NAMES}.")


def place_of(namespace: Sequence[str], key: str) -> Place:
    """The place of an item, from a body that was validated."""
    labels = tuple(namespace)
    _check_person(labels, "namespace")
    return Place(labels, key)


def place_in_query(request: Request) -> Place:
    """The place in a query: ``?namespace=`` for each label, and ``?key=``."""
    query = request.query_params
    labels, key = query.getlist("namespace"), query.get("key", "")
    if not 1 <= len(labels) <= MAX_LABELS or not all(map(_is_name, labels)):
        raise NAMESPACE[REFUSAL]("namespace")
    if not _is_name(key):
        raise KEY[REFUSAL]("key")
    return place_of(labels, key)


def prefix_of(labels: Sequence[str] | None, name: str) -> Namespace:
    """The prefix of a search; without labels, all items that belong to no person."""
    prefix = tuple(labels or ())
    if prefix[:2] == (PEOPLE, ANY_LABEL):
        prefix = prefix[:1]
    _check_person(prefix, name)
    return prefix


def literal(prefix: Namespace) -> Namespace:
    """The labels before the first ``*``."""
    return prefix[: prefix.index(ANY_LABEL)] if ANY_LABEL in prefix else prefix


def matches(namespace: Namespace, prefix: Namespace, suffix: Namespace) -> bool:
    """Whether a namespace has this prefix and suffix, in which ``*`` matches any label."""
    return _begins(namespace, prefix) and _begins(namespace[::-1], suffix[::-1])


def _begins(labels: Namespace, pattern: Namespace) -> bool:
    pairs = zip(labels, pattern, strict=False)
    return len(labels) >= len(pattern) and all(each in (ANY_LABEL, label) for label, each in pairs)


def _check_person(namespace: Namespace, name: str) -> None:
    """Raise ProxyError 400 for a namespace of people without a valid user id."""
    if namespace == (PEOPLE,):
        raise invalid(f'{name} must say whose: after "{PEOPLE}" comes the id of a user.', name)
    if namespace[:1] == (PEOPLE,) and not is_id(namespace[1]):
        raise invalid_user_id(f"{name}[1]")


def filter_of(raw: msgspec.Raw | None) -> dict[str, object]:
    """A filter, empty where there is none."""
    fields = cast(dict[str, object], decode_shallow(bytes(raw))) if raw is not None else {}
    try:
        check_filter(list(fields.values()))
    except ValueError as error:
        raise invalid(f"filter has an unknown operator: {error}.", "filter") from None
    if any(name.startswith("$") for name in fields):
        raise invalid("filter must name fields; operators come below them.", "filter")
    return fields


def _is_name(text: str) -> bool:
    return 1 <= len(text) <= MAX_NAME and not any(map(_is_control, text))


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"
