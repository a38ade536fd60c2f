"""All that is remembered of a person as one list: facts, standing wishes, episodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import msgspec
from starlette.requests import Request

from proxy.admin import asking
from proxy.admin.asking import invalid
from proxy.admin.episodes import episode_object, is_episode
from proxy.admin.facts import KIND, fact_object, is_fact, said_object, state_of
from proxy.admin.objects import Object
from proxy.learning.episode_shelf import EpisodeShelf
from proxy.learning.fact import DAY, Filed
from proxy.learning.fact_book import FactBook
from proxy.memory.items import Item, Shelf
from proxy.recall.index import Owner
from proxy.recall.remembrance import Remembrance

WISHES = ("instruction", "preference")
KINDS = (KIND, *WISHES, "episode")
STATES = ("current", "expired", "superseded", "quarantined")
MOST_DAYS = 100_000
PAGE = 100

Key = tuple[int, float, int, str]
"""How memories are ordered: by kind, newest first."""


class Listing(NamedTuple):
    """Which memories are asked for.  ``stale``: only facts not confirmed for so many seconds."""

    kinds: Collection[str]
    states: Collection[str]
    stale: float | None = None


def listing_in(request: Request) -> Listing:
    """``?kind=`` and ``?state=``, lists with commas, and ``?stale_days=``.

    All kinds by default, of what is current.  Raises ProxyError 400.
    """
    days = request.query_params.get("stale_days")
    if days is not None and not (days.isdecimal() and len(days) < 7 and int(days) <= MOST_DAYS):
        raise invalid(f"stale_days must be a whole number up to {MOST_DAYS}.", "stale_days")
    kinds = _words(request, "kind", KINDS, KINDS)
    states = _words(request, "state", STATES, STATES[:1])
    return Listing(kinds, states, int(days) * DAY if days is not None else None)


def _words(
    request: Request, name: str, known: Sequence[str], default: Sequence[str]
) -> Sequence[str]:
    text = request.query_params.get(name)
    words = text.split(",") if text is not None else default
    if any(word not in known for word in words):
        raise invalid(f"{name} must be one or several of: {', '.join(known)}.", name)
    return words


class Entry(NamedTuple):
    """A memory at its place in the list, made into an object only if it is on the page."""

    key: Key
    made: Callable[[], Object]


@dataclass(frozen=True, slots=True)
class Memories:
    """What is remembered of people, as objects.  All methods raise StoreError."""

    book: FactBook
    episodes: EpisodeShelf
    remembrance: Remembrance
    count: Callable[[str], int]

    async def page(
        self, owner: Owner, wanted: Listing, after: Key | None, limit: int
    ) -> tuple[list[Object], str | None]:
        """The memories behind a place, and the cursor of the next page."""
        entries = await self._entries(owner, wanted)
        found = [entry for entry in entries if after is None or entry.key > after]
        found.sort(key=attrgetter("key"))
        cursor = _cursor(found[limit - 1].key) if len(found) > limit else None
        return [entry.made() for entry in found[:limit]], cursor

    async def all(self, owner: Owner, wanted: Listing) -> list[Object]:
        """All of them, in no order."""
        return [entry.made() for entry in await self._entries(owner, wanted)]

    async def _entries(self, owner: Owner, wanted: Listing) -> list[Entry]:
        found = [*await self._facts(owner, wanted)]
        if "current" in wanted.states and wanted.stale is None:
            found += await self._wishes(owner, wanted)
            found += await self._episodes(owner, wanted)
        return found

    async def _facts(self, owner: Owner, wanted: Listing) -> list[Entry]:
        if KIND not in wanted.kinds:
            return []
        now = self.book.clock()
        before = now - wanted.stale if wanted.stale is not None else now
        kept = (await self.book.load(shelf_of(owner))).filed.values()
        return [
            Entry((0, -filed.created_at, 0, filed.fact.id), partial(self.fact, filed))
            for filed in kept
            if state_of(filed.fact, now) in wanted.states
            and (wanted.stale is None or filed.fact.last_confirmed <= before)
        ]

    async def _wishes(self, owner: Owner, wanted: Listing) -> list[Entry]:
        if set(WISHES).isdisjoint(wanted.kinds):
            return []
        return [
            Entry((1, -wish.created_at, -wish.seq, wish.id), partial(said_object, wish))
            for wish in await self.remembrance.wishes(owner)
            if wish.kind in wanted.kinds
        ]

    async def _episodes(self, owner: Owner, wanted: Listing) -> list[Entry]:
        found: list[Item] = []
        after, more = None, "episode" in wanted.kinds
        while more:
            page = await self.episodes.episodes(shelf_of(owner), after, PAGE)
            found += page.items
            after, more = page.after, page.after is not None
        return [
            Entry((2, -item.created_at, 0, item.key), partial(episode_object, item))
            for item in found
        ]

    async def one(self, owner: Owner, memory: str) -> Object | None:
        """A memory by its id, whatever its state."""
        shelf = shelf_of(owner)
        if is_fact(memory):
            filed = await self.book.find(shelf, memory)
            return self.fact(filed) if filed else None
        if is_episode(memory):
            item = await self.episodes.episode(shelf, memory)
            return episode_object(item) if item else None
        wishes = await self.remembrance.wishes(owner)
        return next((said_object(wish) for wish in wishes if wish.id == memory), None)

    def fact(self, filed: Filed, score: float = 0.0) -> Object:
        return fact_object(filed, self.book.clock(), self.count, score)


def shelf_of(owner: Owner) -> Shelf:
    return Shelf(owner.tenant, owner.user or "")


def after_in(request: Request) -> Key | None:
    """``?after=``.  Raises ProxyError 400."""
    sealed = request.query_params.get("after")
    try:
        return msgspec.json.decode(asking.opened(sealed), type=Key) if sealed is not None else None
    except ValueError:
        raise asking.unknown_cursor() from None


def _cursor(key: Key) -> str:
    return asking.sealed(msgspec.json.encode(key).decode())
