"""Lists of items: which part of one is wanted, and that part, read no further than it goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from urllib.parse import parse_qs

import msgspec

from proxy.chat import jsontext
from proxy.errors import invalid_value
from proxy.formats.responses.kept import KeptItem, items_in, list_object
from proxy.gateway.exchange import Services
from proxy.memory.history.reading import WHOLE_LOG
from proxy.memory.model import SessionKey
from proxy.memory.naming import reference_of

MOST = 100
"""Items of a page at most."""

AT_ONCE = 50
"""Messages that are read together."""

SYSTEM = "system_"
"""What stands for an id of the messages that a session begins with."""


class PageOf(msgspec.Struct, frozen=True):
    """Which part: behind the item of this id, in this order."""

    limit: int = 20
    descends: bool = True
    after: str | None = None

    @classmethod
    def read(cls, query: bytes) -> PageOf:
        """From a query string.  Raises ProxyError 400."""
        said = fields_of(query)
        limit, order = said.get("limit", ["20"])[-1], said.get("order", ["desc"])[-1]
        if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= MOST):
            raise invalid_value(f"limit must be a number from 1 to {MOST}.", "limit")
        if order not in ("asc", "desc"):
            raise invalid_value("order must be asc or desc.", "order")
        return cls(int(limit), order == "desc", said.get("after", [None])[-1])


def fields_of(query: bytes) -> Mapping[str, Sequence[str]]:
    """What a query string says.  Raises ProxyError 400."""
    try:
        return parse_qs(query.decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise invalid_value("The query has too many fields.", "query") from None


async def page_of(items: AsyncIterator[KeptItem], wanted: PageOf) -> bytes:
    """The list object of the part that is wanted.

    Raises ProxyError 400 where there is no such item to begin behind, StoreError.
    """
    found: list[KeptItem] = []
    begun = wanted.after is None
    async for item in items:
        if begun:
            found.append(item)
        if len(found) > wanted.limit:
            break
        begun = begun or item.id == wanted.after
    if not begun:
        raise invalid_value("after is the id of no item in this list.", "after")
    return list_object(found[: wanted.limit], more=len(found) > wanted.limit)


async def items_of(
    services: Services, key: SessionKey, messages: Sequence[str], *, descends: bool
) -> AsyncIterator[KeptItem]:
    """The items of stored messages, by their ids.  Raises StoreError."""
    order = messages[::-1] if descends else messages
    for at in range(0, len(order), AT_ONCE):
        ids = order[at : at + AT_ONCE]
        bodies = await services.state.store.bodies(key, ids)
        size = sum(map(len, bodies.values()))
        for item in await services.aside.run(size, partial(_in_order, ids, bodies, descends)):
            yield item


def _in_order(
    ids: Sequence[str], bodies: Mapping[str, bytes], descends: bool
) -> Sequence[KeptItem]:
    found = (list(items_in(id, bodies[id])) for id in ids if id in bodies)
    return [item for own in found for item in (own[::-1] if descends else own)]


async def all_items(
    services: Services, key: SessionKey, *, descends: bool = False
) -> AsyncIterator[KeptItem]:
    """The items of a conversation: the messages it begins with, then the log.

    Raises StoreError.
    """
    snapshot = await services.state.store.load(key, WHOLE_LOG)
    first = list(system_items(key, snapshot.system))
    if not descends:
        for item in first:
            yield item
    log = [entry.card.id for entry in snapshot.log]
    async for item in items_of(services, key, log, descends=descends):
        yield item
    if descends:
        for item in reversed(first):
            yield item


def system_items(key: SessionKey, system: bytes | None) -> list[KeptItem]:
    """The items of a session's system messages (a JSON list)."""
    messages = jsontext.items(system) if system else []
    named = ((system_message(key, n), raw) for n, raw in enumerate(messages))
    return [item for name, raw in named for item in items_in(name, raw)]


def system_message(key: SessionKey, number: int) -> str:
    """What stands for the id of a system message."""
    return f"{SYSTEM}{reference_of(key.session)}.{number}"
