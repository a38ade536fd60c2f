"""What every store does alike with items: places as sortable bytes, and pages.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.memory.archive import Page
from proxy.memory.items import Item, Namespace, Place

_LABEL_END = "\x02"
_KEY = "\x01"
"""Control characters, which no label and no key holds.  That of the key sorts first, so that a
namespace comes before those below it."""


def within(namespace: Namespace, prefix: Namespace) -> bool:
    return namespace[: len(prefix)] == prefix


def begins(prefix: Namespace) -> bytes:
    """How the packed places below a prefix begin, and no others."""
    return "".join(label + _LABEL_END for label in prefix).encode()


def ends(beginning: bytes) -> bytes:
    """What lies behind everything that begins so: UTF-8 has no byte 0xFF."""
    return beginning + b"\xff"


def pack(place: Place) -> bytes:
    """A place as bytes that sort as places do."""
    return begins(place.namespace) + (_KEY + place.key).encode()


def unpack(packed: bytes) -> Place:
    path, _, key = packed.decode().partition(_KEY)
    return Place(tuple(path.split(_LABEL_END)[:-1]), key)


def behind(namespace: Namespace) -> bytes:
    """What lies behind all keys of a namespace, and before those below it."""
    return begins(namespace) + _LABEL_END.encode()


def page_of(items: Sequence[Item], limit: int) -> Page[Item]:
    """The first ``limit`` (at least 1) of items, of which one more was looked for."""
    page = tuple(items[:limit])
    return Page(page, page[-1].key if len(items) > limit else None)
