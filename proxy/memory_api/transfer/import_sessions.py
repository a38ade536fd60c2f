"""What an import brings, piece by piece, on its way into memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from proxy.errors import ProxyError, memory_busy
from proxy.learning.collection import Busy
from proxy.memory.archive import Session, SessionArchive
from proxy.memory.erasure import Subject, steady_now
from proxy.memory.ids import is_id
from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreTimeout
from proxy.memory_api.api import Api
from proxy.memory_api.transfer.item_import import ItemImporter
from proxy.memory_api.transfer.memory_conversion import NoteImporter
from proxy.portable.check import check_session
from proxy.portable.session_conversion import ImportOptions, to_session
from proxy.portable.source import (
    Conversation,
    ImportedPart,
    ImportedSession,
    InvalidFile,
    Items,
    Notes,
    Warnings,
)
from proxy.recall.index import Owner, owner_of

T = TypeVar("T")

KNOWN = 10_000
"""Sessions and people of one import that are known at a time: a file may have any number."""

LARGE = 2_000
"""Messages of a conversation; what is made of each takes a kilobyte and more."""

UNNAMED = "has memories that do not say whose they are, in visible ASCII: name the person, ?user="

ERASED = "what was erased while it was imported is not brought back, and counts as skipped"

ATTEMPTS = 4
"""Tries to put a session back: a large one can outlast a store's timeout."""


class ImportCounts(msgspec.Struct):
    """What was put, and what was there already."""

    sessions: int = 0
    messages: int = 0
    exchanges: int = 0
    memories: int = 0
    skipped_sessions: int = 0
    skipped_memories: int = 0


class Importer:
    """One import of a tenant.  ``strict``: a session that is there already ends it.

    ``options`` are those of conversations from elsewhere.  What is erased behind its beginning it
    does not bring back.  Methods raise StoreError, ProxyError and InvalidFile.
    """

    def __init__(
        self,
        api: Api,
        tenant: str,
        options: ImportOptions,
        warnings: Warnings,
        *,
        strict: bool,
        dry_run: bool,
    ) -> None:
        self._reading, self._dry_run = api.reading, dry_run
        self._warnings, self._began = warnings, steady_now()
        self._noting = NoteImporter(api.settings.memory.facts, options.now)
        self._api, self._store, self._tenant = api, api.patient.store, tenant
        self._options, self._strict = options, strict
        self._adopting = ItemImporter(api.patient.store, api.patient.learned)
        self._conversations = 0
        self._brought: dict[SessionKey, str | None] = {}
        """The sessions that were put and ask for work, and whose they are."""
        self._people: set[str] = set()
        """Those for whom the mark of an erasure was lifted."""
        self._announced: set[str] = set()
        """Those whose sessions recall will look at again."""
        self._noted: set[str] = set()
        """Those whose cards have to be made anew."""
        self._named: str | None = None
        """Whose the file says that something is."""
        self._counted: set[str] = set()
        """Sessions that were counted, where nothing is put."""
        self.counts = ImportCounts()

    async def take(self, piece: ImportedPart) -> None:
        if isinstance(piece, Items):
            await self._adopt(piece)
        elif isinstance(piece, ImportedSession):
            await self._put(piece)
        elif isinstance(piece, Notes):
            await self._note(piece)
        else:
            await self._converse(piece)

    async def end(self) -> None:
        """Make cards, and ask for the work on what was brought: now, when all that was learned of
        it is there."""
        for person in tuple(self._noted):
            if not await self._is_erased(Subject(self._tenant, person)):
                with _busy():
                    await self._adopting.remake_card(ItemOwner(self._tenant, person), self._began)
            self._noted.discard(person)
        now = time.time()
        for key, user in self._brought.items():
            for due in self._api.due_after_import(user, now):
                await self._store.enqueue(key, due)
        self._brought.clear()

    async def _converse(self, conversation: Conversation) -> None:
        self._conversations += 1
        if self._options.session and self._conversations > 1:
            raise InvalidFile("has more than one conversation, and ?session= names only one")
        options = replace(self._options, user=self._user_of(conversation.user))
        async with self._turn(conversation):
            try:
                session = await self._reading.run(partial(_session_of, conversation, options))
            except ValueError as error:
                raise InvalidFile(f"has {error}") from None
            await self._put(session)

    def _turn(self, conversation: Conversation) -> AbstractAsyncContextManager[None]:
        """Large ones of a tenant are made one at a time: what is made takes many times the room."""
        if len(conversation.messages) <= LARGE:
            return nullcontext()
        return self._api.large_imports.of(self._tenant)

    def _user_of(self, named: str | None) -> str | None:
        """Who is meant: whom the request names, if the file names no two people, or the file."""
        if self._options.user and named and self._named not in (None, named):
            raise InvalidFile("is of more than one person, and ?user= names only one")
        self._named = named or self._named
        return self._options.user or named

    async def _note(self, notes: Notes) -> None:
        if self._options.session:
            raise InvalidFile("has memories and no conversation, and ?session= names one")
        user = self._user_of(notes.user)
        if user is None or not is_id(user):
            raise InvalidFile(UNNAMED)
        try:
            items = await self._reading.run(partial(self._noting.items, user, notes.notes))
        except ValueError as error:
            raise InvalidFile(f"has {error}") from None
        before = self.counts.memories
        await self._adopt(Items(user, items))
        if self.counts.memories > before and not self._dry_run:
            self._noted.add(user)
            if len(self._noted) >= KNOWN:
                await self.end()

    async def _try(self, session: str) -> bool:
        """Would it be put?"""
        key = SessionKey(self._tenant, session)
        if session in self._counted or await self._store.session(key) is not None:
            return False
        _note(session, self._counted)
        return True

    async def _put(self, session: ImportedSession) -> None:
        archived = session.archived
        head, key = archived.session, SessionKey(self._tenant, archived.session.id)
        if self._dry_run:
            return self._count(archived) if await self._try(head.id) else self._is_there(head.id)
        if head.user:
            await self._announce(head.user)
        if self._api.spool.has_waiting(key) or not await self._restore(key, archived):
            return await self._leave_out(head)
        self._count(archived)
        await self._store.unmark(Subject(self._tenant, session=head.id), self._began)
        if head.user:
            await self._lift(head.user)
        await self._dismiss(owner_of(key, head.user), session.dismissed)
        self._api.on_recorded(key)
        await self._bring(key, head.user)

    def _count(self, archived: SessionArchive) -> None:
        self.counts.sessions += 1
        self.counts.messages += len(archived.lines)
        self.counts.exchanges += len(archived.exchanges)

    async def _bring(self, key: SessionKey, user: str | None) -> None:
        """Note what to ask for; of very many sessions before all is there."""
        if not self._api.due_after_import(user, time.time()):
            return
        self._brought[key] = user
        if len(self._brought) >= KNOWN:
            await self.end()

    async def _leave_out(self, session: Session) -> None:
        whose = [Subject(self._tenant, session.user)] if session.user else []
        if await self._is_erased(Subject(self._tenant, session=session.id), *whose):
            self.counts.skipped_sessions += 1
        else:
            self._is_there(session.id)

    async def _is_erased(self, *subjects: Subject) -> bool:
        """Was one of these erased meanwhile?  Then the answer says so."""
        erased = await self._store.erased(subjects, self._began)
        if erased:
            self._warnings.add(ERASED)
        return erased

    def _is_there(self, session: str) -> None:
        if self._strict:
            raise ProxyError(409, "session_exists", f'The session "{session}" is there already.')
        self.counts.skipped_sessions += 1

    async def _restore(self, key: SessionKey, archived: SessionArchive) -> bool:
        """With patience.  A store that was only slow has it already, and says that it is there;
        it is asked once more all the same, as it may have been cut short at the end."""
        late = False
        for _ in range(ATTEMPTS - 1):
            with suppress(StoreTimeout):
                put = await self._store.restore(key, archived, self._began)
                # An attempt that was late may have gone on until this one had its turn.
                return put or (late and await self._is_done(key, archived))
            late = True
        put = await self._store.restore(key, archived, self._began)
        return put or await self._is_done(key, archived)

    async def _is_done(self, key: SessionKey, archived: SessionArchive) -> bool:
        found, wanted = await self._store.session(key), archived.session
        if found is None:
            return False
        same = (found.user, found.end, found.created_at, found.last_active_at)
        return same == (wanted.user, wanted.end, wanted.created_at, wanted.last_active_at)

    async def _adopt(self, items: Items) -> None:
        item_owner = ItemOwner(self._tenant, items.user)
        try:
            if self._dry_run:
                return await self._try_items(item_owner, items)
            with _busy():
                put, skipped = await self._adopting.adopt(item_owner, items.items, self._began)
        except ValueError as error:
            raise InvalidFile(f"has {error}") from None
        self.counts.memories += put
        self.counts.skipped_memories += skipped
        if not items.user or await self._is_erased(Subject(self._tenant, items.user)):
            return
        await self._dismiss(Owner(self._tenant, user=items.user), items.dismissed)
        if put:
            await self._lift(items.user)

    async def _try_items(self, item_owner: ItemOwner, items: Items) -> None:
        """Count what would be put.  Raises ValueError for what would be refused."""
        await self._adopting.check(item_owner, items.items)
        there = await self._adopting.there(item_owner, items.items)
        self.counts.memories += len(items.items) - there
        self.counts.skipped_memories += there

    async def _lift(self, user: str) -> None:
        if user not in self._people:
            _note(user, self._people)
            await self._store.unmark(Subject(self._tenant, user), self._began)

    async def _announce(self, user: str) -> None:
        """First: were we ended in between, recall would never look at so old a session."""
        if user not in self._announced:
            _note(user, self._announced)
            await self._api.recall_admin.recheck_sessions(Owner(self._tenant, user=user))

    async def _dismiss(self, owner: Owner, ids: tuple[str, ...]) -> None:
        if not ids:
            return
        there = set(await self._api.recall_admin.dismissed(owner))
        new = [one for one in ids if one not in there]
        if new:
            await self._api.recall_admin.dismiss(owner, *new)


@contextmanager
def _busy() -> Iterator[None]:
    try:
        yield
    except Busy:
        raise memory_busy() from None


def _session_of(conversation: Conversation, options: ImportOptions) -> ImportedSession:
    """Raises ValueError for one that cannot be put back."""
    session = to_session(conversation, options)
    check_session(session.archived)
    return session


def _note(user: str, known: set[str]) -> None:
    """Remember a name; of too many the others are forgotten, for whom all is done once more, which
    changes nothing."""
    if len(known) >= KNOWN:
        known.clear()
    known.add(user)
