"""Whose memory a request may touch: the tenant, derived from the credential alone.

Design: keys are known by their SHA-256 only; the key itself is never stored or logged.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote_to_bytes

import msgspec

from proxy.errors import (
    RawHeaders,
    invalid_api_key,
    invalid_header,
    profile_not_allowed,
)

Mode = Literal["key", "single", "clients"]

ANONYMOUS = "anonymous"
SINGLE = "single"
OPEN_TENANTS = frozenset({ANONYMOUS, SINGLE})
"""Tenants that callers without a key of their own are of."""

CREDENTIALS = frozenset({b"authorization", b"api-key", b"x-api-key"})
"""Headers that carry a key; names are lower case, as ASGI has them."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client of mode ``clients``: the digests of its keys, and what it may use."""

    name: str
    key_sha256: tuple[str, ...]
    profiles: tuple[str, ...] = ("*",)
    allowed_paths: tuple[str, ...] = ()
    signing_secret: bytes | None = field(default=None, repr=False)

    def may_use(self, profile: str) -> None:
        """Raise ProxyError 403 for a profile that is not open to this client."""
        if profile and "*" not in self.profiles and profile not in self.profiles:
            raise profile_not_allowed()


class Caller(msgspec.Struct, frozen=True):
    """Who calls: ``tenant`` owns the memory; ``client`` where clients are named."""

    tenant: str
    client: Client | None = None

    @property
    def is_nobody(self) -> bool:
        """Has it no key of its own, as a web page has none?"""
        return self.client is None and self.tenant in OPEN_TENANTS


_BASIC = re.compile(rb"basic +([A-Za-z0-9+/_=-]+)", re.IGNORECASE)


class AdminKey:
    """The key; compared in constant time, and at each place of a value where a word begins.  Where
    the word goes on behind it, it is another one.

    So the work is linear in the size of the head, which is bounded, and quotes, commas, schemes
    and names before the key hide nothing.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._places = re.compile(
            rb"(?<![0-9A-Za-z])(?=.{%d}(?![0-9A-Za-z]))" % len(key), re.DOTALL
        )

    def equals(self, token: bytes) -> bool:
        return hmac.compare_digest(token, self._key)

    def is_in(self, headers: RawHeaders, target: bytes = b"") -> bool:
        """Is it in any field, in the path or in the query, percent-encoded or not?"""
        fields = (text for _, value in headers for text in _readings(value))
        return any(map(self._holds, fields)) or any(map(self._holds, _readings(target)))

    def _holds(self, text: bytes) -> bool:
        if len(text) < len(self._key):
            return False
        size = len(self._key)
        places = (found.start() for found in self._places.finditer(text))
        return any(hmac.compare_digest(text[at : at + size], self._key) for at in places)


def _readings(text: bytes) -> Iterator[bytes]:
    """A value as it came, and what it says in other letters."""
    yield text
    if b"%" in text:
        yield unquote_to_bytes(text)
    found = _BASIC.search(text)
    if found is not None:
        try:
            yield base64.b64decode(found[1] + b"==", altchars=b"-_")
        except binascii.Error:  # no base64, and so no other reading
            return


class Tenancy:
    """Tells callers apart.  ``upstream_key`` replaces the clients' own keys on the way up."""

    def __init__(
        self,
        mode: Mode,
        clients: Sequence[Client] = (),
        upstream_key: str | None = None,
        admin_key: str | None = None,
    ) -> None:
        self._mode = mode
        self._clients = {digest: client for client in clients for digest in client.key_sha256}
        self._bearer = f"Bearer {upstream_key}".encode() if upstream_key else None
        self._raw_key = upstream_key.encode() if upstream_key else None
        self._admin = AdminKey(admin_key.encode()) if admin_key else None

    def caller(self, headers: RawHeaders, target: bytes = b"") -> Caller:
        """Who sent these headers, to a path and query.

        Raises ProxyError 400 for two different keys, 401 for a key that is unknown, and wherever
        the administrator's is: what is passed on must not hold it.
        """
        token = credential(headers)
        if self._admin is not None and self._admin.is_in(headers, target):
            raise invalid_api_key()
        if self._mode == "single":
            return Caller(SINGLE)
        if self._mode == "key":
            return Caller(ANONYMOUS if token is None else digest_of(token))
        client = self._clients.get(digest_of(token)) if token is not None else None
        if client is None:
            raise invalid_api_key()
        return Caller(client.name, client)

    def is_admin(self, headers: RawHeaders) -> bool:
        """Is this the administrator's key?  Compared in constant time."""
        token = credential(headers)
        return self._admin is not None and token is not None and self._admin.equals(token)

    def credentials_upstream(self, headers: RawHeaders, caller: Caller) -> RawHeaders:
        """The headers with the upstream's key in place of a named client's, where its API has it:
        Azure in a header of its own, and Anthropic in another."""
        if caller.client is None or self._bearer is None or self._raw_key is None:
            return headers
        names = {name for name, _ in headers}
        mine = (b"authorization", self._bearer)
        if b"api-key" in names:
            mine = (b"api-key", self._raw_key)
        elif b"anthropic-version" in names:
            mine = (b"x-api-key", self._raw_key)
        return [*((k, v) for k, v in headers if k not in CREDENTIALS), mine]


def credential(headers: RawHeaders) -> bytes | None:
    """The key of a request, or None.  Raises ProxyError 400 if it carries two different ones."""
    found = None
    for name, value in headers:
        if name in CREDENTIALS and (token := _token(name, value)):
            if found not in (None, token):
                raise invalid_header("The request carries two different API keys. Send one.")
            found = token
    return found


def _token(name: bytes, value: bytes) -> bytes:
    """RFC 9110 11.4: the scheme is a word of its own, in any case."""
    value = value.strip()
    if name == b"authorization":
        scheme, _, rest = value.partition(b" ")
        if scheme.lower() in (b"bearer", b"basic") and (rest or scheme.lower() == b"bearer"):
            return rest.strip()
    return value


def digest_of(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()
