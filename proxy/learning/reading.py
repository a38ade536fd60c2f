"""Reading what a person has said: of all sessions that wait to be read, oldest first, in batches.

Each piece of a message knows what day the text before it has named, wherever it was cut.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from proxy.learning.batch import Batch, LearningContext, ReadMark, Stretch, mark_of, mark_place
from proxy.learning.evidence import Gone, Said
from proxy.memory.archive import Message, Page, Session
from proxy.memory.items import Item, Items
from proxy.memory.model import Ask, SessionKey, Snapshot, State
from proxy.recall.lexicon.loader import COMMON, alternation, lazy_pattern
from proxy.recall.own_words import Span, pasted_spans
from proxy.recall.query.dates import date_of, days_of_lines, utc_offset

CHARACTERS = 4
"""Characters of a token, at most, in nearly all texts."""

LONGEST = 60_000
"""Characters of a piece, at most, however few tokens they are."""

_ENDS = ("\n\n", "\n", "。", ". ", "! ", "? ", " ")
"""Where a text is cut, best first: after a paragraph, a line, a sentence, a word."""

PAGE = 20
"""Messages that are read at once."""

OPEN = 64
"""Sessions that are read side by side.  Of more that overlap in time, the others wait for the first
to end: only then can something be read before what was said earlier."""

SAID: tuple[State, ...] = ("active",)

KEPT: tuple[State, ...] = ("active", "superseded")

_CAPTION = lazy_pattern(
    rf"[\[【]({alternation(COMMON.captions)})[:：]\s?[^\[\]【】\n]{{1,1000}}[\]】]", re.IGNORECASE
)
_PICTURE = lazy_pattern(rf"[\[【]{alternation(COMMON.captions)}[\]】]", re.IGNORECASE)


def uncaptioned(text: str) -> str:
    """A text without what a machine says of a picture: ``[photo: a dog]`` becomes ``[photo]``."""
    return _CAPTION.sub(r"[\1]", text)


def shows_picture(text: str) -> bool:
    """Does it have what is left of a caption?"""
    return _PICTURE.search(text) is not None


def cut(said: Said, room: int, count: Callable[[str], int]) -> Iterator[tuple[Said, int, int]]:
    """The pieces of a message: each with its tokens, and where in the message it ends.

    A piece has at most ``room`` tokens, and ends with a paragraph where it can; none is lost.
    """
    start = 0
    while start < len(said.text):
        end, tokens = _end(said.text, start, room, count)
        part = piece(said, start, end)
        yield part, tokens, end
        said, start = replace(said, dated=day_behind(part)), end


def piece(said: Said, start: int, end: int) -> Said:
    """A part of a message, in which what is pasted stays so."""
    pasted = (
        Span(max(span.start, start) - start, min(span.end, end) - start)
        for span in said.pasted
        if span.start < end and span.end > start
    )
    return replace(said, text=said.text[start:end], pasted=tuple(pasted))


def day_behind(said: Said) -> str:
    """The day (YYYY-MM-DD) that holds for what follows a text: the last one that it names above a
    part of itself, else the one before it."""
    named = [date_of(day).isoformat() for day in days_of_lines(said.text)]
    return named[-1] if named else said.dated


def _end(text: str, start: int, room: int, count: Callable[[str], int]) -> tuple[int, int]:
    end = min(len(text), start + min(LONGEST, CHARACTERS * room))
    tokens = count(text[start:end])
    while tokens > room and end - start > 1:
        end = start + max(1, int((end - start) * 0.95 * room / tokens))
        tokens = count(text[start:end])
    return (_break(text, start, end), tokens) if end < len(text) else (end, tokens)


def _break(text: str, start: int, end: int) -> int:
    """A good place to cut in the second half of a piece, else its end."""
    half = (start + end) // 2
    for mark in _ENDS:
        at = text.rfind(mark, half, end)
        if at > 0:
            return at + len(mark)
    return end


class Piece(NamedTuple):
    """A message or a part of it, its tokens, and the mark once it has been read."""

    said: Said
    tokens: int
    then: ReadMark


class BatchHistory(Protocol):
    """What is read.  Implemented by every store; all methods raise StoreError."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot: ...

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]: ...

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]: ...


class Unread(msgspec.Struct, frozen=True):
    """A session of which a feature has something to read, ``first`` said then (Unix seconds),
    behind a ``mark`` of this ``version``."""

    context: LearningContext
    mark: ReadMark
    version: int
    first: float


class Taken(NamedTuple):
    """A piece, and where it is from."""

    unread: Unread
    piece: Piece

    def goes_with(self, other: Taken) -> bool:
        """May one request have both?"""
        return self.unread.context.asks == other.unread.context.asks


Head = tuple[float, int, Taken, AsyncGenerator[Piece, None]]
"""When the next piece of a session was said, a number of the session's own, the piece, the rest."""


class Reader(msgspec.Struct, frozen=True):
    """How messages are read.

    ``text_of`` gives the text of a message's JSON, without media; ``count`` the tokens of a text.
    """

    history: BatchHistory
    text_of: Callable[[bytes], str]
    count: Callable[[str], int]

    async def unread(
        self, items: Items, feature: str, contexts: Sequence[LearningContext]
    ) -> list[Unread]:
        """Those of a person's sessions that have something a feature has not read."""
        found = []
        for context in contexts:
            place = mark_place(context.shelf.user, feature, context.key.session)
            item = (await items.items_at(context.shelf, [place])).get(place)
            mark, version = await self._mark(context, item), item.version if item else 0
            async with aclosing(self._said(context.key, mark)) as said:
                first = await anext(said, None)
            if first is not None:
                found.append(Unread(context, mark, version, first.card.created_at))
        return found

    async def _mark(self, context: LearningContext, item: Item | None) -> ReadMark:
        """How far a session was read, if it still has what was read: where its end is lost, other
        messages come to stand there.  It may also have grown since we looked at it."""
        mark = mark_of(item, context.session.created_at)
        if mark.seq <= context.session.end:
            return mark
        now = await self.history.session(context.key)
        return mark.anew() if now is not None and now.end < mark.seq else mark

    async def batches(
        self, sessions: Sequence[Unread], room: Callable[[LearningContext], int]
    ) -> AsyncGenerator[Batch, None]:
        """What the user said behind the marks, oldest first.

        Each batch takes for granted that the one before has been learned.
        """
        taken: list[Taken] = []
        versions = {each.context.key: each.version for each in sessions}
        async with aclosing(self._merged(sessions, room)) as parts:
            async for part in parts:
                most = room(part.unread.context)
                if taken and not (_fits(taken, part, most) and part.goes_with(taken[0])):
                    yield _batch(taken, versions)
                    taken = []
                taken.append(part)
        if taken:
            yield _batch(taken, versions)

    async def _merged(
        self, sessions: Sequence[Unread], room: Callable[[LearningContext], int]
    ) -> AsyncGenerator[Taken, None]:
        """The pieces of all sessions in the order in which they were said."""
        waiting = sorted(sessions, key=lambda each: each.first, reverse=True)
        heads: list[Head] = []
        async with AsyncExitStack() as opened:
            while waiting or heads:
                while waiting and _is_next(waiting[-1], heads):
                    unread = waiting.pop()
                    most = room(unread.context)
                    pieces = self._behind(unread, most)
                    rest = await opened.enter_async_context(aclosing(pieces))
                    await _push(heads, len(waiting), unread, rest, unread.first)
                if heads:
                    at, number, taken, rest = heappop(heads)
                    yield taken
                    await _push(heads, number, taken.unread, rest, at)

    async def gone(self, batch: Batch) -> Gone | None:
        """What of a batch is not there any more as it was read; None: all is."""
        sessions: set[str] = set()
        messages: set[tuple[str, str]] = set()
        for stretch in batch.stretches:
            name = stretch.key.session
            read = [said for said in batch.said if said.session == name]
            texts: dict[str, str] = {}
            if await self._is_there(stretch):
                texts = await self._texts(stretch.key, read)
            else:
                sessions.add(name)
            lost = (each for each in read if each.text not in texts.get(each.message, ""))
            messages.update((name, each.message) for each in lost)
        return Gone(frozenset(sessions), frozenset(messages)) if messages else None

    async def _is_there(self, stretch: Stretch) -> bool:
        session = await self.history.session(stretch.key)
        return session is not None and session.created_at == stretch.then.began

    async def _texts(self, key: SessionKey, read: Sequence[Said]) -> dict[str, str]:
        """What messages say now, by id."""
        ids, last = {said.message for said in read}, read[-1].seq
        texts: dict[str, str] = {}
        async with aclosing(self._messages(key, KEPT, read[0].seq - 1)) as messages:
            async for message in messages:
                if message.seq > last:
                    break
                if message.card.id in ids:
                    texts[message.card.id] = await asyncio.to_thread(self._text, message)
        return texts

    async def _said(self, key: SessionKey, mark: ReadMark) -> AsyncGenerator[Message, None]:
        """The user's messages behind a mark."""
        async with aclosing(self._messages(key, SAID, mark.seq)) as messages:
            async for message in messages:
                if _is_said(message, mark):
                    yield message

    async def _messages(
        self, key: SessionKey, states: Collection[State], begin: int
    ) -> AsyncGenerator[Message, None]:
        """The messages behind a seq."""
        after: int | None = begin
        while after is not None:
            page = await self.history.messages(key, states, after, PAGE)
            for message in page.items:
                yield message
            after = int(page.after) if page.after is not None else None

    async def _behind(self, unread: Unread, room: int) -> AsyncGenerator[Piece, None]:
        context, mark = unread.context, unread.mark
        async with aclosing(self._said(context.key, mark)) as messages:
            async for message in messages:
                for part in await asyncio.to_thread(self._pieces, context, message, mark, room):
                    yield part
                    mark = part.then

    def _pieces(
        self, context: LearningContext, message: Message, mark: ReadMark, room: int
    ) -> list[Piece]:
        card, text = message.card, self._text(message)
        if not text.strip():
            return []
        said = Said(
            card.id,
            card.exchange,
            message.seq,
            text,
            card.created_at,
            pasted_spans(text),
            context.key.session,
            mark.dated,
            utc_offset(card.created_at, context.settings.recall.zone),
        )
        read = mark.offset if mark.message == card.id else 0
        rest = piece(said, read, len(text)) if read else said
        if card.tokens <= room and len(rest.text) <= LONGEST:
            return [Piece(rest, card.tokens, _after(rest, mark, message, None))]
        return [
            Piece(part, tokens, _after(part, mark, message, _within(read + end, text)))
            for part, tokens, end in cut(rest, room, self.count)
        ]

    def _text(self, message: Message) -> str:
        return uncaptioned(self.text_of(message.wire))


def _is_next(unread: Unread, heads: Sequence[Head]) -> bool:
    """Is it time to open this session?"""
    return not heads or (len(heads) < OPEN and unread.first <= heads[0][0])


async def _push(
    heads: list[Head],
    number: int,
    unread: Unread,
    rest: AsyncGenerator[Piece, None],
    at: float,
) -> None:
    """Put the next piece of a session among the others.  It counts as said at ``at`` at the
    earliest: when the one before it was."""
    following = await anext(rest, None)
    if following is not None:
        when = max(at, following.said.at)
        heappush(heads, (when, number, Taken(unread, following), rest))


def _fits(taken: Sequence[Taken], part: Taken, room: int) -> bool:
    return sum(each.piece.tokens for each in taken) + part.piece.tokens <= room


def _batch(taken: Sequence[Taken], versions: dict[SessionKey, int]) -> Batch:
    """The batch of these; then the marks of its sessions have the next versions."""
    then = {each.unread.context.key: each.piece.then for each in taken}
    stretches = tuple(Stretch(key, mark, versions[key]) for key, mark in then.items())
    versions.update({key: versions[key] + 1 for key in then})
    context = taken[0].unread.context
    return Batch(
        shelf=context.shelf,
        settings=context.settings,
        said=tuple(each.piece.said for each in taken),
        model=context.model,
        stretches=stretches,
        since=context.since,
    )


def _is_said(message: Message, mark: ReadMark) -> bool:
    card = message.card
    theirs = card.role == "user" and card.origin in ("request", "import")
    return theirs and not card.blank and card.exchange not in mark.without


def _within(end: int, text: str) -> int | None:
    """Where a part ends in its text, None where the text ends with it."""
    return end if end < len(text) else None


def _after(part: Said, mark: ReadMark, message: Message, end: int | None) -> ReadMark:
    """The mark behind a part that ends there in its message, None: with it."""
    dated = day_behind(part)
    if end is None:
        return replace(mark, seq=message.seq, message="", offset=0, dated=dated)
    return replace(mark, seq=message.seq - 1, message=part.message, offset=end, dated=dated)
