"""Items that applications store, as in LangGraph's stores: put, get, search, delete.

What the proxy itself has learned is in reserved namespaces, which are read-only here.
"""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from proxy.learning.collection import ATTEMPTS, delete_change
from proxy.memory import items
from proxy.memory.items import Change, ItemOwner, Place, item_owner_of
from proxy.memory_api.api import Api
from proxy.memory_api.body import read
from proxy.memory_api.call import Call, FromRequest, RawRequest, RequestConditions, Tenant
from proxy.memory_api.conditions import Conditions
from proxy.memory_api.endpoint import stop_on_disconnect
from proxy.memory_api.errors import (
    invalid_user_id,
    item_not_found,
    request_timeout,
    request_too_large,
    reserved_namespace,
    version_conflict,
)
from proxy.memory_api.items.params import MAX_LABELS, filter_of, place_in_query, place_of, prefix_of
from proxy.memory_api.items.search import ItemQuery, ItemSearch, NamespaceQuery, find_namespaces
from proxy.memory_api.objects import raw_value
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import KEY, NAMESPACE
from proxy.memory_api.shapes import items as shapes
from proxy.memory_api.shapes.items import (
    Item,
    ItemDeleted,
    ItemList,
    ItemPlace,
    NamespaceList,
    NamespaceSearch,
    NewItem,
)

DEFAULT_FOUND = 10
DEFAULT_NAMESPACES = 100

TAG = "Store"
ITEMS = "/memory/v1/store/items"
NAMESPACES = "/memory/v1/store/namespaces"
PUT = {"namespace": "$response.body#/namespace", "key": "$response.body#/key"}
RECIPES = {"namespace_prefix": ["recipes"], "query": "gazpacho"}
INSTEAD = (
    "take another one for items of your own. What the proxy has learned is changed at"
    " /memory/v1/users/{id}/memories, /memory/v1/users/{id}/profile and"
    " /memory/v1/instructions/{application}."
)
"""The end of the error for a reserved namespace."""

SOUP = {"namespace": ["recipes", "soups"], "key": "gazpacho", "value": {"serves": 4}}


async def _place(call: Call) -> Place:
    """The place in the body, or if that is empty in the query, as with GET."""
    body = await call.body()
    if not body:
        return place_in_query(call.request)
    body_place = await read(ItemPlace, body)
    return place_of(body_place.namespace, body_place.key)


Queried = Annotated[Place, FromRequest(lambda call: place_in_query(call.request))]
QueriedOrInBody = Annotated[Place, FromRequest(_place)]


@operation(
    "PUT",
    ITEMS,
    TAG,
    examples={"soup": SOUP},
    errors=(invalid_user_id, item_not_found, version_conflict, reserved_namespace),
    links=(Link("getItem", PUT), Link("deleteItem", PUT)),
    creates_tenant=True,
)
async def put_item(api: Api, tenant: Tenant, new: NewItem, conditions: RequestConditions) -> Item:
    """Put an item.

    New, or in place of what is there; `if_version` and `If-Match` bind it to what was read.
    """
    place = _check_writable(api, place_of(new.namespace, new.key))
    change = Change(
        namespace=place.namespace,
        key=place.key,
        value=bytes(new.value),
        after=new.if_version,
        expires_at=time.time() + new.ttl if new.ttl else None,
    )
    await _change_item(api, tenant, change, conditions)
    return item_object(await _item(api, tenant, place))


@operation("GET", ITEMS, TAG, parameters=(NAMESPACE, KEY), errors=(invalid_user_id, item_not_found))
async def get_item(api: Api, tenant: Tenant, place: Queried) -> Item:
    """Get an item."""
    return item_object(await _item(api, tenant, place))


@operation(
    "DELETE",
    ITEMS,
    TAG,
    parameters=(NAMESPACE, KEY),
    errors=(
        invalid_user_id,
        item_not_found,
        version_conflict,
        reserved_namespace,
        request_timeout,
        request_too_large,
    ),
)
async def delete_item(
    api: Api, tenant: Tenant, place: QueriedOrInBody, conditions: RequestConditions
) -> ItemDeleted:
    """Delete an item.

    Its place may come as a JSON body as well, for names that are too long for a URL.
    """
    await _item(api, tenant, _check_writable(api, place))
    await _change_item(api, tenant, delete_change(place), conditions)
    return ItemDeleted(namespace=list(place.namespace), key=place.key, deleted=True)


@operation("POST", f"{ITEMS}/search", TAG, examples={"recipes": RECIPES}, errors=(invalid_user_id,))
async def search_items(
    api: Api, tenant: Tenant, search: shapes.ItemSearch, request: RawRequest
) -> ItemList:
    """Search items.

    Below a prefix: by place, or for a query the best first. What is kept of requests with an
    Idempotency-Key is found only below the prefix `requests`.
    """
    prefix = prefix_of(search.namespace_prefix, "namespace_prefix")
    query = ItemQuery(
        owner=item_owner_of(tenant, prefix),
        prefix=prefix,
        filter=filter_of(search.filter),
        query=search.query or "",
        offset=search.offset or 0,
        limit=search.limit or DEFAULT_FOUND,
    )
    with stop_on_disconnect(request):
        async with _turn(api, tenant, query):
            scored_items = await ItemSearch(api.store, api.searching).find(query)
    objects = [item_object(item, score) for item, score in scored_items]
    return ItemList.of(objects, query.offset, query.limit)


@operation(
    "POST",
    NAMESPACES,
    TAG,
    examples={"recipes": {"prefix": ["recipes"]}},
    errors=(invalid_user_id,),
)
async def list_namespaces(
    api: Api, tenant: Tenant, search: NamespaceSearch, request: RawRequest
) -> NamespaceList:
    """List namespaces.

    Those that have items; `requests` only below that prefix.
    """
    prefix = prefix_of(search.prefix, "prefix")
    query = NamespaceQuery(
        owner=item_owner_of(tenant, prefix),
        prefix=prefix,
        suffix=tuple(search.suffix or ()),
        depth=search.max_depth or MAX_LABELS,
        offset=search.offset or 0,
        limit=search.limit or DEFAULT_NAMESPACES,
    )
    with stop_on_disconnect(request):
        namespaces = await find_namespaces(api.store, query)
    return NamespaceList.of([list(each) for each in namespaces], query.offset, query.limit)


def _turn(api: Api, tenant: str, query: ItemQuery) -> AbstractAsyncContextManager[None]:
    """A tenant's searches that read values run one at a time: all tenants share the threads."""
    if not (query.query or query.filter):
        return nullcontext()
    return api.searching.turn(tenant)


async def _change_item(api: Api, tenant: str, change: Change, conditions: Conditions) -> None:
    """Change an item if the conditions hold.  Raises ProxyError 409 and 412."""
    owner = item_owner_of(tenant, change.namespace)
    for _ in range(ATTEMPTS):
        bound_change = await _bind_change(api, owner, change, conditions)
        if await api.store.change_items(owner, [bound_change]):
            return
        if change.after is not None:
            break
    raise version_conflict()


async def _bind_change(
    api: Api, owner: ItemOwner, change: Change, conditions: Conditions
) -> Change:
    """The change, limited to the version that the conditions were compared with."""
    if not conditions.has_any:
        return change
    place = Place(change.namespace, change.key)
    stored = (await api.store.items_at(owner, [place])).get(place)
    conditions.check(item_object(stored) if stored else None)
    version = stored.version if stored else 0
    return replace(change, after=version if change.after is None else change.after)


async def _item(api: Api, tenant: str, place: Place) -> items.Item:
    items_by_place = await api.store.items_at(item_owner_of(tenant, place.namespace), [place])
    if place not in items_by_place:
        raise item_not_found()
    return items_by_place[place]


def item_object(item: items.Item, score: float | None | UnsetType = UNSET) -> Item:
    return Item(
        namespace=list(item.namespace),
        key=item.key,
        value=raw_value(item.value),
        version=item.version,
        created_at=item.created_at,
        updated_at=item.updated_at,
        expires_at=item.expires_at,
        score=score,
    )


def _check_writable(api: Api, place: Place) -> Place:
    label = api.learned.kinds.reserved_label(place.namespace)
    if label is not None:
        raise reserved_namespace(f'The label "{label}" is reserved here: {INSTEAD}')
    return place
