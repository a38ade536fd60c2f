"""Items of one's own: put, looked at, searched, deleted, the way LangGraph's store has them.

What the proxy itself has learned lies in reserved namespaces, which can only be read here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.conditions import is_conditional, must_match
from proxy.admin.imports import fields_of
from proxy.admin.item_asking import (
    Fields,
    depth_in,
    filter_in,
    limit_in,
    literal,
    matches,
    offset_in,
    place_in,
    place_in_query,
    prefix_in,
    suffix_in,
    ttl_in,
    value_in,
    version_in,
)
from proxy.admin.item_search import ItemSearch, Wanted, is_shown
from proxy.admin.objects import Object, reply
from proxy.admin.parts import AdminParts
from proxy.errors import ProxyError
from proxy.learning.forgetting import ATTEMPTS
from proxy.memory.items import Change, Item, Place, Shelf, is_reserved, shelf_of

DEFAULT_FOUND = 10
DEFAULT_NAMESPACES = 100


class StoredItems:
    """``/store/items``, ``/store/items/search`` and ``/store/namespaces``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.shelves, access
        self._search = ItemSearch(parts.shelves, parts.decode)

    async def put(self, request: Request) -> Response:
        """Put an item, new or in place of what is there; ``ttl`` in seconds.

        ``if_version``: only where the item has this version, 0 where there is none; else 409
        ``version_conflict``.
        """
        tenant, fields = await self._asked(request)
        place, ttl = _writable(place_in(fields)), ttl_in(fields)
        change = Change(
            namespace=place.namespace,
            key=place.key,
            value=value_in(fields, self._parts.decode),
            after=version_in(fields),
            expires_at=time.time() + ttl if ttl else None,
        )
        await self._make(request, tenant, change)
        return reply(item_object(await self._item(tenant, place)))

    async def get(self, request: Request) -> Response:
        tenant = self._access.tenant(request)
        return reply(item_object(await self._item(tenant, place_in_query(request))))

    async def delete(self, request: Request) -> Response:
        """The place comes in the body, or where that is empty in the query, as with GET."""
        tenant = self._access.tenant(request)
        body = await asking.body_of(request, self._parts.settings.server)
        fields = fields_of(self._parts.fields, body) if body else None
        place = _writable(place_in_query(request) if fields is None else place_in(fields))
        await self._item(tenant, place)
        gone = Change(namespace=place.namespace, key=place.key, value=None)
        await self._make(request, tenant, gone)
        return reply({"object": "item.deleted", **place._asdict(), "deleted": True})

    async def search(self, request: Request) -> Response:
        """Items below a prefix that a filter lets through: by place, or for a query the best first.

        The words of a query are looked for in all texts of the values.
        """
        tenant, fields = await self._asked(request)
        prefix = prefix_in(fields, "namespace_prefix")
        wanted = Wanted(
            shelf=shelf_of(tenant, prefix),
            prefix=prefix,
            filter=filter_in(fields, self._parts.decode),
            query=asking.text_field(fields, "query") or "",
            offset=offset_in(fields),
            limit=limit_in(fields, DEFAULT_FOUND),
        )
        found = await self._search.find(wanted)
        objects = [{**item_object(item), "score": score} for item, score in found]
        return reply(part_of(objects, wanted.offset, wanted.limit))

    async def namespaces(self, request: Request) -> Response:
        """The namespaces that have items; ``*`` in a prefix or suffix stands for any label."""
        tenant, fields = await self._asked(request)
        prefix, suffix = prefix_in(fields, "prefix"), suffix_in(fields)
        depth = depth_in(fields)
        offset, limit = offset_in(fields), limit_in(fields, DEFAULT_NAMESPACES)
        listed = await self._store.namespaces(shelf_of(tenant, prefix), literal(prefix))
        shown = (space for space in listed if is_shown(space, prefix))
        found = {space[:depth] for space in shown if matches(space, prefix, suffix)}
        return reply(part_of(sorted(found)[offset : offset + limit + 1], offset, limit))

    async def _make(self, request: Request, tenant: str, change: Change) -> None:
        """Change an item, if it is as the request says.  Raises ProxyError 409 and 412."""
        shelf = shelf_of(tenant, change.namespace)
        for _ in range(ATTEMPTS):
            fitting = await self._fitting(request, shelf, change)
            if await self._store.change_items(shelf, [fitting]):
                return
            if change.after is not None:
                break
        raise version_conflict()

    async def _fitting(self, request: Request, shelf: Shelf, change: Change) -> Change:
        """The change, to be made only to what the request's conditions were compared with."""
        if not is_conditional(request):
            return change
        place = Place(change.namespace, change.key)
        there = (await self._store.items_at(shelf, [place])).get(place)
        must_match(request, item_object(there) if there else None)
        version = there.version if there else 0
        return replace(change, after=version if change.after is None else change.after)

    async def _asked(self, request: Request) -> tuple[str, Fields]:
        """The tenant, and the fields of the body."""
        tenant = self._access.tenant(request)
        body = await asking.body_of(request, self._parts.settings.server)
        return tenant, fields_of(self._parts.fields, body)

    async def _item(self, tenant: str, place: Place) -> Item:
        found = await self._store.items_at(shelf_of(tenant, place.namespace), [place])
        if place not in found:
            raise item_not_found()
        return found[place]


def item_object(item: Item) -> Object:
    return {
        "object": "item",
        "namespace": item.namespace,
        "key": item.key,
        "value": msgspec.Raw(item.value),
        "version": item.version,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "expires_at": item.expires_at,
    }


def part_of(found: Sequence[object], offset: int, limit: int) -> Object:
    """A part of a list from its items and one more, if there is; ``next`` is the next offset."""
    more = len(found) > limit
    return {
        "object": "list",
        "data": found[:limit],
        "has_more": more,
        "next": offset + limit if more else None,
    }


def _writable(place: Place) -> Place:
    if is_reserved(place.namespace):
        raise reserved_namespace()
    return place


def item_not_found() -> ProxyError:
    return ProxyError(404, "item_not_found", "There is no such item.")


def version_conflict() -> ProxyError:
    return ProxyError(
        409,
        "version_conflict",
        "The item has another version by now. Read it, and put it again.",
        param="if_version",
    )


def reserved_namespace() -> ProxyError:
    return ProxyError(
        409,
        "reserved_namespace",
        "What the proxy has learned is changed at /memory/v1/users/{id}/memories, not here.",
        param="namespace",
    )
