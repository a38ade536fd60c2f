"""The queue of work in memory: what the contract means, in the plainest words."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from proxy.memory.model import Kind, SessionKey, Work, WorkRequest
from proxy.stores.common import rules as pieces

Piece = tuple[str, str, str]
"""tenant, session, kind"""


class InMemoryQueue:
    """See :class:`proxy.memory.store.Queue`."""

    def __init__(self) -> None:
        self._pieces: dict[Piece, Work] = {}

    async def enqueue(self, key: SessionKey, due: WorkRequest) -> None:
        self._enqueue(key, due)

    def _enqueue(self, key: SessionKey, due: WorkRequest) -> None:
        place = (*key, due.kind)
        self._pieces[place] = pieces.enqueued(self._pieces.get(place), key, due)

    async def waiting(
        self, now: float, limit: int, without: Collection[str] = ()
    ) -> Sequence[Work]:
        pieces = (piece for piece in self._pieces.values() if piece.tenant not in without)
        due = [piece for piece in pieces if piece.due <= now]
        due.sort(key=lambda piece: piece.due)
        return [replace(piece, lease="") for piece in due[:limit]]

    async def requested_profiles(
        self, tenant: str, sessions: Sequence[str], kind: Kind
    ) -> Mapping[str, str]:
        places = {session: (tenant, session, kind) for session in sessions}
        return {
            session: self._pieces[place].profile
            for session, place in places.items()
            if place in self._pieces
        }

    async def claim(self, work: Work, now: float, until: float) -> Work | None:
        place = _place(work)
        piece = pieces.claimed(self._pieces.get(place), now, until, secrets.token_hex(8))
        if piece is not None:
            self._pieces[place] = piece
        return piece

    async def extend(self, work: Work, until: float) -> bool:
        return self._if_held(work, lambda piece: replace(piece, due=until))

    async def finish(self, work: Work, again: float) -> None:
        self._if_held(work, lambda piece: pieces.finished(piece, work, again))

    async def postpone(self, work: Work, due: float, *, failed: bool) -> None:
        self._if_held(work, lambda piece: pieces.postponed(piece, due, failed=failed))

    def _if_held(self, work: Work, change: Callable[[Work], Work | None]) -> bool:
        place = _place(work)
        piece = self._pieces.get(place)
        if piece is None or not pieces.has_lease(piece, work):
            return False
        left = change(piece)
        if left is None:
            del self._pieces[place]
        else:
            self._pieces[place] = left
        return True

    def _forget_work(self, tenant: str, session: str | None = None) -> None:
        """Forget the work on a session, or with None on all of a tenant."""
        for place in list(self._pieces):
            if place[0] == tenant and session in (None, place[1]):
                del self._pieces[place]


def _place(work: Work) -> Piece:
    return work.tenant, work.session, work.kind
