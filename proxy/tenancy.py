"""Derives the tenant, which owns memory, from a request's credential alone.

Design: only the SHA-256 of keys is used; the key itself is never stored or logged.
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

from proxy.errors import RawHeaders, invalid_api_key, invalid_header, profile_not_allowed

Mode = Literal["key", "single", "clients"]

ANONYMOUS = "anonymous"
SINGLE = "single"
OPEN_TENANTS = frozenset({ANONYMOUS, SINGLE})
"""The tenants of callers without a key of their own."""

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
    def is_anonymous(self) -> bool:
        """Whether it has no key of its own, so that any web page could make the same call."""
        return self.client is None and self.tenant in OPEN_TENANTS

    @property
    def signs(self) -> bool:
        """Whether it must sign the ids that it sends; ids that are not signed do not count."""
        return self.client is not None and self.client.signing_secret is not None


_BASIC = re.compile(rb"basic +([A-Za-z0-9+/_=-]+)", re.IGNORECASE)


class AdminKey:
    """The administrator's key, compared in constant time.

    It is found anywhere in a value where it is delimited by other characters than letters and
    digits, so quotes, commas, schemes or names before it do not hide it.  The time is linear in the
    size of the head, which is bounded.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._places = re.compile(
            rb"(?<![0-9A-Za-z])(?=.{%d}(?![0-9A-Za-z]))" % len(key), re.DOTALL
        )

    def equals(self, token: bytes) -> bool:
        return hmac.compare_digest(token, self._key)

    def is_in(self, headers: RawHeaders, target: bytes = b"") -> bool:
        """Whether it is in any header, in the path or in the query, percent-encoded or not."""
        fields = (text for _, value in headers for text in _decoded_forms(value))
        return any(map(self._holds, fields)) or any(map(self._holds, _decoded_forms(target)))

    def _holds(self, text: bytes) -> bool:
        if len(text) < len(self._key):
            return False
        size = len(self._key)
        places = (found.start() for found in self._places.finditer(text))
        return any(hmac.compare_digest(text[at : at + size], self._key) for at in places)


def _decoded_forms(text: bytes) -> Iterator[bytes]:
    """The value itself, percent-decoded, and the credentials of Basic authentication in it."""
    yield text
    if b"%" in text:
        yield unquote_to_bytes(text)
    found = _BASIC.search(text)
    if found is not None:
        try:
            yield base64.b64decode(found[1] + b"==", altchars=b"-_")
        except binascii.Error:  # not base64
            return


class Tenancy:
    """Identifies callers.  ``upstream_key`` replaces the keys of named clients upstream."""

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
        """The caller with these headers; ``target`` is the path and query.

        Raises ProxyError 400 for two different keys, 401 for an unknown key, and for the
        administrator's key anywhere in the request: it must not be forwarded.
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
        """Whether the request's key is the administrator's, compared in constant time."""
        token = credential(headers)
        return self._admin is not None and token is not None and self._admin.equals(token)

    def credentials_upstream(self, headers: RawHeaders, caller: Caller) -> RawHeaders:
        """The headers with the upstream's key in place of a named client's.

        OpenAI, Azure and Anthropic have it in different headers.
        """
        if caller.client is None or self._bearer is None or self._raw_key is None:
            return headers
        names = {name for name, _ in headers}
        field = (b"authorization", self._bearer)
        if b"api-key" in names:
            field = (b"api-key", self._raw_key)
        elif b"anthropic-version" in names:
            field = (b"x-api-key", self._raw_key)
        return [*((k, v) for k, v in headers if k not in CREDENTIALS), field]


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
