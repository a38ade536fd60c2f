"""What is learned from: what a person has said in a session beyond what was read before, in
batches.

Only the user's own messages are ever in a batch: no answers, no tools' results, no system
messages, no injected memory.  What a message quotes or has pasted into it is marked as such.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from proxy.learning.evidence import Said
from proxy.memory.archive import Message, Page, Session
from proxy.memory.history.reading import WHOLE_LOG
from proxy.memory.items import PEOPLE, Change, Item, ItemOwner, Items, Place
from proxy.memory.model import Ask, Entry, Exchange, SessionKey, Snapshot, State
from proxy.recall.own_words import Span, pasted
from proxy.settings import ProfileSettings


class History(Protocol):
    """Implemented by every store.  All methods raise StoreError."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot: ...

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]: ...

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None: ...


@dataclass(frozen=True, slots=True)
class Answered:
    """A question of the user's and the answer to it; times are Unix seconds."""

    session: str
    exchange: str
    message: str
    """The answer's id."""
    question: str
    answer: str
    at: float


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Reads history; ``text_of`` gives the text of a message's JSON, without media."""

    history: History
    text_of: Callable[[bytes], str]

    async def answered(self, key: SessionKey, message: str) -> Answered | None:
        """What this answer answers; None unless both are text and in the active history.

        Raises StoreError.
        """
        log = (await self.history.load(key, WHOLE_LOG)).log
        found = next((entry for entry in log if entry.card.id == message), None)
        asked = question_of(log, found) if found and found.card.role == "assistant" else None
        if found is None or asked is None:
            return None
        texts = await self.texts(key, [asked.card.id, message])
        question, answer = texts.get(asked.card.id, ""), texts.get(message, "")
        if not question or not answer:
            return None
        card = found.card
        return Answered(key.session, card.exchange, card.id, question, answer, card.created_at)

    async def texts(self, key: SessionKey, ids: Collection[str]) -> dict[str, str]:
        """The texts of messages that are there.  Raises StoreError."""
        bodies = await self.history.bodies(key, ids)
        return {id: self.text_of(body).strip() for id, body in bodies.items()}


def question_of(log: Sequence[Entry], answer: Entry) -> Entry | None:
    """The user's message that a turn began with."""
    turn = answer.position.turn
    entries = (entry for entry in log if entry.position.turn == turn)
    return next((entry for entry in entries if entry.card.role == "user"), None)


READ = "learned"
"""Namespace of the marks that say how far a feature has read a session."""

CHARACTERS = 4
"""Characters of a token, at most, in nearly all texts."""

LONGEST = 60_000
"""Characters of a piece, at most, however few tokens they are."""

_ENDS = ("\n\n", "\n", "。", ". ", "! ", "? ", " ")
"""Where a text is cut, best first: after a paragraph, a line, a sentence, a word."""

PAGE = 20
"""Messages that are read at once."""

SAID: tuple[State, ...] = ("active",)


class ReadMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a session was read: up to ``seq``, and ``offset`` characters of the next message.

    ``message`` is that one's id.  ``began`` is when the session did: one that is deleted and begun
    anew has not been read.  ``without`` are exchanges that nothing is learned from any more.
    """

    seq: int = 0
    message: str = ""
    offset: int = 0
    began: float = 0.0
    without: tuple[str, ...] = ()


def mark_place(user: str, feature: str, session: str) -> Place:
    """Where the mark of a feature is kept."""
    return Place((PEOPLE, user, READ, feature), session)


def mark_of(item: Item | None, began: float) -> ReadMark:
    """The mark of a session that began then."""
    mark = msgspec.json.decode(item.value, type=ReadMark) if item else ReadMark()
    return mark if mark.began == began else ReadMark(began=began)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one feature has not read yet, oldest first, not more than fits into one request.

    ``model`` is the one that the session uses.  ``then`` is the mark when this has been read,
    ``read`` the version of the mark before it.  It was read after ``since`` (Unix seconds): what is
    learned from it is not kept if the person was erased then or later.
    """

    shelf: ItemOwner
    key: SessionKey
    settings: ProfileSettings
    said: tuple[Said, ...]
    model: str | None
    then: ReadMark
    read: int = 0
    since: float | None = None

    def mark(self, feature: str) -> Change:
        """To be made together with what was learned: read once, whatever happens."""
        namespace, key = mark_place(self.shelf.user, feature, self.key.session)
        value = msgspec.json.encode(self.then)
        return Change(namespace=namespace, key=key, value=value, after=self.read)


class Model(Protocol):
    """The model that writes one kind of memory; see :class:`proxy.learning.extract.KindModel`."""

    @property
    def feature(self) -> str: ...
    @property
    def wants(self) -> Callable[[ProfileSettings], bool]: ...

    def room(self, profile: ProfileSettings) -> int: ...
    def ready(self, tenant: str, profile: ProfileSettings) -> bool: ...


class Extractor(Protocol):
    """Learns one thing from batches."""

    @property
    def model(self) -> Model: ...

    async def learn(self, batch: Batch) -> bool:
        """Learn, and store it with the batch's mark in one step.

        False: others have changed the same meanwhile; to be tried again from the store's present
        state.  Raises CompletionError and StoreError, with nothing changed.
        """
        ...


@dataclass(frozen=True, slots=True)
class LearningContext:
    """A session that asks for learning.  ``profile`` is the name, "" the default one's.

    Everything about it is read after ``since`` (Unix seconds).
    """

    session: Session
    key: SessionKey
    profile: str
    settings: ProfileSettings
    model: str | None
    since: float | None = None


class Improver(Protocol):
    """Makes something of what is kept already, when a session asks for learning.

    Sessions without a user ask as well.
    """

    @property
    def model(self) -> Model: ...

    async def improve(self, context: LearningContext) -> bool:
        """False: to be tried again.  Raises CompletionError and StoreError."""
        ...


def cut(said: Said, room: int, count: Callable[[str], int]) -> Iterator[tuple[Said, int, int]]:
    """The pieces of a message: each with its tokens, and where in the message it ends.

    A piece has at most ``room`` tokens, and ends with a paragraph where it can; none is lost.
    """
    start = 0
    while start < len(said.text):
        end, tokens = _end(said.text, start, room, count)
        yield piece(said, start, end), tokens, end
        start = end


def piece(said: Said, start: int, end: int) -> Said:
    """A part of a message, in which what is pasted stays so."""
    pasted = (
        Span(max(span.start, start) - start, min(span.end, end) - start)
        for span in said.pasted
        if span.start < end and span.end > start
    )
    return Said(
        message=said.message,
        exchange=said.exchange,
        seq=said.seq,
        text=said.text[start:end],
        at=said.at,
        pasted=tuple(pasted),
    )


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


@dataclass(frozen=True, slots=True)
class Reader:
    """How messages are read.

    ``text_of`` gives the text of a message's JSON, without media; ``count`` the tokens of a text.
    """

    history: BatchHistory
    text_of: Callable[[bytes], str]
    count: Callable[[str], int]

    async def batches(
        self, context: LearningContext, mark: ReadMark, version: int, room: int
    ) -> AsyncGenerator[Batch, None]:
        """What the user said behind a mark, which has this version, oldest first.

        Each batch takes for granted that the one before has been learned.
        """
        taken: list[Piece] = []
        async for part in self._behind(context.key, mark, room):
            if taken and sum(each.tokens for each in taken) + part.tokens > room:
                yield _batch(context, taken, version)
                taken, version = [], version + 1
            taken.append(part)
        if taken:
            yield _batch(context, taken, version)

    async def _behind(
        self, key: SessionKey, mark: ReadMark, room: int
    ) -> AsyncGenerator[Piece, None]:
        after: int | None = mark.seq
        while after is not None:
            page = await self.history.messages(key, SAID, after, PAGE)
            for message in page.items:
                if _is_said(message, mark):
                    for part in await asyncio.to_thread(self._pieces, message, mark, room):
                        yield part
            after = int(page.after) if page.after is not None else None

    def _pieces(self, message: Message, mark: ReadMark, room: int) -> list[Piece]:
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


def _batch(context: LearningContext, taken: list[Piece], version: int) -> Batch:
    return Batch(
        shelf=ItemOwner(context.key.tenant, context.session.user or ""),
        key=context.key,
        settings=context.settings,
        said=tuple(part.said for part in taken),
        model=context.model,
        then=taken[-1].then,
        read=version,
        since=context.since,
    )


def _is_said(message: Message, mark: ReadMark) -> bool:
    card = message.card
    theirs = card.role == "user" and card.origin in ("request", "import")
    return theirs and not card.blank and card.exchange not in mark.without


def _after(message: Message, mark: ReadMark, end: int, length: int) -> ReadMark:
    if end >= length:
        return ReadMark(seq=message.seq, began=mark.began, without=mark.without)
    return ReadMark(
        seq=message.seq - 1,
        message=message.card.id,
        offset=end,
        began=mark.began,
        without=mark.without,
    )


async def read_on(
    items: Items, features: Sequence[str], old: Session, new: Session, tenant: str
) -> None:
    """Let nothing be learned a second time from the copy of a session.  Raises StoreError."""
    user = old.user or ""
    if not user:
        return
    places = {mark_place(user, feature, old.id): feature for feature in features}
    found = await items.items_at(ItemOwner(tenant, user), list(places))
    changes = [_marking(places[place], user, item, old, new) for place, item in found.items()]
    if changes:
        await items.change_items(ItemOwner(tenant, user), changes)


def _marking(feature: str, user: str, item: Item, old: Session, new: Session) -> Change:
    read = mark_of(item, old.created_at)
    then = replace(read, seq=min(read.seq, new.end), began=new.created_at)
    namespace, key = mark_place(user, feature, new.id)
    return Change(namespace=namespace, key=key, value=msgspec.json.encode(then))
