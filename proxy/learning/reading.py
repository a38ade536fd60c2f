"""Reads a person's unread messages of all their sessions, oldest first, in batches.

A long message is split into pieces; each has the last day named in the text before it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from proxy.learning.batch import (
    Batch,
    History,
    LearningContext,
    ReadMark,
    SessionRange,
    mark_place,
    read_mark_from,
)
from proxy.learning.evidence import DeletedSources, UserMessage
from proxy.memory.archive import Message
from proxy.memory.items import Item, Items
from proxy.memory.model import SessionKey, State
from proxy.recall.lexicon.loader import COMMON, alternation, lazy_pattern
from proxy.recall.own_words import Span, pasted_spans
from proxy.recall.query.dates import date_of, days_of_lines, utc_offset

CHARACTERS_PER_TOKEN = 4
"""The most characters of a token in nearly all texts."""

MAX_PIECE_CHARACTERS = 60_000
"""The most characters of a piece, however few tokens they are."""

_ENDS = ("\n\n", "\n", "。", ". ", "! ", "? ", " ")
"""After what a text is split, best first: a paragraph, a line, a sentence, a word."""

PAGE = 20
"""Messages that are loaded at once."""

MAX_OPEN = 64
"""Sessions that are read side by side.  Of more that overlap in time, the others wait for the first
to end: only then can something be read before what was said earlier."""

READ_STATES: tuple[State, ...] = ("active",)

KEPT_STATES: tuple[State, ...] = ("active", "superseded")

_CAPTION = lazy_pattern(
    rf"[\[【]({alternation(COMMON.captions)})[:：]\s?[^\[\]【】\n]{{1,1000}}[\]】]", re.IGNORECASE
)
_PICTURE = lazy_pattern(rf"[\[【]{alternation(COMMON.captions)}[\]】]", re.IGNORECASE)


def without_captions(text: str) -> str:
    """A text without generated captions of pictures: ``[photo: a dog]`` becomes ``[photo]``."""
    return _CAPTION.sub(r"[\1]", text)


def has_caption(text: str) -> bool:
    """Whether it has what ``without_captions`` leaves of a caption."""
    return _PICTURE.search(text) is not None


def split_message(
    message: UserMessage, max_tokens: int, count: Callable[[str], int]
) -> Iterator[tuple[UserMessage, int, int]]:
    """The pieces of a message: each with its tokens, and the offset of its end in the message.

    A piece has at most ``max_tokens`` tokens, and ends with a paragraph where possible.
    """
    start = 0
    while start < len(message.text):
        end, tokens = _piece_end(message.text, start, max_tokens, count)
        part = part_of(message, start, end)
        yield part, tokens, end
        message, start = replace(message, dated=day_after(part)), end


def part_of(message: UserMessage, start: int, end: int) -> UserMessage:
    """The part of a message from ``start`` to ``end``, with the pasted spans in it."""
    pasted = (
        Span(max(span.start, start) - start, min(span.end, end) - start)
        for span in message.pasted
        if span.start < end and span.end > start
    )
    return replace(message, text=message.text[start:end], pasted=tuple(pasted))


def day_after(message: UserMessage) -> str:
    """``dated`` of the text that follows a message: the last day in a heading, else its own."""
    named = [date_of(day).isoformat() for day in days_of_lines(message.text)]
    return named[-1] if named else message.dated


def _piece_end(
    text: str, start: int, max_tokens: int, count: Callable[[str], int]
) -> tuple[int, int]:
    end = min(len(text), start + min(MAX_PIECE_CHARACTERS, CHARACTERS_PER_TOKEN * max_tokens))
    tokens = count(text[start:end])
    while tokens > max_tokens and end - start > 1:
        end = start + max(1, int((end - start) * 0.95 * max_tokens / tokens))
        tokens = count(text[start:end])
    return (_break_before(text, start, end), tokens) if end < len(text) else (end, tokens)


def _break_before(text: str, start: int, end: int) -> int:
    """The best place to split in the second half of a piece, else its end."""
    half = (start + end) // 2
    for mark in _ENDS:
        at = text.rfind(mark, half, end)
        if at > 0:
            return at + len(mark)
    return end


class Piece(NamedTuple):
    """A message or a part of it, its tokens, and the mark once it has been read."""

    message: UserMessage
    tokens: int
    mark_after: ReadMark


class Unread(msgspec.Struct, frozen=True):
    """A session with messages after a ``mark`` of this ``version``; the first of them was sent at
    ``first`` (Unix seconds)."""

    context: LearningContext
    mark: ReadMark
    version: int
    first: float


class SessionPiece(NamedTuple):
    """A piece and its session."""

    unread: Unread
    piece: Piece

    def may_share_request(self, other: SessionPiece) -> bool:
        return self.unread.context.request_group == other.unread.context.request_group


Head = tuple[float, int, SessionPiece, AsyncGenerator[Piece, None]]
"""The time of a session's next piece, the session's number, the piece, and those after it."""


class Reader(msgspec.Struct, frozen=True):
    """Reads unread messages.

    ``text_of`` gives the text of a message's JSON, without media; ``count`` the tokens of a text.
    """

    history: History
    text_of: Callable[[bytes], str]
    count: Callable[[str], int]

    async def unread(
        self, items: Items, feature: str, contexts: Sequence[LearningContext]
    ) -> list[Unread]:
        """The sessions that have messages which a feature has not read."""
        found = []
        for context in contexts:
            place = mark_place(context.owner.user, feature, context.key.session)
            item = (await items.items_at(context.owner, [place])).get(place)
            mark = await self._mark(context, item)
            async with aclosing(self._unread_messages(context.key, mark)) as messages:
                first = await anext(messages, None)
            if first is not None:
                version = item.version if item else 0
                found.append(Unread(context, mark, version, first.card.created_at))
        return found

    async def _mark(self, context: LearningContext, item: Item | None) -> ReadMark:
        """The mark of a session; restarted if the session is now shorter than what was read, since
        other messages will have these seqs.  (It may also have grown since it was loaded.)"""
        mark = read_mark_from(item, context.session.created_at)
        if mark.seq <= context.session.end:
            return mark
        now = await self.history.session(context.key)
        return mark.restarted() if now is not None and now.end < mark.seq else mark

    async def batches(
        self, sessions: Sequence[Unread], budget_of: Callable[[LearningContext], int]
    ) -> AsyncGenerator[Batch, None]:
        """The user's messages after the marks, oldest first.

        Each batch requires that the one before has been learned.
        """
        taken: list[SessionPiece] = []
        versions = {each.context.key: each.version for each in sessions}
        async with aclosing(self._merged(sessions, budget_of)) as parts:
            async for part in parts:
                most = budget_of(part.unread.context)
                if taken and not (_fits(taken, part, most) and part.may_share_request(taken[0])):
                    yield _batch(taken, versions)
                    taken = []
                taken.append(part)
        if taken:
            yield _batch(taken, versions)

    async def _merged(
        self, sessions: Sequence[Unread], budget_of: Callable[[LearningContext], int]
    ) -> AsyncGenerator[SessionPiece, None]:
        """The pieces of all sessions, oldest first."""
        waiting = sorted(sessions, key=lambda each: each.first, reverse=True)
        heads: list[Head] = []
        async with AsyncExitStack() as opened:
            while waiting or heads:
                while waiting and _may_open(waiting[-1], heads):
                    unread = waiting.pop()
                    most = budget_of(unread.context)
                    pieces = self._pieces_of(unread, most)
                    rest = await opened.enter_async_context(aclosing(pieces))
                    await _push(heads, len(waiting), unread, rest, unread.first)
                if heads:
                    at, number, taken, rest = heappop(heads)
                    yield taken
                    await _push(heads, number, taken.unread, rest, at)

    async def deleted_of(self, batch: Batch) -> DeletedSources | None:
        """The messages of a batch that were deleted or changed since; None if none were."""
        sessions: set[str] = set()
        messages: set[tuple[str, str]] = set()
        for range_ in batch.ranges:
            name = range_.key.session
            read = [each for each in batch.messages if each.session == name]
            texts: dict[str, str] = {}
            if await self.still_exists(range_.key, range_.mark_after.began):
                texts = await self._texts(range_.key, read)
            else:
                sessions.add(name)
            lost = (each for each in read if each.text not in texts.get(each.id, ""))
            messages.update((name, each.id) for each in lost)
        return DeletedSources(frozenset(sessions), frozenset(messages)) if messages else None

    async def still_exists(self, key: SessionKey, began: float) -> bool:
        """Whether there is still the session that was created then (Unix seconds)."""
        session = await self.history.session(key)
        return session is not None and session.created_at == began

    async def _texts(self, key: SessionKey, read: Sequence[UserMessage]) -> dict[str, str]:
        """The present texts of messages, by id."""
        ids, last = {each.id for each in read}, read[-1].seq
        texts: dict[str, str] = {}
        async with aclosing(self._messages(key, KEPT_STATES, read[0].seq - 1)) as messages:
            async for message in messages:
                if message.seq > last:
                    break
                if message.card.id in ids:
                    texts[message.card.id] = await asyncio.to_thread(self._text, message)
        return texts

    async def _unread_messages(
        self, key: SessionKey, mark: ReadMark
    ) -> AsyncGenerator[Message, None]:
        """The user's messages after a mark."""
        async with aclosing(self._messages(key, READ_STATES, mark.seq)) as messages:
            async for message in messages:
                if _is_readable(message, mark):
                    yield message

    async def _messages(
        self, key: SessionKey, states: Collection[State], begin: int
    ) -> AsyncGenerator[Message, None]:
        """The messages after seq ``begin``."""
        after: int | None = begin
        while after is not None:
            page = await self.history.messages(key, states, after, PAGE)
            for message in page.items:
                yield message
            after = int(page.after) if page.after is not None else None

    async def _pieces_of(self, unread: Unread, max_tokens: int) -> AsyncGenerator[Piece, None]:
        context, mark = unread.context, unread.mark
        async with aclosing(self._unread_messages(context.key, mark)) as messages:
            async for message in messages:
                for part in await asyncio.to_thread(
                    self._pieces, context, message, mark, max_tokens
                ):
                    yield part
                    mark = part.mark_after

    def _pieces(
        self, context: LearningContext, message: Message, mark: ReadMark, max_tokens: int
    ) -> list[Piece]:
        card, text = message.card, self._text(message)
        if not text.strip():
            return []
        user_message = UserMessage(
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
        rest = part_of(user_message, read, len(text)) if read else user_message
        if card.tokens <= max_tokens and len(rest.text) <= MAX_PIECE_CHARACTERS:
            return [Piece(rest, card.tokens, _mark_after(rest, mark, message, None))]
        return [
            Piece(part, tokens, _mark_after(part, mark, message, _end_in(read + end, text)))
            for part, tokens, end in split_message(rest, max_tokens, self.count)
        ]

    def _text(self, message: Message) -> str:
        return without_captions(self.text_of(message.wire))


def _may_open(unread: Unread, heads: Sequence[Head]) -> bool:
    """Whether this session may have the next piece, and may be opened."""
    return not heads or (len(heads) < MAX_OPEN and unread.first <= heads[0][0])


async def _push(
    heads: list[Head], number: int, unread: Unread, rest: AsyncGenerator[Piece, None], at: float
) -> None:
    """Push the next piece of a session onto the heap; its time is at least ``at``, that of the
    piece before it."""
    following = await anext(rest, None)
    if following is not None:
        when = max(at, following.message.at)
        heappush(heads, (when, number, SessionPiece(unread, following), rest))


def _fits(taken: Sequence[SessionPiece], part: SessionPiece, max_tokens: int) -> bool:
    return sum(each.piece.tokens for each in taken) + part.piece.tokens <= max_tokens


def _batch(taken: Sequence[SessionPiece], versions: dict[SessionKey, int]) -> Batch:
    """The batch of these pieces; counts up the mark versions of its sessions."""
    then = {each.unread.context.key: each.piece.mark_after for each in taken}
    ranges = tuple(SessionRange(key, mark, versions[key]) for key, mark in then.items())
    versions.update({key: versions[key] + 1 for key in then})
    context = taken[0].unread.context
    return Batch(
        owner=context.owner,
        settings=context.settings,
        messages=tuple(each.piece.message for each in taken),
        model=context.model,
        ranges=ranges,
        since=context.since,
    )


def _is_readable(message: Message, mark: ReadMark) -> bool:
    card = message.card
    theirs = card.role == "user" and card.origin in ("request", "import")
    return theirs and not card.blank and card.exchange not in mark.without


def _end_in(end: int, text: str) -> int | None:
    """The end of a piece in its text, None if it is the end of the text."""
    return end if end < len(text) else None


def _mark_after(part: UserMessage, mark: ReadMark, message: Message, end: int | None) -> ReadMark:
    """The mark after a piece that ends at offset ``end`` of its message, None for its end."""
    dated = day_after(part)
    if end is None:
        return replace(mark, seq=message.seq, message="", offset=0, dated=dated)
    return replace(mark, seq=message.seq - 1, message=part.id, offset=end, dated=dated)
