"""All that is remembered of a person as one list: facts, standing wishes, episodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from starlette.requests import Request

from proxy.admin import asking
from proxy.admin.asking import invalid
from proxy.admin.episodes import episode_object
from proxy.admin.facts import fact_object, said_object
from proxy.admin.objects import Object, found_object
from proxy.admin.parts import AdminParts
from proxy.learning.fact import DAY
from proxy.memory.items import Item, Shelf
from proxy.recall.found import Found
from proxy.recall.index import Owner

WISHES = ("instruction", "preference")
KINDS = ("fact", *WISHES, "episode")
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


@dataclass(frozen=True, slots=True)
class Memories:
    """What is remembered of people, as objects.  All methods raise StoreError."""

    parts: AdminParts

    async def page(
        self, owner: Owner, wanted: Listing, after: str | None, limit: int, now: float
    ) -> tuple[list[Object], str | None]:
        """The memories behind a cursor, and the cursor of the next page.

        Raises ValueError for a cursor that is none.
        """
        begin = msgspec.json.decode(after, type=Key) if after is not None else None
        found = [
            (key, each)
            for key, each in await self._all(owner, wanted, now)
            if begin is None or key > begin
        ]
        found.sort(key=lambda pair: pair[0])
        page = found[:limit]
        more = page and len(found) > limit
        return [each for _, each in page], _cursor(page[-1][0]) if more else None

    async def _all(self, owner: Owner, wanted: Listing, now: float) -> list[tuple[Key, Object]]:
        found: list[tuple[Key, Object]] = []
        if "fact" in wanted.kinds:
            found += [(_key(0, each), each) for each in await self._facts(owner, wanted, now)]
        if "current" not in wanted.states or wanted.stale is not None:
            return found
        if not set(WISHES).isdisjoint(wanted.kinds):
            for wish in await self.wishes(owner):
                if wish.kind in wanted.kinds:
                    key = (1, -wish.created_at, -wish.seq, f"{wish.session}:{wish.place:06}")
                    found.append((key, said_object(wish, found_object(wish))))
        if "episode" in wanted.kinds:
            episodes = await self._episodes(shelf_of(owner))
            found += [(_key(2, each), each) for each in map(episode_object, episodes)]
        return found

    async def wishes(self, owner: Owner) -> tuple[Found, ...]:
        """The standing wishes in force, newest first."""
        return await self.parts.remembrance.wishes(owner)

    async def _facts(self, owner: Owner, wanted: Listing, now: float) -> Iterator[Object]:
        kept = await self.parts.facts.load(shelf_of(owner))
        count = self.parts.count_text
        return (
            each
            for each in (fact_object(filed, now, count) for filed in kept.filed.values())
            if each["state"] in wanted.states
            and (wanted.stale is None or _before(each["last_confirmed"], now - wanted.stale))
        )

    async def _episodes(self, shelf: Shelf) -> list[Item]:
        found: list[Item] = []
        after = None
        while True:
            page = await self.parts.learned.episodes.episodes(shelf, after, PAGE)
            found += page.items
            if (after := page.after) is None:
                return found


def shelf_of(owner: Owner) -> Shelf:
    return Shelf(owner.tenant, owner.user or "")


def opened(request: Request) -> str | None:
    """``?after=``.  Raises ProxyError 400."""
    sealed = request.query_params.get("after")
    try:
        return asking.opened(sealed) if sealed is not None else None
    except ValueError:
        raise asking.unknown_cursor() from None


def _before(time: object, end: float) -> bool:
    return isinstance(time, float) and time <= end


def _key(rank: int, each: Object) -> Key:
    created = each["created_at"]
    return (rank, -created if isinstance(created, float) else 0.0, 0, str(each["id"]))


def _cursor(key: Key) -> str:
    return asking.sealed(msgspec.json.encode(key).decode())
