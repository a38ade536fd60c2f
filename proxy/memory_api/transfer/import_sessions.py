"""Stores the parts of an import: sessions, conversations, items and notes."""

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

MAX_REMEMBERED = 10_000
"""Sessions and people of an import that are remembered at a time: a file may have any number."""

LARGE = 2_000
"""Messages of a large conversation; converting takes a kilobyte and more for each."""

UNNAMED = "has memories that do not say whose they are, in visible ASCII: name the person, ?user="

ERASED = "what was erased while it was imported is not brought back, and counts as skipped"

ATTEMPTS = 4
"""Attempts to store a session: a large one may take longer than the store's timeout."""


class ImportCounts(msgspec.Struct):
    """What was imported, and what was skipped because it existed."""

    sessions: int = 0
    messages: int = 0
    exchanges: int = 0
    memories: int = 0
    skipped_sessions: int = 0
    skipped_memories: int = 0


class Importer:
    """One import of a tenant.  ``strict``: an existing session is an error.

    ``options`` are for conversations of other programs.  What is erased after the import began is
    not restored.  Methods raise StoreError, ProxyError and InvalidFile.
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
        self._note_importer = NoteImporter(api.settings.memory.facts, options.now)
        self._api, self._store, self._tenant = api, api.long_timeout.store, tenant
        self._options, self._strict = options, strict
        self._item_importer = ItemImporter(api.long_timeout.store, api.long_timeout.learned)
        self._conversations = 0
        self._sessions_with_work: dict[SessionKey, str | None] = {}
        """Imported sessions whose background work is not queued yet, with their users."""
        self._unmarked_people: set[str] = set()
        """People whose erasure mark was removed."""
        self._rechecked_people: set[str] = set()
        """People whose sessions recall will index again."""
        self._people_without_card: set[str] = set()
        """People whose cards of facts have to be written again."""
        self._user_in_file: str | None = None
        """The last user that the file named."""
        self._counted_sessions: set[str] = set()
        """Sessions counted in a dry run."""
        self.counts = ImportCounts()

    async def take(self, piece: ImportedPart) -> None:
        if isinstance(piece, Items):
            await self._import_items(piece)
        elif isinstance(piece, ImportedSession):
            await self._import_session(piece)
        elif isinstance(piece, Notes):
            await self._import_notes(piece)
        else:
            await self._import_conversation(piece)

    async def end(self) -> None:
        """Write cards and queue background work, once all learned items have been imported."""
        for person in tuple(self._people_without_card):
            if not await self._is_erased(Subject(self._tenant, person)):
                with _busy_as_error():
                    await self._item_importer.remake_card(
                        ItemOwner(self._tenant, person), self._began
                    )
            self._people_without_card.discard(person)
        now = time.time()
        for key, user in self._sessions_with_work.items():
            for due in self._api.due_after_import(user, now):
                await self._store.enqueue(key, due)
        self._sessions_with_work.clear()

    async def _import_conversation(self, conversation: Conversation) -> None:
        self._conversations += 1
        if self._options.session and self._conversations > 1:
            raise InvalidFile("has more than one conversation, and ?session= names only one")
        options = replace(self._options, user=self._user_of(conversation.user))
        async with self._turn(conversation):
            try:
                session = await self._reading.run(partial(_session_of, conversation, options))
            except ValueError as error:
                raise InvalidFile(f"has {error}") from None
            await self._import_session(session)

    def _turn(self, conversation: Conversation) -> AbstractAsyncContextManager[None]:
        """A tenant's large conversations are converted one at a time, which takes much memory."""
        if len(conversation.messages) <= LARGE:
            return nullcontext()
        return self._api.large_imports.of(self._tenant)

    def _user_of(self, user_in_part: str | None) -> str | None:
        """The user: that of the request, else of the file.  Raises InvalidFile if the request names
        one and the file two."""
        if self._options.user and user_in_part and self._user_in_file not in (None, user_in_part):
            raise InvalidFile("is of more than one person, and ?user= names only one")
        self._user_in_file = user_in_part or self._user_in_file
        return self._options.user or user_in_part

    async def _import_notes(self, notes: Notes) -> None:
        if self._options.session:
            raise InvalidFile("has memories and no conversation, and ?session= names one")
        user = self._user_of(notes.user)
        if user is None or not is_id(user):
            raise InvalidFile(UNNAMED)
        try:
            items = await self._reading.run(partial(self._note_importer.items, user, notes.notes))
        except ValueError as error:
            raise InvalidFile(f"has {error}") from None
        before = self.counts.memories
        await self._import_items(Items(user, items))
        if self.counts.memories > before and not self._dry_run:
            self._people_without_card.add(user)
            if len(self._people_without_card) >= MAX_REMEMBERED:
                await self.end()

    async def _would_import(self, session: str) -> bool:
        """Whether it would be imported; a dry run remembers it."""
        key = SessionKey(self._tenant, session)
        if session in self._counted_sessions or await self._store.session(key) is not None:
            return False
        _remember(session, self._counted_sessions)
        return True

    async def _import_session(self, session: ImportedSession) -> None:
        archived = session.archived
        session_info, key = archived.session, SessionKey(self._tenant, archived.session.id)
        if self._dry_run:
            return (
                self._count(archived)
                if await self._would_import(session_info.id)
                else self._skip_existing(session_info.id)
            )
        if session_info.user:
            await self._recheck_sessions(session_info.user)
        if self._api.spool.has_waiting(key) or not await self._restore(key, archived):
            return await self._skip_session(session_info)
        self._count(archived)
        await self._store.unmark(Subject(self._tenant, session=session_info.id), self._began)
        if session_info.user:
            await self._lift_erasure(session_info.user)
        await self._dismiss(owner_of(key, session_info.user), session.dismissed)
        self._api.on_recorded(key)
        await self._queue_work(key, session_info.user)

    def _count(self, archived: SessionArchive) -> None:
        self.counts.sessions += 1
        self.counts.messages += len(archived.lines)
        self.counts.exchanges += len(archived.exchanges)

    async def _queue_work(self, key: SessionKey, user: str | None) -> None:
        """Remember a session that needs background work; queue that of very many at once."""
        if not self._api.due_after_import(user, time.time()):
            return
        self._sessions_with_work[key] = user
        if len(self._sessions_with_work) >= MAX_REMEMBERED:
            await self.end()

    async def _skip_session(self, session: Session) -> None:
        users = [Subject(self._tenant, session.user)] if session.user else []
        if await self._is_erased(Subject(self._tenant, session=session.id), *users):
            self.counts.skipped_sessions += 1
        else:
            self._skip_existing(session.id)

    async def _is_erased(self, *subjects: Subject) -> bool:
        """Whether one of these was erased during the import; adds a warning if so."""
        erased = await self._store.is_erased(subjects, self._began)
        if erased:
            self._warnings.add(ERASED)
        return erased

    def _skip_existing(self, session: str) -> None:
        if self._strict:
            raise ProxyError(409, "session_exists", f'The session "{session}" is there already.')
        self.counts.skipped_sessions += 1

    async def _restore(self, key: SessionKey, archived: SessionArchive) -> bool:
        """Store a session, and again after timeouts; False if another one exists.

        A slow store may have stored it in an earlier attempt.  It is called again all the same,
        since that attempt may be incomplete.
        """
        timed_out = False
        for _ in range(ATTEMPTS - 1):
            with suppress(StoreTimeout):
                is_new = await self._store.restore(key, archived, self._began)
                # An attempt that timed out may have succeeded before this one.
                return is_new or (timed_out and await self._is_restored(key, archived))
            timed_out = True
        is_new = await self._store.restore(key, archived, self._began)
        return is_new or await self._is_restored(key, archived)

    async def _is_restored(self, key: SessionKey, archived: SessionArchive) -> bool:
        stored, imported = await self._store.session(key), archived.session
        if stored is None:
            return False
        same = (stored.user, stored.end, stored.created_at, stored.last_active_at)
        return same == (imported.user, imported.end, imported.created_at, imported.last_active_at)

    async def _import_items(self, items: Items) -> None:
        item_owner = ItemOwner(self._tenant, items.user)
        try:
            if self._dry_run:
                return await self._count_items(item_owner, items)
            with _busy_as_error():
                imported, skipped = await self._item_importer.adopt(
                    item_owner, items.items, self._began
                )
        except ValueError as error:
            raise InvalidFile(f"has {error}") from None
        self.counts.memories += imported
        self.counts.skipped_memories += skipped
        if not items.user or await self._is_erased(Subject(self._tenant, items.user)):
            return
        await self._dismiss(Owner(self._tenant, user=items.user), items.dismissed)
        if imported:
            await self._lift_erasure(items.user)

    async def _count_items(self, item_owner: ItemOwner, items: Items) -> None:
        """Count what would be imported.  Raises ValueError for invalid items."""
        await self._item_importer.check(item_owner, items.items)
        existing = await self._item_importer.count_existing(item_owner, items.items)
        self.counts.memories += len(items.items) - existing
        self.counts.skipped_memories += existing

    async def _lift_erasure(self, user: str) -> None:
        if user not in self._unmarked_people:
            _remember(user, self._unmarked_people)
            await self._store.unmark(Subject(self._tenant, user), self._began)

    async def _recheck_sessions(self, user: str) -> None:
        """Before importing: if it were interrupted, recall would never index so old a session."""
        if user not in self._rechecked_people:
            _remember(user, self._rechecked_people)
            await self._api.recall_admin.recheck_sessions(Owner(self._tenant, user=user))

    async def _dismiss(self, owner: Owner, ids: tuple[str, ...]) -> None:
        if not ids:
            return
        dismissed = set(await self._api.recall_admin.dismissed(owner))
        new = [id for id in ids if id not in dismissed]
        if new:
            await self._api.recall_admin.dismiss(owner, *new)


@contextmanager
def _busy_as_error() -> Iterator[None]:
    try:
        yield
    except Busy:
        raise memory_busy() from None


def _session_of(conversation: Conversation, options: ImportOptions) -> ImportedSession:
    """Raises ValueError for a conversation that is no valid session."""
    session = to_session(conversation, options)
    check_session(session.archived)
    return session


def _remember(name: str, known: set[str]) -> None:
    """Remember a name; if there are too many, forget the others, for which repeating the work is
    harmless."""
    if len(known) >= MAX_REMEMBERED:
        known.clear()
    known.add(name)
