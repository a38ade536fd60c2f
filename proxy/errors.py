"""The proxy's own errors, in the shape that OpenAI's clients read.

Every error answer that does not come from an upstream comes from this table.  It knows HTTP
statuses and sentences, imports nothing of the proxy, and never reveals internals.

ProxyError
  400 invalid_request_error   invalid_header . invalid_session_id . invalid_user_id .
                              unknown_profile . unknown_upstream . invalid_import .
                              invalid_value . not_in_background
  401                         invalid_api_key
  403                         session_owner_mismatch . user_required . path_not_allowed .
                              profile_not_allowed . invalid_signature . admin_key_required .
                              cross_site
  404                         not_found . missing_v1 . session_not_found .
                              message_not_found . tenant_not_found . response_not_found .
                              conversation_not_found . item_not_found
  405                         method_not_allowed
  408                         request_timeout
  412                         precondition_failed
  413                         request_too_large
  426                         upgrade_refused
  431                         headers_too_large (code invalid_header)
  500 server_error            server_error
  502                         upstream_unreachable
  503                         overloaded . memory_unavailable (both with retry-after)
  504                         upstream_timeout

OpenAI's clients retry by themselves on 408, 409, 429 and 5xx: of the 4xx here only 408 is worth a
retry.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import msgspec

RawHeaders = list[tuple[bytes, bytes]]
"""Header fields as ASGI has them: order and duplicates kept."""

MAX_NAME = 80
"""Characters of a name from a request that are repeated in an error."""

_AN_ID = "must be 1 to 256 visible ASCII characters, and not '.' or '..'."

_CLOSE = ((b"connection", b"close"),)
"""Headers of an answer after which the connection cannot be used, as the request was not read to
its end."""

_RETRY = ((b"retry-after", b"1"),)


class ProxyError(Exception):
    """An error answer of the proxy's own.  Its fields do not change.

    ``headers`` are additional ones (``retry-after``, ``connection``); ``raw_headers`` has all.  The
    text may repeat what a client sent, even lone surrogates.  It is not a frozen dataclass, as
    raising an exception writes to its traceback and context.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status: Final = status
        self.code: Final = code
        self.message: Final = _encodable(message)
        self.param: Final = None if param is None else _encodable(param)
        self.headers: Final = headers

    def with_headers(self, headers: RawHeaders) -> ProxyError:
        """The same error with these headers in addition."""
        all = (*self.headers, *headers)
        return ProxyError(self.status, self.code, self.message, param=self.param, headers=all)

    @property
    def type(self) -> str:
        return "server_error" if self.status >= 500 else "invalid_request_error"

    @cached_property
    def body(self) -> bytes:
        """``{"error": {"message", "type", "param", "code"}}`` as JSON."""
        return msgspec.json.encode(
            {
                "error": {
                    "message": self.message,
                    "type": self.type,
                    "param": self.param,
                    "code": self.code,
                }
            }
        )

    @property
    def raw_headers(self) -> RawHeaders:
        """The headers for the body, then the additional ones."""
        return self.headers_of(self.body)

    def headers_of(self, body: bytes) -> RawHeaders:
        """The same for a body of another shape."""
        return [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *self.headers,
        ]

    def __repr__(self) -> str:
        return f"<ProxyError {self.status} {self.code}: {self.message}>"


class FixedError(msgspec.Struct, frozen=True):
    """An error that always says the same.  Call it to make the exception."""

    status: int
    code: str
    message: str
    param: str | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __call__(self) -> ProxyError:
        return ProxyError(
            self.status, self.code, self.message, param=self.param, headers=self.headers
        )


def _encodable(text: str) -> str:
    """The text with lone surrogates escaped, which could not be encoded."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def invalid_header(message: str, param: str | None = None) -> ProxyError:
    return ProxyError(400, "invalid_header", message, param=param)


malformed_request = FixedError(
    400,
    "invalid_header",
    "The request is not valid HTTP/1.1. Check its request line, headers and framing.",
    headers=_CLOSE,
)
"""The request is not valid HTTP; the connection cannot be used any more."""


def headers_too_large(limit: int) -> ProxyError:
    """``limit``: bytes of the head, with its request line, or of the trailers."""
    return ProxyError(
        431,
        "invalid_header",
        f"Head or trailers are larger than {limit} bytes, or have too many fields. Send less.",
        headers=_CLOSE,
    )


def invalid_session_id(param: str = "X-Session-Id") -> ProxyError:
    return ProxyError(400, "invalid_session_id", f"{param} {_AN_ID}", param=param)


def invalid_user_id(param: str = "X-User-Id") -> ProxyError:
    return ProxyError(400, "invalid_user_id", f"{param} {_AN_ID}", param=param)


unknown_profile = FixedError(
    400,
    "unknown_profile",
    "X-Memory-Profile names no profile of this proxy. Use one of its [profiles.NAME], or none.",
    param="X-Memory-Profile",
)
unknown_upstream = FixedError(
    400,
    "unknown_upstream",
    "X-Memory-Upstream names no upstream of this proxy. Use a name of its [[upstreams]],"
    ' "default" for [upstream], or leave it out.',
    param="X-Memory-Upstream",
)
"""The configured names are not listed: callers need not know the operator's upstreams."""


def invalid_import(message: str) -> ProxyError:
    """``message`` says what is wrong with the file, and what was imported nevertheless."""
    return ProxyError(400, "invalid_import", message)


invalid_api_key = FixedError(
    401,
    "invalid_api_key",
    "This API key is not accepted here. Send a key that this proxy knows.",
    headers=((b"www-authenticate", b"Bearer"),),
)
session_owner_mismatch = FixedError(
    403,
    "session_owner_mismatch",
    "This session belongs to another user. Use the user id it began with, or a new session.",
    param="X-User-Id",
)
user_required = FixedError(
    403, "user_required", "This proxy needs to know the user. Send X-User-Id.", param="X-User-Id"
)
path_not_allowed = FixedError(
    403,
    "path_not_allowed",
    "This path is not open to this API key. Ask for it in the proxy's allowed_paths.",
)
profile_not_allowed = FixedError(
    403,
    "profile_not_allowed",
    "This profile is not open to this API key. Use one of its profiles, or none.",
    param="X-Memory-Profile",
)
invalid_signature = FixedError(
    403,
    "invalid_signature",
    "X-Memory-Signature is missing, wrong or older than 300 seconds. Sign the ids again.",
    param="X-Memory-Signature",
)
cross_site = FixedError(
    403,
    "cross_site",
    "This upstream is asked with the operator's key, which web pages of other hosts may not"
    " use without a key of their own. See tenancy.trusted_hosts.",
)
"""For requests of other sites' pages, which must not use what the operator pays for."""

admin_key_required = FixedError(
    403,
    "admin_key_required",
    "Only the administrator may ask for another tenant with ?tenant=, and this key is not the"
    " administrator's (server.admin_key). Send that one, or leave ?tenant= out.",
    param="tenant",
)
not_found = FixedError(404, "not_found", "There is nothing at this path.")
missing_v1 = FixedError(
    404,
    "not_found",
    "There is nothing at this path. The API begins at /v1: set base_url to end in /v1.",
)
session_not_found = FixedError(404, "session_not_found", "There is no such session.")
message_not_found = FixedError(
    404, "message_not_found", "There is no such message in this session."
)


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def tenant_not_found(tenant: str) -> ProxyError:
    return ProxyError(
        404,
        "tenant_not_found",
        f"There is no tenant {_short(tenant)!r}: nothing is kept of it. GET /memory/v1/tenants has"
        " those that there are.",
        param="tenant",
    )


def response_not_found(name: str, param: str | None = None) -> ProxyError:
    """The same text for responses that never existed, were deleted, or belong to others."""
    said = f"There is no response {_short(name)!r}."
    return ProxyError(404, "response_not_found", said, param=param)


def conversation_not_found(name: str, param: str | None = None) -> ProxyError:
    said = f"There is no conversation {_short(name)!r}."
    return ProxyError(404, "conversation_not_found", said, param=param)


def item_not_found(name: str) -> ProxyError:
    said = f"There is no item {_short(name)!r} in this conversation."
    return ProxyError(404, "item_not_found", said)


def invalid_value(message: str, param: str) -> ProxyError:
    """``message`` says what ``param`` must be."""
    return ProxyError(400, "invalid_value", message, param=param)


def not_in_background(message: str, param: str | None = None) -> ProxyError:
    """For responses of emulated state, which never run in the background."""
    return ProxyError(400, "not_in_background", message, param=param)


def method_not_allowed(allow: str) -> ProxyError:
    """``allow``: the allowed methods, for the Allow header (RFC 9110 15.5.6)."""
    return ProxyError(
        405,
        "method_not_allowed",
        f"This path answers {allow} only.",
        headers=((b"allow", allow.encode("ascii")),),
    )


request_timeout = FixedError(
    408,
    "request_timeout",
    "The request body did not arrive in time. Send it again.",
    headers=_CLOSE,
)
"""The rest of the body may still come, so the connection ends with this answer."""


def precondition_failed(header: str) -> ProxyError:
    """``header`` is the condition that does not hold."""
    return ProxyError(
        412,
        "precondition_failed",
        "This is not as you say any more. Read it again, and repeat the change if it still fits.",
        param=header,
    )


def request_too_large(limit: int) -> ProxyError:
    """``limit`` in bytes.  The connection ends: what is left of the body is not read."""
    return ProxyError(
        413,
        "request_too_large",
        f"The request body is larger than {limit} bytes. Send a shorter one.",
        headers=_CLOSE,
    )


upgrade_refused = FixedError(
    426,
    "upgrade_refused",
    "There is no WebSocket here. Ask over HTTP: POST /v1/responses with stream: true, for one.",
    headers=((b"upgrade", b"HTTP/1.1"), (b"connection", b"upgrade, close")),
)
"""For WebSocket requests: clients that get this use HTTP instead (RFC 9110 15.5.22)."""

server_error = FixedError(500, "server_error", "The proxy failed on this request. Try again.")
upstream_unreachable = FixedError(
    502, "upstream_unreachable", "The upstream could not be reached. Try again in a moment."
)
upstream_broken = FixedError(
    502,
    "upstream_unreachable",
    "The upstream's answer broke off, or is not valid HTTP. Try again in a moment.",
)
"""For an upstream that breaks off; same code as for one that cannot be reached."""

upstream_timeout = FixedError(
    504, "upstream_timeout", "The upstream did not answer in time. Try again in a moment."
)
overloaded = FixedError(
    503, "overloaded", "The proxy has too much to do. Try again in a moment.", headers=_RETRY
)
no_room = FixedError(
    503,
    "overloaded",
    "There are too many large requests or answers at once. Try again in a moment.",
    headers=_RETRY,
)
memory_unavailable = FixedError(
    503,
    "memory_unavailable",
    "The memory cannot be read at present. Try again in a moment.",
    headers=_RETRY,
)
memory_busy = FixedError(
    503,
    "memory_unavailable",
    "Others are changing the same memory. Try again in a moment.",
    headers=_RETRY,
)
memory_in_use = FixedError(
    503,
    "memory_unavailable",
    "What was to be erased is gone, but a copy of its text is in the log of the database while"
    " somebody reads that, as a backup does. Repeat the erasure in a moment.",
    headers=_RETRY,
)
memory_full = FixedError(
    503,
    "memory_unavailable",
    "The store is full and takes nothing new. Give it more room, or delete something.",
    headers=_RETRY,
)
