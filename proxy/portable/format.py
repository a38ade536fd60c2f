"""The lines of an export: NDJSON, one object a line, told apart by ``kind``.

    header
    session  message*  exchange*  summary*  session_end     once for each session
    shelf  item*  shelf_end                                 once for each person, and the tenant
    end

Fields that have their default are left out.  ``docs/export-import.md`` describes every field.
Times are Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from proxy.memory.items import Item
from proxy.memory.model import Exchange, Origin, State
from proxy.memory.summary import Summary
from proxy.portable.value import NULL

NAME = "memory-proxy"

VERSION = 1
"""Changes where an older reader would read something wrong."""

MINOR = 0
"""Changes where fields or kinds of lines are added that an older reader may pass over."""

Number = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Time = Annotated[float, msgspec.Meta(ge=0, lt=1e11)]
Scope = Literal["session", "user", "tenant"]


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """What all lines are."""


class Header(Line, frozen=True, kw_only=True, tag="header"):
    """The first line."""

    format: str
    version: int
    minor: int = 0
    scope: Scope
    exported_at: Time


class SessionLine(Line, frozen=True, kw_only=True, tag="session"):
    """A session begins.  ``metadata`` is an object, ``system`` a list of messages.

    ``dismissed`` are the standing wishes not to be pinned, of a session that is nobody's.
    """

    id: str
    user: str | None = None
    title: str | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    ttl: Number = 0
    system: msgspec.Raw = NULL
    system_tokens: Number = 0
    created_at: Time
    last_active_at: Time
    end: Number = 0
    last: str | None = None
    windows: dict[str, tuple[Number, Number]] = {}
    dismissed: tuple[str, ...] = ()


class MessageLine(Line, frozen=True, kw_only=True, tag="message"):
    """A message of the session.  ``wire`` is there where it differs from ``body``."""

    seq: Number
    turn: Number
    state: State = "active"
    id: str
    role: str
    tokens: Number
    digest: str
    calls: tuple[str, ...] = ()
    answers: str | None = None
    origin: Origin = "request"
    evidence: bool = False
    incomplete: bool = False
    blank: bool = False
    choice: Number = 0
    created_at: Time = 0.0
    shape: str = ""
    told: Number = 0
    body: msgspec.Raw
    wire: msgspec.Raw = NULL


class ExchangeLine(Line, frozen=True, kw_only=True, tag="exchange"):
    """An exchange of the session; ``usage`` stands beside it and not in it."""

    first: Number
    messages: tuple[str, ...]
    exchange: Exchange
    usage: msgspec.Raw = NULL


class SummaryLine(Line, frozen=True, kw_only=True, tag="summary"):
    """A version of the session's summary, the one in force first."""

    summary: Summary


class SessionEnd(Line, frozen=True, kw_only=True, tag="session_end"):
    """The session is complete; how many lines it had of each kind."""

    messages: Number
    exchanges: Number
    summaries: Number


class ShelfLine(Line, frozen=True, kw_only=True, tag="shelf"):
    """Items begin: a person's, or with ``user`` null those of the tenant itself."""

    user: str | None = None
    dismissed: tuple[str, ...] = ()


class ItemLine(Line, frozen=True, kw_only=True, tag="item"):
    """An item of the shelf."""

    item: Item


class ShelfEnd(Line, frozen=True, kw_only=True, tag="shelf_end"):
    """The shelf is complete; how many items it had."""

    items: Number


class End(Line, frozen=True, kw_only=True, tag="end"):
    """The last line; how many there were in all."""

    sessions: Number
    shelves: Number
    items: Number


LINES: tuple[type[Line], ...] = (
    Header,
    SessionLine,
    MessageLine,
    ExchangeLine,
    SummaryLine,
    SessionEnd,
    ShelfLine,
    ItemLine,
    ShelfEnd,
    End,
)
"""All kinds, in the order in which they come."""


def kind_of(line: type[Line]) -> str:
    return str(line.__struct_config__.tag)
