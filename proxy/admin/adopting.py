"""Items from elsewhere on their way onto a shelf, beside what is there already.

What has its place taken stays out.  What the proxy has learned hangs together, and is kept so: a
profile that is there keeps out another one with its versions, as do instructions; and the cards,
which say what goes into prompts, are made anew where facts or episodes came beside those that were
there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from proxy.learning import episode, instructions, profile
from proxy.learning.episode_shelf import EpisodeShelf
from proxy.learning.fact import FACTS
from proxy.learning.fact_book import FactBook
from proxy.learning.fact_card import CARDS, card_of, card_place
from proxy.learning.feedback import NOBODYS
from proxy.learning.forgetting import ATTEMPTS, Busy
from proxy.learning.reserved import is_sound
from proxy.memory.items import INSTRUCTIONS, PEOPLE, Change, Item, Items, Place, Shelf, is_reserved

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
        """Put what can be put.  Raises ValueError for what nobody can have learned, StoreError,
        and Busy.
        """
        wrong = next((x for x in items if is_reserved(x.namespace) and not is_sound(x)), None)
        if wrong is not None:
            where = "/".join((*wrong.namespace, wrong.key))
            raise ValueError(f"an item at {where} that is not what belongs there")
        others = await self._others(shelf, items)
        taken = [item for item in items if _story(item) not in others]
        cards = [item for item in taken if _is_card(item)]
        put = await self._put(shelf, [item for item in taken if not _is_card(item)])
        kept = await self._items.items_at(shelf, [card.place for card in cards])
        put_cards = await self._put(shelf, cards)  # last: they speak of the others
        if put and kept:
            await self._recard(shelf, {place.key for place in kept})
        return Adopted(put + put_cards, len(items) - put - put_cards)

    async def _others(self, shelf: Shelf, items: Sequence[Item]) -> set[Place | None]:
        """The stories of which another is there already."""
        mine = {item.place: bytes(item.value) for item in items}
        stories = {story for item in items if (story := _story(item))}
        there = await self._items.items_at(shelf, stories)
        return {place for place, item in there.items() if bytes(item.value) != mine.get(place)}

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


def _story(item: Item) -> Place | None:
    """What has versions is one story: the place of its current one.  None for all else."""
    first, *labels = item.namespace
    if first == PEOPLE and len(labels) > 1 and _is_of_profile(labels[1], item.key):
        return profile.profile_place(labels[0])
    if first == INSTRUCTIONS and labels and labels[0] != NOBODYS:
        return instructions.current_place(labels[0])
    return None


def _is_of_profile(label: str, key: str) -> bool:
    return label in PROFILE or (label == CARDS and key == profile.FEATURE)


def _is_card(item: Item) -> bool:
    return item.namespace[:1] == (PEOPLE,) and item.namespace[2:] == (CARDS,)
