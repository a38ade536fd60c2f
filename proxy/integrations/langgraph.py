"""LangGraph's store, kept by the proxy.  Needs ``memory-proxy[langgraph]``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from math import ceil
from typing import Any

import httpx
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from proxy.integrations.api import MemoryApi, encoded
from proxy.integrations.terms import DEFAULT_URL, NO_TENANT, MemoryProxyError

__all__ = ["MemoryProxyError", "MemoryProxyStore"]

ITEMS = "/store/items"
SEARCH = "/store/items/search"
NAMESPACES = "/store/namespaces"

PAGE = 1000
"""Items or namespaces that one request may list."""

NOTHING_YET = ("item_not_found", NO_TENANT)

ANY = "*"


class MemoryProxyStore(BaseStore):
    """Items of LangGraph's in the memory of a proxy.  All methods raise MemoryProxyError.

    ``api_key`` is the one that the application chats with, ``tenant`` is for the administrator's
    key; ``client`` replaces the HTTP client, and stays open.  Items of ("users", ID) belong to that
    person, and are found only where the namespace says so.

    ``default_ttl`` and every ``ttl`` are minutes, as LangGraph has them.  They run from the put: a
    read does not renew them.
    """

    supports_ttl = True

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        api_key: str | None = None,
        tenant: str | None = None,
        client: httpx.Client | None = None,
        *,
        default_ttl: float | None = None,
    ) -> None:
        self._api = MemoryApi(base_url, api_key, tenant, client)
        self.ttl_config = TTLConfig(
            refresh_on_read=False, omit_expired=True, default_ttl=default_ttl
        )

    def close(self) -> None:
        """Close the connections, unless the client was given."""
        self._api.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results in the order of ``ops``, None for a put.

        Reads see what was there before the puts, and of several puts to one place the last counts.
        Each is a request of its own: where one fails, those before it stand.
        """
        ops = list(ops)
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        writes = [(op, _written(op)) for op in puts.values()]
        results = [self._read(op) for op in ops]
        for op, body in writes:
            self._write(op, body)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As ``batch``, on a thread: so one store serves several event loops."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise ValueError(f"{type(op).__name__} is no operation of a store.")

    def _get(self, op: GetOp) -> Item | None:
        place = [*(("namespace", label) for label in op.namespace), ("key", op.key)]
        try:
            return Item(**_fields(self._api.ask("GET", ITEMS, place)))
        except MemoryProxyError as error:
            if error.code in NOTHING_YET:
                return None
            raise

    def _search(self, op: SearchOp) -> list[SearchItem]:
        asked = {"namespace_prefix": op.namespace_prefix, "filter": op.filter, "query": op.query}
        found = self._listed(SEARCH, asked, op.offset, op.limit)
        return [SearchItem(**_fields(item), score=item["score"]) for item in found]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        asked = _matching(op.match_conditions or ())
        if asked is None:
            return []
        found = self._listed(NAMESPACES, {**asked, "max_depth": op.max_depth}, op.offset, op.limit)
        return [tuple(namespace) for namespace in found]

    def _listed(self, path: str, asked: Mapping[str, object], offset: int, limit: int) -> list[Any]:
        """What a list has from ``offset`` on, part by part."""
        found: list[Any] = []
        while len(found) < limit:
            part = {"offset": offset + len(found), "limit": min(limit - len(found), PAGE)}
            answer = self._part(path, {**asked, **part})
            found += answer["data"]
            if not answer["has_more"]:
                break
        return found

    def _part(self, path: str, asked: Mapping[str, object]) -> dict[str, Any]:
        try:
            return self._api.ask("POST", path, body=encoded(asked))
        except MemoryProxyError as error:
            if error.code == NO_TENANT:
                return {"data": [], "has_more": False}
            raise

    def _write(self, op: PutOp, body: bytes) -> None:
        if op.value is not None:
            self._api.ask("PUT", ITEMS, body=body)
            return
        try:
            self._api.ask("DELETE", ITEMS, body=body)
        except MemoryProxyError as error:
            if error.code not in NOTHING_YET:
                raise


def _written(op: PutOp) -> bytes:
    """The body of a put or a delete.  A part of a second of ``ttl`` is a whole one."""
    body: dict[str, object] = {"namespace": op.namespace, "key": op.key}
    if op.value is not None:
        body["value"] = dict(op.value)
        if op.ttl is not None:
            body["ttl"] = max(1, ceil(op.ttl * 60))
    return encoded(body)


def _fields(item: Mapping[str, Any]) -> dict[str, Any]:
    """What LangGraph's items have, of one of the proxy's."""
    return {
        "namespace": tuple(item["namespace"]),
        "key": item["key"],
        "value": item["value"],
        "created_at": datetime.fromtimestamp(item["created_at"], UTC),
        "updated_at": datetime.fromtimestamp(item["updated_at"], UTC),
    }


def _matching(conditions: Iterable[MatchCondition]) -> dict[str, Sequence[str]] | None:
    """A prefix and a suffix that say the same as all conditions; None where nothing can match."""
    paths: dict[str, list[Sequence[str]]] = {"prefix": [], "suffix": []}
    for kind, path in conditions:
        if kind not in paths:
            raise ValueError(f"{kind} is no way to match a namespace.")
        paths[kind].append(path)
    prefix = _all_of(paths["prefix"])
    backwards = _all_of([path[::-1] for path in paths["suffix"]])
    if prefix is None or backwards is None:
        return None
    return {"prefix": prefix, "suffix": backwards[::-1]}


def _all_of(paths: Sequence[Sequence[str]]) -> list[str] | None:
    """The path that begins all namespaces that each path begins; None where two contradict."""
    merged: list[str] = []
    for labels in zip_longest(*paths, fillvalue=ANY):
        named = set(labels) - {ANY}
        if len(named) > 1:
            return None
        merged.append(named.pop() if named else ANY)
    return merged
