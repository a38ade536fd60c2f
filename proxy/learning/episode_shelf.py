"""Where a person's episodes are kept, beside the card that says what of them goes into prompts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import msgspec

from proxy.learning.episode import (
    FEATURE,
    MOST_EPISODES,
    Card,
    Episode,
    entry_of,
    episode_place,
    namespace,
)
from proxy.learning.fact_card import card_place
from proxy.learning.forgetting import ATTEMPTS, Busy, Forgotten, anything
from proxy.memory.archive import Page
from proxy.memory.items import Change, Item, Items, Shelf

KIND = "episode"


@dataclass(frozen=True, slots=True)
class Held:
    """The episodes on a card, the oldest first; ``stored`` is its version, 0 without one."""

    episodes: tuple[Episode, ...] = ()
    stored: int = 0


class EpisodeShelf:
    """All methods raise StoreError; those that change something raise Busy as well.

    ``count`` gives the tokens of a text, ``clock`` Unix seconds.
    """

    def __init__(
        self, items: Items, count: Callable[[str], int], clock: Callable[[], float]
    ) -> None:
        self._items, self._count, self._time = items, count, clock

    async def episodes(self, shelf: Shelf, after: str | None, limit: int) -> Page[Item]:
        """By id, behind the id ``after``; each item's value is an Episode."""
        start = episode_place(shelf.user, after) if after else None
        page = await self._items.items(shelf, namespace(shelf.user), start, limit)
        return Page(page.items, page.items[-1].key if page.after is not None else None)

    async def episode(self, shelf: Shelf, id: str) -> Item | None:
        place = episode_place(shelf.user, id)
        return (await self._items.items_at(shelf, [place])).get(place)

    async def held(self, shelf: Shelf) -> Held:
        place = card_place(shelf.user, FEATURE)
        item = (await self._items.items_at(shelf, [place])).get(place)
        if item is None:
            return Held()
        card = msgspec.json.decode(item.value, type=Card)
        return Held(tuple(entry.episode for entry in card.entries), item.version)

    async def keep(self, shelf: Shelf, episode: Episode, since: float) -> None:
        """Keep one more that was read at ``since``: see Items.change_items.

        One with its id is replaced.
        """
        for _ in range(ATTEMPTS):
            held = await self.held(shelf)
            changes = self.changes(shelf, held, [episode], ())
            if await self._items.change_items(shelf, changes, since):
                return
        raise Busy

    async def drop(self, shelf: Shelf, id: str, check: Callable[[Item], None] = anything) -> bool:
        """False if there was none.  ``check`` raises where it is not what is meant to go."""
        for _ in range(ATTEMPTS):
            held, item = await self.held(shelf), await self.episode(shelf, id)
            if item is None or all(episode.id != id for episode in held.episodes):
                return False
            check(item)
            if await self._items.change_items(shelf, self.changes(shelf, held, (), [id])):
                return True
        raise Busy

    async def forget(
        self, shelf: Shelf, session: str, exchange: str | None, dry_run: bool
    ) -> list[Forgotten]:
        """See :class:`proxy.learning.forgetting.Part`."""
        found = await self._drop(shelf, lambda each: each.within(session, exchange), dry_run)
        return [Forgotten(each.id, KIND, "deleted", each.question) for each in found]

    async def _drop(
        self, shelf: Shelf, which: Callable[[Episode], bool], dry_run: bool = False
    ) -> Sequence[Episode]:
        for _ in range(ATTEMPTS):
            held = await self.held(shelf)
            gone = [episode for episode in held.episodes if which(episode)]
            ids = [episode.id for episode in gone]
            if not gone or dry_run:
                return gone
            if await self._items.change_items(shelf, self.changes(shelf, held, (), ids)):
                return gone
        raise Busy

    def changes(
        self, shelf: Shelf, held: Held, new: Sequence[Episode], gone: Collection[str]
    ) -> list[Change]:
        """What keeps and drops episodes, if the card is still what ``held`` says."""
        now, ids = self._time(), {episode.id for episode in new} | set(gone)
        left = [each for each in held.episodes if each.id not in ids and not each.expired(now)]
        kept = sorted([*left, *new], key=lambda episode: episode.created_at)[-MOST_EPISODES:]
        there = {episode.id for episode in kept}
        lost = [episode.id for episode in held.episodes if episode.id not in there]
        card = Card(tuple(entry_of(episode, self._count) for episode in kept))
        where, written = card_place(shelf.user, FEATURE), msgspec.json.encode(card)
        return [
            Change(namespace=where.namespace, key=where.key, value=written, after=held.stored),
            *(Change(namespace=namespace(shelf.user), key=id, value=None) for id in lost),
            *(_putting(shelf, episode) for episode in new if episode.id in there),
        ]


def _putting(shelf: Shelf, episode: Episode) -> Change:
    return Change(
        namespace=namespace(shelf.user),
        key=episode.id,
        value=msgspec.json.encode(episode),
        expires_at=episode.expires_at,
    )
