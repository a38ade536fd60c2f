"""Items from elsewhere on their way onto a shelf, beside what is there already.

What has its place taken stays out.  What the proxy has learned hangs together, and is kept so: a
profile that is there keeps out another one's versions, and the cards, which say what goes into
prompts, are made anew where facts or episodes came beside those that were there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from proxy.learning import episode, profile
from proxy.learning.episode_shelf import EpisodeShelf
from proxy.learning.fact import FACTS
from proxy.learning.fact_book import FactBook
from proxy.learning.fact_card import CARDS, card_of, card_place
from proxy.learning.forgetting import ATTEMPTS, Busy
from proxy.memory.items import Change, Item, Items, Place, Shelf, is_reserved

AT_ONCE = 200
"""Items that are put in one go."""

EPISODES = 1000
"""Of a person that are looked at: many more than are ever kept."""

PROFILE = frozenset({profile.FEATURE, "profiles"})
"""Third labels of a profile and of its versions."""


class Adopted(NamedTuple):
    """How many items were put, and how many were left out."""

    put: int
    skipped: int


class Adopting:
    """``count`` gives the tokens of a text, ``clock`` Unix seconds."""

    def __init__(
        self,
        items: Items,
        facts: FactBook,
        episodes: EpisodeShelf,
        count: Callable[[str], int],
        clock: Callable[[], float],
    ) -> None:
        self._items, self._facts, self._episodes = items, facts, episodes
        self._count, self._time = count, clock

    async def adopt(self, shelf: Shelf, items: Sequence[Item]) -> Adopted:
        """Put what can be put.  Raises StoreError, and Busy."""
        taken = list(items)
        if await self._has_another(shelf, [item for item in items if _of_profile(item)]):
            taken = [item for item in items if not _of_profile(item)]
        cards = [item for item in taken if _label(item) == CARDS]
        others = [item for item in taken if _label(item) != CARDS]
        put = await self._put(shelf, others)
        kept = await self._items.items_at(shelf, [_place(card) for card in cards])
        put_cards = await self._put(shelf, cards)  # last: they speak of the others
        if put and kept:
            await self._recard(shelf, {place.key for place in kept})
        return Adopted(put + put_cards, len(items) - put - put_cards)

    async def _has_another(self, shelf: Shelf, items: Sequence[Item]) -> bool:
        """Is there a profile already, and not this one?"""
        place = profile.profile_place(shelf.user)
        mine = next((item.value for item in items if _place(item) == place), None)
        if not items:
            return False
        there = (await self._items.items_at(shelf, [place])).get(place)
        return there is not None and (mine is None or bytes(there.value) != bytes(mine))

    async def _put(self, shelf: Shelf, items: Sequence[Item]) -> int:
        put = 0
        for start in range(0, len(items), AT_ONCE):
            put += await self._items.adopt_items(shelf, items[start : start + AT_ONCE])
        return put

    async def _recard(self, shelf: Shelf, features: Collection[str]) -> None:
        for feature, made in ((FACTS, self._of_facts), (episode.FEATURE, self._of_episodes)):
            if feature in features:
                await self._write(shelf, made)

    async def _write(self, shelf: Shelf, made: Callable[[Shelf], Awaitable[Change]]) -> None:
        for _ in range(ATTEMPTS):
            if await self._items.change_items(shelf, [await made(shelf)]):
                return
        raise Busy

    async def _of_facts(self, shelf: Shelf) -> Change:
        kept = await self._facts.load(shelf)
        card = card_of(kept.facts.values(), kept.card, self._count, self._time())
        return _putting(card_place(shelf.user, FACTS), card, kept.seen)

    async def _of_episodes(self, shelf: Shelf) -> Change:
        """The newest of them, as the shelf keeps them."""
        held = await self._episodes.held(shelf)
        page = await self._episodes.episodes(shelf, None, EPISODES)
        found = [msgspec.json.decode(item.value, type=episode.Episode) for item in page.items]
        kept = sorted(found, key=lambda each: each.created_at)[-episode.MOST_EPISODES :]
        card = episode.Card(tuple(episode.entry_of(each, self._count) for each in kept))
        return _putting(card_place(shelf.user, episode.FEATURE), card, held.stored)


def _putting(place: Place, card: msgspec.Struct, after: int) -> Change:
    written = msgspec.json.encode(card)
    return Change(namespace=place.namespace, key=place.key, value=written, after=after)


def _label(item: Item) -> str:
    """What kind of a person's items it is; "" for others."""
    return item.namespace[2] if is_reserved(item.namespace) and len(item.namespace) > 2 else ""


def _of_profile(item: Item) -> bool:
    return _label(item) in PROFILE or (_label(item) == CARDS and item.key == profile.FEATURE)


def _place(item: Item) -> Place:
    return Place(item.namespace, item.key)
