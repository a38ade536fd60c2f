"""The lines of an export: NDJSON, one object a line, distinguished by ``kind``.

    header
    session  message*  exchange*  summary*  session_end     once for each session
    shelf  item*  shelf_end                                 once for each person, and the tenant
    end

Fields that have their default are left out.  ``docs/export-import.md`` describes every field.
Times are Unix seconds.

JSON values keep their bytes.  Most are part of the line as they are; those that a line cannot hold
are strings with the JSON text: values with line breaks, white space around them, half a surrogate
pair, or such deep nesting that readers fail.  All these values are objects or lists, so that a
string always is such a text.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import ijson
import msgspec

from proxy.chat import jsontext
from proxy.memory.items import Item
from proxy.memory.model import Exchange, Origin, State, Summary
from proxy.portable.check import replace_lone_surrogates

NULL = msgspec.Raw(b"null")
"""No value at all."""

NAME = "memory-proxy"

VERSION = 1
"""Changes when an older reader would misread a file."""

MINOR = 0
"""Changes when fields or kinds of lines are added that an older reader may ignore."""

Number = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Time = Annotated[float, msgspec.Meta(ge=0, lt=1e11)]
Scope = Literal["session", "user", "tenant"]


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """The base of all lines."""


class Header(ExportLine, frozen=True, kw_only=True, tag="header"):
    """The first line."""

    format: str
    version: int
    minor: int = 0
    scope: Scope
    exported_at: Time


class SessionLine(ExportLine, frozen=True, kw_only=True, tag="session"):
    """A session begins.  ``metadata`` is an object, ``system`` a list of messages.

    ``dismissed`` are the standing wishes that are not pinned, of a session without a user.
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


class MessageLine(ExportLine, frozen=True, kw_only=True, tag="message"):
    """A message of the session.  ``wire`` is null if it equals ``body``."""

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
    call_text_tokens: Number = msgspec.field(name="told", default=0)
    side_text_tokens: Number = msgspec.field(name="words", default=0)
    body: msgspec.Raw
    wire: msgspec.Raw = NULL


class ExchangeLine(ExportLine, frozen=True, kw_only=True, tag="exchange"):
    """An exchange of the session; its ``usage`` is a field of the line."""

    first: Number
    messages: tuple[str, ...]
    exchange: Exchange
    usage: msgspec.Raw = NULL


class SummaryLine(ExportLine, frozen=True, kw_only=True, tag="summary"):
    """A version of the session's summary, the one in force first."""

    summary: Summary


class SessionEnd(ExportLine, frozen=True, kw_only=True, tag="session_end"):
    """The session is complete; how many lines it had of each kind."""

    messages: Number
    exchanges: Number
    summaries: Number


class ShelfLine(ExportLine, frozen=True, kw_only=True, tag="shelf"):
    """The items of one owner begin: of a person, or with ``user`` null of the tenant itself."""

    user: str | None = None
    dismissed: tuple[str, ...] = ()


class ItemLine(ExportLine, frozen=True, kw_only=True, tag="item"):
    """An item of the owner."""

    item: Item


class ShelfEnd(ExportLine, frozen=True, kw_only=True, tag="shelf_end"):
    """The owner's items are complete; how many there were."""

    items: Number


class End(ExportLine, frozen=True, kw_only=True, tag="end"):
    """The last line, with the totals of the file."""

    sessions: Number
    shelves: Number
    items: Number


LINES: tuple[type[ExportLine], ...] = (
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


def kind_of(line: type[ExportLine]) -> str:
    return str(line.__struct_config__.tag)


Kind = type[dict[str, object]] | type[list[object]]

PIECE = 64 * 1024
"""Bytes that are read by one call."""

MAX_DEPTH = 100
"""Open brackets in a value up to which every reader can parse its nesting."""

_RAW = msgspec.json.Decoder(msgspec.Raw)
_TEXT = msgspec.json.Decoder(str)
_LONG_NUMBER = re.compile(rb"(\d{15})\d+")


def embed_json(raw: bytes | None) -> msgspec.Raw:
    """A JSON text as a value of a line: itself, or a string that has it."""
    if raw is None:
        return NULL
    if _fits_in_line(raw):
        return msgspec.Raw(raw)
    return msgspec.Raw(msgspec.json.encode(raw.decode("utf-8", "replace")))


def extract_json(raw: msgspec.Raw, kind: Kind) -> bytes:
    """The inverse of ``embed_json``.  Raises ValueError for a value of another kind."""
    text = bytes(raw)
    if text[:1] == b'"':
        text = _TEXT.decode(text).encode()
        _check_json(text)
    if text.lstrip()[:1] != (b"{" if kind is dict else b"["):
        raise ValueError(f"a value that is no {kind.__name__}")
    return text


def extract_json_or_none(raw: msgspec.Raw, kind: Kind) -> bytes | None:
    """As ``extract_json``; None for null."""
    return None if raw == NULL else extract_json(raw, kind)


def _fits_in_line(raw: bytes) -> bool:
    if raw[:1] not in (b"{", b"[") or raw[-1:] not in (b"}", b"]"):
        return False
    if b"\n" in raw or b"\r" in raw or raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        return False
    if not jsontext.SURROGATE_ESCAPE.search(raw):
        return True
    try:
        _RAW.decode(raw)
    except ValueError:
        return False
    return True


def _check_json(text: bytes) -> None:
    """Raise ValueError unless it is JSON, of any nesting, since this parser does not recurse.

    It fails on huge numbers and lone surrogates, so these are shortened or replaced before.
    """
    text = replace_lone_surrogates(text)
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events)
    try:
        for at in range(0, len(text), PIECE):
            parser.send(_LONG_NUMBER.sub(rb"\1", text[at : at + PIECE]))
            events.clear()
        parser.close()
    except ijson.JSONError:
        raise ValueError("a text that is not JSON") from None
