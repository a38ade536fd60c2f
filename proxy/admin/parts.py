"""What the memory API is made of: the parts it is given, and the little it knows of each.

The domain's own types are used as they are; of HTTP's callers and of the chat format it knows only
the protocols here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from proxy.admin.counting import Counted
from proxy.errors import RawHeaders
from proxy.learning.fact_book import FactBook
from proxy.learning.known import Block
from proxy.learning.learned import Learned
from proxy.memory.items import Items
from proxy.memory.model import Injection, SessionKey
from proxy.memory.spool import Spool
from proxy.memory.transcript import Count, Said
from proxy.memory.usage import Meter
from proxy.memory.work import Due
from proxy.recall.found import Found
from proxy.recall.remembrance import Remembrance
from proxy.settings import Settings
from proxy.telemetry import Telemetry


class Client(Protocol):
    """A client that the configuration names."""

    @property
    def name(self) -> str: ...
    @property
    def profiles(self) -> tuple[str, ...]: ...


class Caller(Protocol):
    """Who calls: ``tenant`` owns the memory, ``client`` where clients are named."""

    @property
    def tenant(self) -> str: ...
    @property
    def client(self) -> Client | None: ...


class Tenants(Protocol):
    """Tells callers apart by their credential."""

    def caller(self, headers: RawHeaders) -> Caller:
        """Raises ProxyError 400 for two different keys, 401 for one that is not known."""
        ...

    def is_admin(self, headers: RawHeaders) -> bool: ...


class Preview(Protocol):
    """The messages of a request as they would be sent, and what memory did for it.

    ``tokens`` counts all ``messages``; ``did`` is what would be recorded of it.
    """

    @property
    def messages(self) -> tuple[bytes, ...]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def did(self) -> Injection: ...
    @property
    def count(self) -> int: ...
    @property
    def recalled(self) -> tuple[Found, ...]: ...
    @property
    def known(self) -> tuple[Block, ...]: ...
    @property
    def summary(self) -> str | None: ...


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

    def __call__(self, raw: bytes, limit: int, /) -> Said | None: ...


@dataclass(frozen=True, slots=True)
class AdminParts:
    """Everything that health, metrics and the memory API need.

    ``on_recorded`` is to be told of each session that was written to, ``on_edited`` of messages
    that have other words now, by seq.  ``due_after_import`` gives
    the work that an import asks for, by the session's user and the time (Unix seconds).
    ``counter`` gives the token count for a model, ``counters`` says which tables it uses,
    by the models' encodings;
    ``count_text`` gives the tokens of a text.
    ``fields`` and ``items`` split a JSON object and list into pieces, bytes untouched, and raise
    ValueError or RecursionError for anything else; so does ``decode``, which gives a JSON text's
    value and refuses one that is nested so deeply that functions which recurse could fail.
    ``troubled`` gives the number of sessions that cannot be loaded whole or
    replayed in time; ``losing`` says whether exchanges were lost lately.
    """

    settings: Settings
    telemetry: Telemetry
    store: Counted
    spool: Spool
    tenants: Tenants
    preview: Previewer
    remembrance: Remembrance
    on_recorded: Callable[[SessionKey], None]
    on_edited: Callable[[SessionKey, tuple[int, ...]], None]
    due_after_import: Callable[[str | None, float], tuple[Due, ...]]
    read_message: ReadMessage
    counter: Callable[[str | None], Count]
    counters: Callable[[], Mapping[str, str]]
    count_text: Callable[[str], int]
    fields: Callable[[bytes], dict[str, bytes]]
    items: Callable[[bytes], list[bytes]]
    decode: Callable[[bytes], object]
    shelves: Items
    meter: Meter
    learned: Learned
    facts: FactBook
    troubled: Callable[[], int] = lambda: 0
    losing: Callable[[], bool] = lambda: False
