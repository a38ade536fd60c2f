"""Pages of item lists: reads a page's parameters, and no more items than the page needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from urllib.parse import parse_qs

import msgspec

from proxy.chat import jsontext
from proxy.errors import invalid_value
from proxy.formats.responses.stored_objects import StoredItem, items_in, list_object
from proxy.gateway.exchange import Services
from proxy.memory.history.reading import WHOLE_LOG
from proxy.memory.model import SessionKey
from proxy.memory.naming import reference_of

MAX_LIMIT = 100
"""The largest ``limit`` of a page."""

BATCH = 50
"""Messages read from the store at a time."""

SYSTEM_PREFIX = "system_"
"""Begins the ids of a session's system messages, which have none in the store."""


class PageRequest(msgspec.Struct, frozen=True):
    """A page's parameters; ``after`` is the id of the item before it."""

    limit: int = 20
    descending: bool = True
    after: str | None = None

    @classmethod
    def read(cls, query: bytes) -> PageRequest:
        """Parse a query string.  Raises ProxyError 400."""
        fields = query_fields(query)
        limit, order = fields.get("limit", ["20"])[-1], fields.get("order", ["desc"])[-1]
        if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= MAX_LIMIT):
            raise invalid_value(f"limit must be a number from 1 to {MAX_LIMIT}.", "limit")
        if order not in ("asc", "desc"):
            raise invalid_value("order must be asc or desc.", "order")
        return cls(int(limit), order == "desc", fields.get("after", [None])[-1])


def query_fields(query: bytes) -> Mapping[str, Sequence[str]]:
    """The fields of a query string.  Raises ProxyError 400."""
    try:
        return parse_qs(query.decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise invalid_value("The query has too many fields.", "query") from None


async def render_page(items: AsyncIterator[StoredItem], page: PageRequest) -> bytes:
    """The list object of a page.  Raises ProxyError 400 if there is no item with the id ``after``,
    StoreError."""
    page_items: list[StoredItem] = []
    started = page.after is None
    async for item in items:
        if started:
            page_items.append(item)
        if len(page_items) > page.limit:
            break
        started = started or item.id == page.after
    if not started:
        raise invalid_value("after is the id of no item in this list.", "after")
    return list_object(page_items[: page.limit], more=len(page_items) > page.limit)


async def items_of(
    services: Services, key: SessionKey, messages: Sequence[str], *, descending: bool
) -> AsyncIterator[StoredItem]:
    """The items of stored messages, given by id.  Raises StoreError."""
    order = messages[::-1] if descending else messages
    for start in range(0, len(order), BATCH):
        ids = order[start : start + BATCH]
        bodies = await services.state.store.bodies(key, ids)
        size = sum(map(len, bodies.values()))
        in_order = partial(_in_order, ids, bodies, descending)
        for item in await services.threads.run(key.tenant, size, in_order):
            yield item


def _in_order(
    ids: Sequence[str], bodies: Mapping[str, bytes], descending: bool
) -> Sequence[StoredItem]:
    by_message = (list(items_in(id, bodies[id])) for id in ids if id in bodies)
    return [item for items in by_message for item in (items[::-1] if descending else items)]


async def all_items(
    services: Services, key: SessionKey, *, descending: bool = False
) -> AsyncIterator[StoredItem]:
    """The items of a conversation: its system messages, then the log.  Raises StoreError."""
    snapshot = await services.state.store.load(key, WHOLE_LOG)
    first = list(system_items(key, snapshot.system))
    if not descending:
        for item in first:
            yield item
    log = [entry.card.id for entry in snapshot.log]
    async for item in items_of(services, key, log, descending=descending):
        yield item
    if descending:
        for item in reversed(first):
            yield item


def system_items(key: SessionKey, system: bytes | None) -> list[StoredItem]:
    """The items of a session's system messages (a JSON list)."""
    messages = jsontext.items(system) if system else []
    named = ((system_message(key, n), raw) for n, raw in enumerate(messages))
    return [item for name, raw in named for item in items_in(name, raw)]


def system_message(key: SessionKey, number: int) -> str:
    """The id of a system message."""
    return f"{SYSTEM_PREFIX}{reference_of(key.session)}.{number}"
