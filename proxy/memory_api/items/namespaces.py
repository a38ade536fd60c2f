"""Lists namespaces with a prefix and suffix, cut to a depth, in order.

There may be many, so they are read page by page from the prefix on, only as far as needed.
"""

from __future__ import annotations

import msgspec

from proxy.memory.items import ItemOwner, Items, Namespace, namespace_pages
from proxy.memory_api.items.params import MAX_LABELS, literal, matches
from proxy.memory_api.items.search import is_shown

MAX_SCANNED = 100_000
"""Namespaces that one request reads: the first ones of the prefix."""


class NamespaceQuery(msgspec.Struct, frozen=True):
    """A request for namespaces."""

    owner: ItemOwner
    prefix: Namespace = ()
    suffix: Namespace = ()
    depth: int = MAX_LABELS
    offset: int = 0
    limit: int = 100


async def find_namespaces(items: Items, query: NamespaceQuery) -> list[Namespace]:
    """The namespaces from ``offset`` on: ``limit``, and one more if there are more.

    Raises StoreError.
    """
    namespaces: list[Namespace] = []
    end, scanned = query.offset + query.limit + 1, 0
    async for page in namespace_pages(items, query.owner, literal(query.prefix)):
        matching = (each[: query.depth] for each in page if _fits(each, query))
        namespaces += dict.fromkeys(each for each in matching if each not in namespaces[-1:])
        scanned += len(page)
        if len(namespaces) >= end or scanned >= MAX_SCANNED:
            break
    return namespaces[query.offset : end]


def _fits(namespace: Namespace, query: NamespaceQuery) -> bool:
    shown = is_shown(namespace, query.prefix)
    return shown and matches(namespace, query.prefix, query.suffix)
