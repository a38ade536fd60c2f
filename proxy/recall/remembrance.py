"""What people may ask of recall, outside a chat: search, and the standing wishes.

The same index and the same ranking as a chat's; no budget, and nothing is in a prompt already.
"""

from __future__ import annotations

from proxy.memory.model import SessionKey
from proxy.recall.found import Found
from proxy.recall.index import Owner
from proxy.recall.indexer import Indexer
from proxy.recall.recaller import Recaller
from proxy.recall.wanted import Terms, Wanted

ROOM = 1_000_000
"""Tokens: a budget that bounds nothing."""


class Remembrance:
    """All methods raise StoreError."""

    def __init__(self, recaller: Recaller, indexer: Indexer) -> None:
        self._recaller, self._indexer = recaller, indexer

    async def search(self, owner: Owner, query: str) -> list[Found]:
        """What a person said or was told, best first; wishes in force that it touches first."""
        found = await self._recaller.recall(_wanted(owner, query))
        return list(found.all)

    async def wishes(self, owner: Owner) -> tuple[Found, ...]:
        """The standing wishes in force, newest first."""
        return await self._recaller.wishes(_wanted(owner, ""))

    async def dismiss(self, owner: Owner, *wishes: str) -> None:
        """Never pin wishes again."""
        await self._indexer.dismiss(owner, *wishes)

    async def look_again(self, owner: Owner) -> None:
        """Sessions come back that are older than what is indexed: let none be missed."""
        await self._indexer.look_again(owner)

    async def dismissed(self, owner: Owner) -> tuple[str, ...]:
        """The ids of the wishes that were dismissed, the newest last."""
        return await self._indexer.dismissed(owner)


def _wanted(owner: Owner, text: str) -> Wanted:
    return Wanted(
        key=SessionKey(owner.tenant, owner.session),
        user=owner.user,
        session_owner=None,
        text=text,
        budget=ROOM,
        count=len,
        terms=Terms(wishes_max_tokens=ROOM),
    )
