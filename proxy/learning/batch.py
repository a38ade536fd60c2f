"""What is learned from: what a person has said beyond what was read before, in batches.

Only the user's own messages are ever in a batch: no answers, no tools' results, no system
messages, no injected memory.  What a message quotes or has pasted into it is marked as such.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from proxy.learning.collection import putting
from proxy.learning.evidence import Gone, Said
from proxy.memory.archive import Session
from proxy.memory.history.reading import WHOLE_LOG
from proxy.memory.items import PEOPLE, Change, Item, ItemOwner, Items, Place
from proxy.memory.model import Ask, Entry, Exchange, SessionKey, Snapshot
from proxy.recall.own_words import BLANK
from proxy.settings import ProfileSettings


class History(Protocol):
    """Implemented by every store.  All methods raise StoreError."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot: ...

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]: ...

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None: ...


class Answered(msgspec.Struct, frozen=True):
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


class ReadMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a session was read: up to ``seq``, and ``offset`` characters of the next message.

    ``message`` is that one's id.  ``dated`` is the day that the text so far has named last, above
    other text (YYYY-MM-DD), which holds until it names another; "" where it has named none.
    ``began`` is when the session did: one that is deleted and begun anew has not been read.
    ``without`` are exchanges that nothing is learned from any more.
    """

    seq: int = 0
    message: str = ""
    offset: int = 0
    dated: str = ""
    began: float = 0.0
    without: tuple[str, ...] = ()

    def anew(self) -> ReadMark:
        """The same of a session that is to be read from its beginning."""
        return ReadMark(began=self.began, without=self.without)


def mark_place(user: str, feature: str, session: str) -> Place:
    """Where the mark of a feature is kept."""
    return Place((PEOPLE, user, READ, feature), session)


def mark_of(item: Item | None, began: float) -> ReadMark:
    """The mark of a session that began then."""
    mark = msgspec.json.decode(item.value, type=ReadMark) if item else ReadMark()
    return mark if mark.began == began else ReadMark(began=began)


class Stretch(NamedTuple):
    """How far a batch reads in one session: ``then`` is the mark once that has been read, ``read``
    the version of the mark before it."""

    key: SessionKey
    then: ReadMark
    read: int


class Batch(msgspec.Struct, frozen=True):
    """What one feature has not read yet of a person, oldest first, whatever session it was said in,
    and not more than fits into one request.

    ``model`` is the one that the sessions use; ``stretches`` has each of them once.  It was read
    after ``since`` (Unix seconds): what is learned from it is not kept if the person was erased
    then or later.
    """

    shelf: ItemOwner
    settings: ProfileSettings
    said: tuple[Said, ...]
    model: str | None
    stretches: tuple[Stretch, ...]
    since: float | None = None

    @property
    def tenant(self) -> str:
        return self.shelf.tenant

    @property
    def has_own_words(self) -> bool:
        """Whether there is anything in it that the user has not pasted."""
        return any(said.own.strip(f"{BLANK} \n\t") for said in self.said)

    def marks(self, feature: str) -> list[Change]:
        """To be made together with what was learned: read once, whatever happens."""
        return [self._mark(feature, stretch) for stretch in self.stretches]

    def _mark(self, feature: str, stretch: Stretch) -> Change:
        place = mark_place(self.shelf.user, feature, stretch.key.session)
        return putting(place, stretch.then, stretch.read)

    async def is_unread(self, items: Items, feature: str) -> bool:
        """Is it still one that nobody has learned, or taken back?  Raises StoreError."""
        places = {mark_place(self.shelf.user, feature, x.key.session): x for x in self.stretches}
        found = await items.items_at(self.shelf, list(places))
        versions = {place: item.version for place, item in found.items()}
        return all(versions.get(place, 0) == each.read for place, each in places.items())


class Model(Protocol):
    """The model that writes one kind of memory; see :class:`proxy.learning.extract.KindModel`."""

    @property
    def feature(self) -> str: ...
    @property
    def wants(self) -> Callable[[ProfileSettings], bool]: ...

    def room(self, profile: ProfileSettings) -> int: ...
    def ready(self, tenant: str, profile: ProfileSettings) -> bool: ...


ATTEMPTS = 5
"""How often what was learned is entered into what others have changed meanwhile."""


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

    async def take_back(self, shelf: ItemOwner, gone: Gone) -> None:
        """Undo what was learned from what went while it was read.  Raises StoreError, and Busy."""
        ...


class LearningContext(msgspec.Struct, frozen=True):
    """A session that asks for learning.  ``profile`` is the name, "" the default one's.

    Everything about it is read after ``since`` (Unix seconds).
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
    def shelf(self) -> ItemOwner:
        """The person's, whose session it is."""
        return ItemOwner(self.key.tenant, self.session.user or "")

    @property
    def asks(self) -> tuple[str, str | None]:
        """Whom it asks: sessions with the same settings and model may share a request."""
        return self.profile, self.model


class Improver(Protocol):
    """Makes something of what is kept already, when a session asks for learning.

    Sessions without a user ask as well.
    """

    @property
    def model(self) -> Model: ...

    async def subject(self, context: LearningContext) -> str | None:
        """What of the tenant's is to be made better now; None where it is too early.

        Raises StoreError.
        """
        ...

    async def improve(self, context: LearningContext) -> bool:
        """False: to be tried again.  Raises CompletionError and StoreError."""
        ...


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
    return putting(mark_place(user, feature, new.id), then, None)
