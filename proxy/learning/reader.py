"""Reading on in a session: what the user has said since, in lessons that fit into one request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from proxy.learning.chunks import LONGEST, cut, piece
from proxy.learning.lesson import Lesson, Mark, Occasion, Said
from proxy.learning.pasted import pasted
from proxy.memory.archive import Message, Page, Session
from proxy.memory.items import Shelf
from proxy.memory.model import Ask, SessionKey, Snapshot, State

PAGE = 20
"""Messages that are read at once."""

SAID: tuple[State, ...] = ("active",)


class Piece(NamedTuple):
    """A message or a part of it, its tokens, and the mark once it has been read."""

    said: Said
    tokens: int
    then: Mark


class History(Protocol):
    """What is read.  Implemented by every store; all methods raise StoreError."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot: ...

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]: ...


@dataclass(frozen=True, slots=True)
class Reader:
    """How messages are read.

    ``text_of`` gives the text of a message's JSON, without media; ``count`` the tokens of a text.
    """

    history: History
    text_of: Callable[[bytes], str]
    count: Callable[[str], int]

    async def lessons(
        self, occasion: Occasion, mark: Mark, version: int, room: int
    ) -> AsyncGenerator[Lesson, None]:
        """What the user said behind a mark, which has this version, oldest first.

        Each lesson takes for granted that the one before has been learned.
        """
        taken: list[Piece] = []
        async for part in self._behind(occasion.key, mark, room):
            if taken and sum(each.tokens for each in taken) + part.tokens > room:
                yield _lesson(occasion, taken, version)
                taken, version = [], version + 1
            taken.append(part)
        if taken:
            yield _lesson(occasion, taken, version)

    async def _behind(self, key: SessionKey, mark: Mark, room: int) -> AsyncGenerator[Piece, None]:
        after: int | None = mark.seq
        while after is not None:
            page = await self.history.messages(key, SAID, after, PAGE)
            for message in page.items:
                if _is_said(message, mark):
                    for part in await asyncio.to_thread(self._pieces, message, mark, room):
                        yield part
            after = int(page.after) if page.after is not None else None

    def _pieces(self, message: Message, mark: Mark, room: int) -> list[Piece]:
        card, text = message.card, self.text_of(message.wire)
        if not text.strip():
            return []
        said = Said(card.id, card.exchange, message.seq, text, card.created_at, pasted(text))
        read = mark.offset if mark.message == card.id else 0
        rest = piece(said, read, len(text)) if read else said
        if card.tokens <= room and len(rest.text) <= LONGEST:
            return [Piece(rest, card.tokens, _after(message, mark, len(text), len(text)))]
        return [
            Piece(part, tokens, _after(message, mark, read + end, len(text)))
            for part, tokens, end in cut(rest, room, self.count)
        ]


def _lesson(occasion: Occasion, taken: list[Piece], version: int) -> Lesson:
    return Lesson(
        shelf=Shelf(occasion.key.tenant, occasion.session.user or ""),
        key=occasion.key,
        settings=occasion.settings,
        said=tuple(part.said for part in taken),
        model=occasion.model,
        then=taken[-1].then,
        read=version,
        since=occasion.since,
    )


def _is_said(message: Message, mark: Mark) -> bool:
    card = message.card
    theirs = card.role == "user" and card.origin in ("request", "import")
    return theirs and not card.blank and card.exchange not in mark.without


def _after(message: Message, mark: Mark, end: int, length: int) -> Mark:
    if end >= length:
        return Mark(seq=message.seq, began=mark.began, without=mark.without)
    return Mark(
        seq=message.seq - 1,
        message=message.card.id,
        offset=end,
        began=mark.began,
        without=mark.without,
    )
