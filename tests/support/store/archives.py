"""Revisions and archives of sessions in few words."""

from __future__ import annotations

from typing import Any

from proxy.memory.archive import (
    Archive,
    PlacedExchange,
    Revision,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.model import MessageEdit, SessionKey
from proxy.memory.store import Store
from tests.support.store.commits import card


def edited(
    exchange: str,
    index: int,
    role: str = "user",
    *,
    replaced_wire: bytes,
    wire: bytes | None = None,
    **fields: Any,
) -> MessageEdit:
    """A message of ``commits.draft`` with another text."""
    body = b'{"role":"%b","content":"edited"}' % role.encode()
    known = {"digest": "edited", "tokens": 3} | fields
    return MessageEdit(
        card=card(exchange, index, role, **known), body=body, wire=wire, replaced_wire=replaced_wire
    )


async def revise(store: Archive, key: SessionKey, **changes: Any) -> bool:
    return await store.revise(key, Revision(**changes))


async def lines(store: Archive, key: SessionKey, limit: int = 1000) -> tuple[StoredMessage, ...]:
    """All messages, page by page."""
    found: list[StoredMessage] = []
    after: str | None = "0"
    while after is not None:
        page = await store.lines(key, int(after), limit)
        found += page.items
        after = page.after
    return tuple(found)


async def exchanges(
    store: Archive, key: SessionKey, limit: int = 1000
) -> tuple[PlacedExchange, ...]:
    """All exchanges that have messages, newest first, page by page."""
    page = await store.exchanges(key, None, limit)
    found = list(page.items)
    while page.after is not None:
        page = await store.exchanges(key, int(page.after), limit)
        found += page.items
    return tuple(found)


async def take_out(store: Store, key: SessionKey) -> SessionArchive:
    """The whole session, as an export does it."""
    session = await store.session(key)
    assert session is not None
    placed = await exchanges(store, key)
    versions = tuple(await store.summaries(key))
    return SessionArchive(session, await lines(store, key), placed[::-1], versions)
