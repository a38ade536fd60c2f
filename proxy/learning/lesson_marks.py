"""How far a copy of a session has been read: as far as what it was copied from."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from proxy.learning.lesson import FEATURES, mark_of, mark_place
from proxy.memory.archive import Session
from proxy.memory.items import Change, Item, Items, Shelf


async def read_on(items: Items, old: Session, new: Session, tenant: str) -> None:
    """Let nothing be learned a second time from the copy of a session.  Raises StoreError."""
    user = old.user or ""
    if not user:
        return
    places = {mark_place(user, feature, old.id): feature for feature in FEATURES}
    found = await items.items_at(Shelf(tenant, user), list(places))
    changes = [_marking(places[place], user, item, old, new) for place, item in found.items()]
    if changes:
        await items.change_items(Shelf(tenant, user), changes)


def _marking(feature: str, user: str, item: Item, old: Session, new: Session) -> Change:
    read = mark_of(item, old.created_at)
    then = replace(read, seq=min(read.seq, new.end), began=new.created_at)
    namespace, key = mark_place(user, feature, new.id)
    return Change(namespace=namespace, key=key, value=msgspec.json.encode(then))
