"""What the memory API is made of: the parts it is given, and the little it knows of each.

The domain's own types are used as they are; of HTTP's callers and of the chat format it knows only
the protocols here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

from proxy.chat.message import ChatMessage
from proxy.learning.learned import Learned
from proxy.learning.prompt_cards import Block
from proxy.memory.erasure import steady_now
from proxy.memory.items import Items
from proxy.memory.locks import Locks
from proxy.memory.model import Due, Injection, SessionKey
from proxy.memory.recording.commit import Count
from proxy.memory.recording.spool import Spool
from proxy.memory.usage import Meter
from proxy.memory_api.erasure.eraser import Eraser
from proxy.memory_api.overview.counts import Counted
from proxy.memory_api.overview.shared import Shared
from proxy.memory_api.shapes.overview import Stats
from proxy.memory_api.threads import TenantThreads, Threads
from proxy.recall.recaller import RecallAdmin
from proxy.recall.results import RecallHit
from proxy.settings import Settings
from proxy.telemetry import Telemetry
from proxy.tenancy import Tenancy
from proxy.wire.limits import ByteBudgets


class Preview(Protocol):
    """The messages of a request as they would be sent, and what memory did for it.

    ``tokens`` counts all ``messages``; ``injection`` is what would be recorded of it.
    """

    @property
    def messages(self) -> tuple[bytes, ...]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def injection(self) -> Injection: ...
    @property
    def count(self) -> int: ...
    @property
    def recalled(self) -> tuple[RecallHit, ...]: ...
    @property
    def known(self) -> tuple[Block, ...]: ...
    @property
    def summary(self) -> str | None: ...
    @property
    def rewritten(self) -> str | None: ...


Previewer = Callable[[SessionKey, bytes, str, str | None], Awaitable[Preview | None]]
"""Previews a request's body in a session under a profile ("" is the default one) as a user's,
without a trace.

None: this is no request with messages.  Raises ProxyError 400 ``unknown_profile`` and 503
``memory_unavailable``.
"""


class ReadMessage(Protocol):
    """Reads a message's JSON; None if it is no object.

    ``limit``: bytes of inline media from which on a placeholder is recorded instead.
    """

    def __call__(self, raw: bytes, limit: int, /) -> ChatMessage | None: ...


class Patient(NamedTuple):
    """The same store and what is learned in it, with more time than a chat has: for what asks so
    often, erasing and importing, that one late answer must not end it."""

    store: Counted
    learned: Learned


@dataclass(frozen=True)
class Api:
    """Everything that health, metrics and the memory API need.

    ``on_recorded`` is to be told of each session that was written to, ``on_edited`` of messages
    that have other words now, by seq.  ``due_after_import`` gives
    the work that an import asks for, by the session's user and the time (Unix seconds).
    ``counter`` gives the token count for a model, ``counters`` says which tables it uses,
    by the models' encodings;
    ``count_text`` gives the tokens of a text.
    ``rooms`` is what all requests have to hold bodies and answers in.
    ``failing_sessions`` gives the number of sessions that cannot be loaded whole or
    replayed in time; ``is_losing`` says whether exchanges were lost lately.
    """

    settings: Settings
    telemetry: Telemetry
    store: Counted
    spool: Spool
    tenancy: Tenancy
    preview: Previewer
    recall_admin: RecallAdmin
    on_recorded: Callable[[SessionKey], None]
    on_edited: Callable[[SessionKey, tuple[int, ...]], None]
    due_after_import: Callable[[str | None, float], tuple[Due, ...]]
    read_message: ReadMessage
    counter: Callable[[str | None], Count]
    counters: Callable[[], Mapping[str, str]]
    count_text: Callable[[str], int]
    items: Items
    meter: Meter
    learned: Learned
    patient: Patient
    rooms: ByteBudgets
    failing_sessions: Callable[[], int] = lambda: 0
    is_losing: Callable[[], bool] = lambda: False

    async def reach(self, tenant: str) -> None:
        """Find a store that is away before it is asked with patience.  Raises StoreError."""
        await self.store.peek(SessionKey(tenant, ""))

    @cached_property
    def eraser(self) -> Eraser:
        """One for all requests: it lets nothing be erased twice at the same time."""
        return Eraser(self.patient.store, self.spool, self.patient.learned, steady_now)

    @cached_property
    def large_fork(self) -> asyncio.Lock:
        """Held while a large session is forked: all of it is in memory."""
        return asyncio.Lock()

    @cached_property
    def large_imports(self) -> Locks[str]:
        """A tenant's is held while a large conversation of it is imported, for the same reason."""
        return Locks()

    @cached_property
    def statistics(self) -> WeakValueDictionary[str, Shared[Stats]]:
        """By tenant, while somebody waits for them."""
        return WeakValueDictionary()

    @cached_property
    def editing(self) -> TenantThreads:
        return TenantThreads("edit")

    @cached_property
    def searching(self) -> TenantThreads:
        return TenantThreads("search")

    @cached_property
    def reading(self) -> Threads:
        return Threads("import")
