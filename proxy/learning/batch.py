"""Batches of a user's messages that a feature has not read yet, and how far it has read.

A batch has only the user's own messages: no answers, tool results, system messages or injected
memory.  Quoted and pasted text in a message is marked as such.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from proxy.learning.collection import delete_change, put_change
from proxy.learning.evidence import DeletedSources, UserMessage
from proxy.learning.extract import KindModel
from proxy.memory.archive import Archive, Session
from proxy.memory.history.reading import WHOLE_LOG
from proxy.memory.items import PEOPLE, Change, Item, ItemOwner, Items, Place
from proxy.memory.model import Entry, SessionKey
from proxy.memory.store import Memory
from proxy.recall.own_words import BLANK
from proxy.settings import ProfileSettings


class History(Memory, Archive, Protocol):
    """What learning reads of a store."""


class AnsweredQuestion(msgspec.Struct, frozen=True):
    """A question of the user's and the answer to it; times are Unix seconds."""

    session: str
    exchange: str
    message: str
    """The answer's id."""
    question: str
    answer: str
    at: float


class Exchanges(msgspec.Struct, frozen=True):
    """Reads history; ``text_of`` gives the text of a message's JSON, without media."""

    history: History
    text_of: Callable[[bytes], str]

    async def answered_question(self, key: SessionKey, message: str) -> AnsweredQuestion | None:
        """An answer with its question; None unless both are text and in the active history.  Raises
        StoreError."""
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
        return AnsweredQuestion(
            key.session, card.exchange, card.id, question, answer, card.created_at
        )

    async def texts(self, key: SessionKey, ids: Collection[str]) -> dict[str, str]:
        """The texts of messages by id, without those that do not exist.  Raises StoreError."""
        bodies = await self.history.bodies(key, ids)
        return {id: self.text_of(body).strip() for id, body in bodies.items()}


def question_of(log: Sequence[Entry], answer: Entry) -> Entry | None:
    """The user message that begins the answer's turn."""
    turn = answer.position.turn
    entries = (entry for entry in log if entry.position.turn == turn)
    return next((entry for entry in entries if entry.card.role == "user"), None)


READ_MARKS = "learned"
"""Label of the namespace of read marks."""


class ReadMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a feature has read a session: up to ``seq``, and ``offset`` characters of the next
    message, whose id is ``message``.

    ``dated`` is the last day (YYYY-MM-DD) in a heading of the text so far, "" without one; it is
    the day of the text that follows.  ``began`` is when the session was created: one that is
    deleted and created again is unread.  ``without`` are ids of exchanges to be skipped.
    """

    seq: int = 0
    message: str = ""
    offset: int = 0
    dated: str = ""
    began: float = 0.0
    without: tuple[str, ...] = ()

    def restarted(self) -> ReadMark:
        """A mark to read the same session from its beginning."""
        return ReadMark(began=self.began, without=self.without)


def mark_place(user: str, feature: str, session: str) -> Place:
    return Place((PEOPLE, user, READ_MARKS, feature), session)


def read_mark_from(item: Item | None, began: float) -> ReadMark:
    """The mark in an item, an empty one if that is of an earlier session with the same id.

    ``began`` is when the session was created (Unix seconds).
    """
    mark = msgspec.json.decode(item.value, type=ReadMark) if item else ReadMark()
    return mark if mark.began == began else ReadMark(began=began)


class SessionRange(NamedTuple):
    """A batch's part of one session: ``mark_after`` is the mark when that has been read;
    ``mark_version`` is the version of the stored mark that it replaces."""

    key: SessionKey
    mark_after: ReadMark
    mark_version: int


class Batch(msgspec.Struct, frozen=True):
    """Messages of a person that one feature has not read, oldest first, of any of their sessions,
    at most as many as fit into one request.

    ``model`` is the one that the sessions use; ``ranges`` has one entry for each session.  The
    messages were read after ``since`` (Unix seconds): if the person was erased then or later,
    what is learned from them is not stored.
    """

    owner: ItemOwner
    settings: ProfileSettings
    messages: tuple[UserMessage, ...]
    model: str | None
    ranges: tuple[SessionRange, ...]
    since: float | None = None

    @property
    def tenant(self) -> str:
        return self.owner.tenant

    @property
    def has_own_words(self) -> bool:
        """Whether any of its text is not pasted."""
        return any(message.own_text.strip(f"{BLANK} \n\t") for message in self.messages)

    async def store(self, items: Items, feature: str, learned: Sequence[Change] = ()) -> bool:
        """Make the changes of what was learned and mark the batch as read, in one step.

        False, and nothing is changed, if others have changed the same.  Raises StoreError.
        """
        marks = [self._mark(feature, range_) for range_ in self.ranges]
        return await items.change_items(self.owner, [*marks, *learned], self.since)

    def _mark(self, feature: str, range_: SessionRange) -> Change:
        place = mark_place(self.owner.user, feature, range_.key.session)
        return put_change(place, range_.mark_after, range_.mark_version)

    async def is_unread(self, items: Items, feature: str) -> bool:
        """Whether all its marks are still those that it was read at.  Raises StoreError."""
        places = {mark_place(self.owner.user, feature, x.key.session): x for x in self.ranges}
        found = await items.items_at(self.owner, list(places))
        versions = {place: item.version for place, item in found.items()}
        return all(versions.get(place, 0) == each.mark_version for place, each in places.items())


ATTEMPTS = 5
"""How often storing what was learned is tried while others change the same."""


class Extractor(Protocol):
    """Learns one kind of memory from batches."""

    @property
    def model(self) -> KindModel: ...

    async def learn(self, batch: Batch) -> bool:
        """Learn, and store it with the batch's marks in one step.

        False if others have changed the same meanwhile: call it again, which reads the store anew.
        Raises CompletionError and StoreError, with nothing changed.
        """
        ...

    async def take_back(self, owner: ItemOwner, gone: DeletedSources) -> None:
        """Undo what was learned from messages that were deleted while it was learned.  Raises
        StoreError and Busy."""
        ...


class LearningContext(msgspec.Struct, frozen=True):
    """A session that learning was queued for.  ``profile`` is a name, "" the default profile's.

    All of it was read after ``since`` (Unix seconds).
    """

    session: Session
    key: SessionKey
    profile: str
    settings: ProfileSettings
    model: str | None
    since: float | None = None

    @property
    def tenant(self) -> str:
        return self.key.tenant

    @property
    def owner(self) -> ItemOwner:
        """The session's user, as the owner of what is learned."""
        return ItemOwner(self.key.tenant, self.session.user or "")

    @property
    def request_group(self) -> tuple[str, str | None]:
        """Sessions with the same value may share a request: same settings, same model."""
        return self.profile, self.model


class Improver(Protocol):
    """Improves something that is stored already, when learning runs for a session, also for one
    without a user."""

    @property
    def model(self) -> KindModel: ...

    async def subject(self, context: LearningContext) -> str | None:
        """The id of what is to be improved now, None if nothing is.  Raises StoreError."""
        ...

    async def improve(self, context: LearningContext) -> bool:
        """Improve it; False if it is to be tried again.  Raises CompletionError and StoreError."""
        ...


async def copy_read_marks(
    items: Items, features: Sequence[str], old: Session, new: Session, tenant: str
) -> None:
    """Copy a session's marks to its copy, so that nothing is learned twice.  Raises StoreError."""
    user = old.user or ""
    if not user:
        return
    places = {mark_place(user, feature, old.id): feature for feature in features}
    found = await items.items_at(ItemOwner(tenant, user), list(places))
    changes = [_mark_copy(places[place], user, item, old, new) for place, item in found.items()]
    if changes:
        await items.change_items(ItemOwner(tenant, user), changes)


def _mark_copy(feature: str, user: str, item: Item, old: Session, new: Session) -> Change:
    read = read_mark_from(item, old.created_at)
    then = replace(read, seq=min(read.seq, new.end), began=new.created_at)
    return put_change(mark_place(user, feature, new.id), then, None)


SWEPT_AT_ONCE = 20
"""Marks that are checked after a person has been read, more than one session adds."""

GRACE = 86_400.0
"""Seconds for which a mark is kept in any case: an import may still bring its session."""

MAX_REMEMBERED = 10_000
"""People whose position in the sweep a process remembers."""


class MarkSweep:
    """Checks the marks of a person, a page at a time, and then from the beginning again.

    A store does not report which sessions have expired, and the mark of a deleted one must stay as
    long as a job may be reading it.
    """

    def __init__(self) -> None:
        self._reached: LRUCache[ItemOwner, Place] = LRUCache(MAX_REMEMBERED)

    async def step(self, items: Items, history: History, owner: ItemOwner, now: float) -> None:
        """Check the next page of a person's marks.  Raises StoreError."""
        after = self._reached.pop(owner, None)
        page = await items.items(owner, (PEOPLE, owner.user, READ_MARKS), after, SWEPT_AT_ONCE)
        old = (item for item in page.items if item.updated_at < now - GRACE)
        keys = ((item, SessionKey(owner.tenant, item.key)) for item in old)
        gone = [item for item, key in keys if await history.session(key) is None]
        if gone:
            await items.change_items(
                owner, [delete_change(each.place, each.version) for each in gone]
            )
        if page.after is not None:
            self._reached[owner] = page.items[-1].place
