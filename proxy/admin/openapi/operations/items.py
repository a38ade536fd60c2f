"""Operations on items of one's own."""

from __future__ import annotations

from proxy.admin.openapi.operation import Link, Operation, json_body
from proxy.admin.openapi.parameters import KEY, NAMESPACE
from proxy.admin.openapi.shapes.items import (
    Item,
    ItemDeleted,
    ItemList,
    ItemSearch,
    NamespaceList,
    NamespaceSearch,
    NewItem,
)

TAG = "Store"
ITEMS = "/memory/v1/store/items"

PUT = {"namespace": "$response.body#/namespace", "key": "$response.body#/key"}

OPERATIONS = (
    Operation(
        "PUT",
        ITEMS,
        "putItem",
        TAG,
        "Put an item",
        Item,
        "New, or in place of what is there; `if_version` and `If-Match` bind it to what was read.",
        body=json_body(
            NewItem,
            soup={"namespace": ["recipes", "soups"], "key": "gazpacho", "value": {"serves": 4}},
        ),
        errors=("invalid_user_id", "item_not_found", "version_conflict", "reserved_namespace"),
        conditional=True,
        links=(Link("getItem", PUT), Link("deleteItem", PUT)),
        founds=True,
    ),
    Operation(
        "GET",
        ITEMS,
        "getItem",
        TAG,
        "Get an item",
        Item,
        parameters=(NAMESPACE, KEY),
        errors=("invalid_user_id", "item_not_found"),
    ),
    Operation(
        "DELETE",
        ITEMS,
        "deleteItem",
        TAG,
        "Delete an item",
        ItemDeleted,
        "Its place may come as a JSON body as well, for names that are too long for a URL.",
        (NAMESPACE, KEY),
        errors=(
            "invalid_user_id",
            "item_not_found",
            "version_conflict",
            "reserved_namespace",
            "request_timeout",
            "request_too_large",
        ),
        conditional=True,
    ),
    Operation(
        "POST",
        f"{ITEMS}/search",
        "searchItems",
        TAG,
        "Search items",
        ItemList,
        "Below a prefix: by place, or for a query the best first. What is kept of requests with an "
        "Idempotency-Key is found only below the prefix `requests`.",
        body=json_body(ItemSearch, recipes={"namespace_prefix": ["recipes"], "query": "gazpacho"}),
        errors=("invalid_user_id",),
    ),
    Operation(
        "POST",
        "/memory/v1/store/namespaces",
        "listNamespaces",
        TAG,
        "List namespaces",
        NamespaceList,
        "Those that have items; `requests` only below that prefix.",
        body=json_body(NamespaceSearch, recipes={"prefix": ["recipes"]}),
        errors=("invalid_user_id",),
    ),
)
