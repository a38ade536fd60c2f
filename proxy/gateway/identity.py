"""The request headers about memory: session, user, options, and the signature of the ids.  Pure.

``X-Memory-Signature: t=<unix>,v1=<hex>`` holds the HMAC-SHA256 (RFC 2104) over the time, the
session and the user, line by line, under the client's signing secret; "" for an id that is not
sent.  It is valid for five minutes before and after that time, since clocks differ.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, cast, get_args
from urllib.parse import unquote_to_bytes

import msgspec

from proxy.errors import (
    ProxyError,
    RawHeaders,
    invalid_header,
    invalid_session_id,
    invalid_signature,
    invalid_user_id,
)
from proxy.memory.ids import is_id
from proxy.memory.reconciliation.match import History

SESSION, USER, SIGNATURE = b"x-session-id", b"x-user-id", b"x-memory-signature"
MAX_AGE_SECONDS = 300

_SIGNATURE = re.compile(rb"\s*t=(?P<time>[0-9]{1,12})\s*,\s*v1=(?P<hex>[0-9a-fA-F]{64})\s*")


def sign(secret: bytes, time: int, session: str, user: str) -> str:
    """The hexadecimal signature of these ids at this Unix time."""
    signed = f"{time}\n{session}\n{user}".encode()
    return hmac.new(secret, signed, hashlib.sha256).hexdigest()


def check_signature(
    header: bytes | None, secret: bytes, session: str, user: str, now: float
) -> None:
    """Raise ProxyError 403 unless the header signs these ids, within 300 s of ``now``."""
    match = _SIGNATURE.fullmatch(header or b"")
    if match is None or abs(now - int(match["time"])) > MAX_AGE_SECONDS:
        raise invalid_signature()
    expected = sign(secret, int(match["time"]), session, user)
    if not hmac.compare_digest(match["hex"].decode().lower(), expected):
        raise invalid_signature()


Mode = Literal["on", "read", "write", "off"]

MODES: tuple[str, ...] = get_args(Mode)
HISTORIES: tuple[str, ...] = get_args(History)

MEMORY_HEADERS = frozenset(
    {
        SESSION,
        USER,
        b"x-memory-mode",
        b"x-memory-profile",
        b"x-memory-upstream",
        b"x-memory-max-tokens",
        b"x-memory-history",
        b"x-memory-rewind",
        SIGNATURE,
    }
)
"""Request headers that are not forwarded; nor are others that begin with ``PREFIX``."""

PREFIX = b"x-memory-"

RETRY_COUNT = b"x-stainless-retry-count"
FORWARDED = (b"idempotency-key", RETRY_COUNT)
"""Standard headers that are read here and forwarded."""

_NUMBER = re.compile(rb"[0-9]{1,19}")
"""Up to 2^63 - 1, which programs send for "no limit"; larger than ``_MAX_NUMBER`` is clamped."""
_MAX_NUMBER = 999_999_999
_IDEMPOTENCY_KEY = re.compile(rb"[\x20-\x7e]{1,1024}")


class Aliases(msgspec.Struct, frozen=True):
    """Other programs' names for the session and the user header, lower case, first match wins."""

    session: tuple[bytes, ...]
    user: tuple[bytes, ...]

    @classmethod
    def of(cls, session: Sequence[str], user: Sequence[str]) -> Aliases:
        """The aliases in the settings, in any case."""
        return cls(_lower(session), _lower(user))


def _lower(names: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(name.lower().encode() for name in names)


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A request's session and user, and its options for memory."""

    session: str | None = None
    user: str | None = None
    mode: Mode = "on"
    profile: str = ""
    upstream: str = ""
    max_tokens: int | None = None
    history: History | None = None
    rewind: int = 0
    idempotency_key: str | None = None
    retry: bool = False
    has_unknown_header: bool = False
    """A header about memory that does not exist, such as a misspelt ``X-Memory-Mode``."""

    @property
    def reason(self) -> Literal["unknown_header"] | None:
        """Why memory may not do what was asked for; any other reason says more."""
        return "unknown_header" if self.has_unknown_header else None

    @property
    def uses_memory(self) -> bool:
        return self.session is not None and self.mode != "off"

    @property
    def records(self) -> bool:
        """Whether exchanges may be recorded."""
        return self.mode in ("on", "write")


NO_IDENTITY = Identity()
"""The identity of a request without any header about memory."""


class IdentityReader:
    """Reads the headers about memory, and their aliases."""

    def __init__(self, aliases: Aliases) -> None:
        self._aliases = aliases
        self._header_names = MEMORY_HEADERS | {*aliases.session, *aliases.user, *FORWARDED}

    def identify(self, headers: RawHeaders, path_session: bytes | None = None) -> Identity:
        """The identity in the headers; names are lower case, as ASGI has them.

        ``path_session`` is the percent-encoded segment of ``/s/{session}/``.  Raises ProxyError 400
        for invalid values; invalid values of aliases are ignored.
        """
        fields = _fields(headers)
        has_unknown = any(name.startswith(PREFIX) for name in fields.keys() - MEMORY_HEADERS)
        if not has_unknown and path_session is None and self._header_names.isdisjoint(fields):
            return NO_IDENTITY
        session = _session(fields, path_session, self._aliases)
        mode = cast("Mode", _allowed_value(fields, "X-Memory-Mode", MODES) or "on")
        return Identity(
            session=session,
            user=_id(fields, USER, invalid_user_id) or _alias(fields, self._aliases.user),
            mode=mode,
            profile=_text(fields, b"x-memory-profile"),
            upstream=_text(fields, b"x-memory-upstream"),
            max_tokens=_number(fields, "X-Memory-Max-Tokens"),
            history=cast("History | None", _allowed_value(fields, "X-Memory-History", HISTORIES)),
            rewind=_number(fields, "X-Memory-Rewind") or 0,
            idempotency_key=_idempotency_key(fields) if session and mode != "off" else None,
            retry=fields.get(RETRY_COUNT, b"0") not in (b"0", b""),
            has_unknown_header=has_unknown,
        )

    def session(self, headers: RawHeaders, path_session: bytes | None = None) -> str | None:
        """The session of a request whose other headers may be invalid; None without a valid one."""
        session_fields = [x for x in headers if x[0] == SESSION or x[0] in self._aliases.session]
        with suppress(ProxyError):
            return _session(_fields(session_fields), path_session, self._aliases)
        return None


def without_memory_headers(headers: RawHeaders) -> RawHeaders:
    """The headers without ``MEMORY_HEADERS`` and others of their prefix; names in lower case."""
    return [x for x in headers if x[0] not in MEMORY_HEADERS and not x[0].startswith(PREFIX)]


Fields = dict[bytes, bytes]


def _fields(headers: RawHeaders) -> Fields:
    """The fields by lower-case name.  Raises ProxyError 400 for two values of a memory header."""
    fields: Fields = {}
    for name, value in headers:
        if fields.setdefault(name, value) != value and name in MEMORY_HEADERS:
            raise _ambiguous(name)
    return fields


def _ambiguous(name: bytes) -> ProxyError:
    if name == SESSION:
        return invalid_session_id()
    if name == USER:
        return invalid_user_id()
    title = name.decode("latin-1").title()
    return invalid_header("This header came twice, with different values.", title)


def _session(fields: Fields, path_session: bytes | None, aliases: Aliases) -> str | None:
    if path_session is not None:
        value = unquote_to_bytes(path_session).decode("latin-1")
        if not is_id(value):
            raise invalid_session_id("The session in the path")
        return value
    return _id(fields, SESSION, invalid_session_id) or _alias(fields, aliases.session)


def _id(fields: Fields, name: bytes, error: Callable[[], ProxyError]) -> str | None:
    value = _latin1(fields, name)
    if value is not None and not is_id(value):
        raise error()
    return value


def _alias(fields: Fields, names: Sequence[bytes]) -> str | None:
    for name in names:
        value = _latin1(fields, name)
        if value is not None and is_id(value):
            return value
    return None


def _latin1(fields: Fields, name: bytes) -> str | None:
    """The value as Latin-1: ``is_id`` rejects what is not ASCII."""
    value = fields.get(name)
    return None if value is None else value.decode("latin-1")


def _allowed_value(fields: Fields, name: str, allowed: Sequence[str]) -> str | None:
    value = fields.get(name.lower().encode())
    if value is None:
        return None
    word = value.decode("latin-1").strip().lower()
    if word not in allowed:
        raise invalid_header(f"{name} must be one of: {', '.join(allowed)}.", name)
    return word


def _number(fields: Fields, name: str) -> int | None:
    value = fields.get(name.lower().encode())
    if value is None:
        return None
    if not _NUMBER.fullmatch(value.strip()):
        raise invalid_header(f"{name} must be a whole number from 0.", name)
    return min(int(value), _MAX_NUMBER)


def _text(fields: Fields, name: bytes) -> str:
    return fields.get(name, b"").decode("latin-1").strip()


def _idempotency_key(fields: Fields) -> str | None:
    value = fields.get(b"idempotency-key")
    if value is None:
        return None
    if not _IDEMPOTENCY_KEY.fullmatch(value):
        raise invalid_header(
            "Idempotency-Key must be 1 to 1024 printable ASCII characters.", "Idempotency-Key"
        )
    return value.decode("ascii")
