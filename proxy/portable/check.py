"""Validates imported lines, and reads JSON of other programs.  Pure; raises ValueError.

Stores compute positions from ids, so that an invalid one would damage the session.  The limits on
what is read at once are here too: more than people have, and little enough to fit into memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from proxy.chat import jsontext
from proxy.chat.json_size import has_more_values
from proxy.chat.message import SYSTEM_ROLES, read_message, read_stored
from proxy.memory.archive import (
    MAX_METADATA,
    MAX_TITLE,
    PlacedExchange,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.ids import is_id
from proxy.memory.items import PEOPLE, Item
from proxy.memory.model import Exchange, message_id
from proxy.memory.prompt.trace import PromptTrace, decode_trace

Fields = dict[str, object]

MAX_TOKENS = 2**40
"""Limit on the token counts of a record, since those of a tenant are summed."""

MAX_TIME = 1e11
"""Larger numbers (Unix seconds) are not accepted as times."""


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def replace_lone_surrogates(item: bytes) -> bytes:
    """The JSON text with escapes of lone surrogates replaced, which could not be stored."""
    if not jsontext.SURROGATE_ESCAPE.search(item):
        return item
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], item)


def is_utf8(text: bytes) -> bool:
    """Whether a text is UTF-8; its last character may be cut off."""
    return jsontext.is_utf8(text, whole=False)


def value_of(item: bytes, unreadable: str) -> object:
    """The value of a JSON text.  Raises ValueError, with ``unreadable`` if it is not JSON."""
    check_text(item)
    try:
        return jsontext.decode(replace_lone_surrogates(item))
    except jsontext.UNREADABLE:
        raise ValueError(unreadable) from None


def text_in(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def fields_in(fields: Fields, name: str) -> Fields:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def list_in(fields: Fields, name: str) -> list[object]:
    value = fields.get(name)
    return value if isinstance(value, list) else []


def objects_in(fields: Fields, name: str) -> list[Fields]:
    return [value for value in list_in(fields, name) if isinstance(value, dict)]


def time_in(fields: Fields, name: str) -> float | None:
    """Unix seconds."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return float(value) if 0 < value < MAX_TIME else None


def timestamp_in(fields: Fields, name: str) -> float | None:
    """Unix seconds of a date as ISO 8601 writes it (UTC, where it names no zone), or of a number of
    seconds, or of thousandths of them; None where it is missing or absurd."""
    value = fields.get(name)
    if isinstance(value, str):
        return time_in({name: _parse_timestamp(value)}, name)
    if isinstance(value, int | float) and MAX_TIME <= value < 1000 * MAX_TIME:
        value = value / 1000
    return time_in({name: value}, name)


def _parse_timestamp(text: str) -> float | None:
    try:
        time = datetime.fromisoformat(text.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


MAX_MESSAGES = 50_000
"""Messages of a conversation: it is put into the store in one piece."""

MAX_VALUES = 1_000_000
"""Values in what is read at once (see ``has_more_values``): a line, or a conversation."""


NOT_UTF8 = "text that is not in UTF-8 (save the file as UTF-8, or convert it with iconv)"


def check_text(raw: bytes) -> None:
    """Raises ValueError for a text that is not UTF-8, or has too many values."""
    if not is_utf8(raw):
        raise ValueError(NOT_UTF8)
    if has_more_values(MAX_VALUES, raw):
        raise ValueError(f"over {MAX_VALUES} values in what is read at once")


def check_count(messages: int) -> None:
    """Raises ValueError for a conversation that is too long."""
    if messages > MAX_MESSAGES:
        raise ValueError(f"a conversation of over {MAX_MESSAGES} messages")


_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,1024}")
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])

MAX_LABELS = 20


def check_id(id: str, label: str) -> None:
    if not is_id(id):
        raise ValueError(f"{label} that is not 1 to 256 visible ASCII characters")


def check_session(archived: SessionArchive) -> None:
    """Raise ValueError unless all messages are in their exchanges and positions, without duplicates
    and within the session's end."""
    session = archived.session
    check_id(session.id, "an id")
    if session.user is not None:
        check_id(session.user, "a user")
    if len(session.details.title or "") > MAX_TITLE:
        raise ValueError(f"a title of more than {MAX_TITLE} characters")
    if len(session.details.metadata) > MAX_METADATA:
        raise ValueError(f"metadata of more than {MAX_METADATA} bytes")
    _check_system(session.details.system)
    _check_exchanges(archived.exchanges, session.end)
    _check_lines(archived.lines, archived.exchanges)
    versions = [summary.version for summary in archived.summaries]
    if versions != sorted(set(versions), reverse=True) or (versions and versions[-1] < 1):
        raise ValueError("versions of a summary that do not descend")


def _check_system(system: bytes | None) -> None:
    messages = map(read_message, jsontext.items(system or b"[]"))
    if not all(message is not None and message.role in SYSTEM_ROLES for message in messages):
        raise ValueError("a system message that is none")


def _check_exchanges(exchanges: Sequence[PlacedExchange], end: int) -> None:
    last_seq = 0
    for placed in exchanges:
        if placed.first <= last_seq:
            raise ValueError("exchanges that overlap or are not in order")
        last_seq = placed.first + placed.exchange.size - 1
        if not placed.messages or placed.exchange.size < len(placed.messages) or last_seq > end:
            raise ValueError("an exchange of a wrong size")
        _check_record(placed.exchange)
    if len({placed.exchange.id for placed in exchanges}) < len(exchanges):
        raise ValueError("an exchange that is there twice")


def _check_record(exchange: Exchange) -> None:
    if not _NAME.fullmatch(exchange.id):
        raise ValueError("an exchange with an impossible id")
    injection = exchange.memory
    injection.all_recalled()
    _RAWS.decode(injection.tools)
    trace = decode_trace(injection) or PromptTrace()
    if (
        max(injection.tokens, injection.evicted_tokens, trace.learned_tokens, trace.recall_tokens)
        > MAX_TOKENS
    ):
        raise ValueError("an exchange of more tokens than anybody can add up")


def _check_lines(lines: Sequence[StoredMessage], exchanges: Sequence[PlacedExchange]) -> None:
    """The messages are exactly those that the exchanges name, where they name them."""
    known = {placed.exchange.id: placed for placed in exchanges}
    last_seq = 0
    for line in lines:
        turn, seq = line.position.turn, line.position.seq
        if seq <= last_seq or not 1 <= turn <= seq or not _is_placed_right(line, known):
            raise ValueError("a message that is not where its exchange has it")
        _check_role(line)
        last_seq = seq
    if [line.card.id for line in lines] != [id for placed in exchanges for id in placed.messages]:
        raise ValueError("messages that are not those of the exchanges")


def _check_role(line: StoredMessage) -> None:
    """Raise ValueError if a request's message has another role than its body.

    Answers have the role that the upstream sent, and unreadable messages have "".
    """
    card = line.card
    if card.origin != "response" and card.role not in ("", read_stored(line.body).role):
        raise ValueError("a message of another role than its body")


def _is_placed_right(line: StoredMessage, exchanges: Mapping[str, PlacedExchange]) -> bool:
    placed = exchanges.get(line.card.exchange)
    if placed is None:
        return False
    index = line.position.seq - placed.first
    has_own_id = line.card.id == message_id(placed.exchange.id, index)
    return has_own_id and 0 <= index < placed.exchange.size


def check_item(item: Item, user: str) -> None:
    """Raise ValueError unless an item belongs to this user, or with "" to the tenant."""
    namespace = item.namespace
    if not 1 <= len(namespace) <= MAX_LABELS or not all(map(_NAME.fullmatch, namespace)):
        raise ValueError("an item with an impossible namespace")
    if not _NAME.fullmatch(item.key) or item.version < 1:
        raise ValueError("an item with an impossible key or version")
    owner = namespace[1] if namespace[0] == PEOPLE and len(namespace) > 1 else ""
    if owner != user or namespace == (PEOPLE,):
        raise ValueError("an item of another shelf")
