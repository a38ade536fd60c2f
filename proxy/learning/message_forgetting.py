"""What repeats a message goes with it: examples made of its exchange, and what was said of it."""

from __future__ import annotations

from collections.abc import Collection

from proxy.learning.episode_shelf import EpisodeShelf
from proxy.learning.feedback import feedback_place
from proxy.memory.items import Change, Items, Shelf
from proxy.memory.model import SessionKey, exchange_of


async def forget_examples(
    episodes: EpisodeShelf, key: SessionKey, user: str | None, messages: Collection[str]
) -> None:
    """Drop the episodes that are made of the exchanges of messages.

    Raises StoreError, and Busy.
    """
    if user:
        for exchange in sorted({exchange_of(message) for message in messages}):
            await episodes.forget(Shelf(key.tenant, user), key.session, exchange, False)


async def forget_comments(
    items: Items, key: SessionKey, user: str | None, messages: Collection[str]
) -> None:
    """Drop what was said of messages that are removed.  Raises StoreError."""
    owner = user or ""
    places = [feedback_place(owner, key.session, message) for message in messages]
    gone = [Change(namespace=place.namespace, key=place.key, value=None) for place in places]
    if gone:
        await items.change_items(Shelf(key.tenant, owner), gone)
