"""Changes to items, and looks at them, in few words."""

from __future__ import annotations

from proxy.memory.items import Change, Item, ItemOwner, Items, Namespace, Place


def put(
    namespace: Namespace,
    key: str,
    value: bytes = b"{}",
    after: int | None = None,
    expires_at: float | None = None,
) -> Change:
    return Change(namespace=namespace, key=key, value=value, after=after, expires_at=expires_at)


def gone(namespace: Namespace, key: str, after: int | None = None) -> Change:
    return Change(namespace=namespace, key=key, value=None, after=after)


async def at(store: Items, shelf: ItemOwner, namespace: Namespace, key: str) -> Item | None:
    place = Place(namespace, key)
    return (await store.items_at(shelf, [place])).get(place)


async def value(store: Items, shelf: ItemOwner, namespace: Namespace, key: str) -> bytes | None:
    item = await at(store, shelf, namespace, key)
    return bytes(item.value) if item else None


async def places(store: Items, shelf: ItemOwner, prefix: Namespace = ()) -> list[Place]:
    """All places below a prefix, which must be few."""
    page = await store.items(shelf, prefix, None, 2000)
    assert page.after is None
    return [Place(item.namespace, item.key) for item in page.items]
