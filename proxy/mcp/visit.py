"""One request of an MCP client, with calls of the memory API's operations on its behalf.

An operation is called as if the client had sent its request: with the same credentials, from the
same peer, through the same checks.  /mcp has no other access to the store.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Literal, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from proxy.chat.jsontext import decode, well_formed
from proxy.errors import ProxyError, RawHeaders
from proxy.gateway.identity import Identity
from proxy.memory_api.access import Access
from proxy.memory_api.api import Api
from proxy.memory_api.body import LARGE
from proxy.memory_api.fields import invalid
from proxy.memory_api.openapi.operation import Operation
from proxy.memory_api.operation import handler_of
from proxy.wire.limits import release

T = TypeVar("T")

_OUTER_HEADERS = frozenset(
    {
        b"content-length",
        b"content-type",
        b"transfer-encoding",
        b"idempotency-key",
        b"if-match",
        b"if-none-match",
    }
)
"""Headers about the MCP request itself, which are not passed to operations."""


class Visit(msgspec.Struct, frozen=True):
    """A request; ``identity``: the user and mode in its headers."""

    api: Api
    access: Access
    request: Request
    identity: Identity

    @property
    def reads(self) -> bool:
        """Whether memory may be read."""
        return self.identity.mode in ("on", "read")

    @property
    def writes(self) -> bool:
        """Whether memory may be changed."""
        return self.identity.mode in ("on", "write")

    def refusal(self, does: Literal["read", "change"]) -> ProxyError:
        """The error for a request whose mode does not allow this."""
        return invalid(f"X-Memory-Mode: {self.identity.mode} lets nothing {does} memory here.")

    def of_user(self, named: str | None) -> str | None:
        """The user of the header or the argument; None without both.

        A header binds the connection to one user: an argument, which a model writes, cannot select
        another.  Raises ProxyError 400 if it does.
        """
        bound = self.identity.user
        if bound is not None and named not in (None, bound):
            raise invalid("This connection is of another user (X-User-Id). Leave user out.", "user")
        return bound or named

    def user(self, named: str | None) -> str:
        """The same if a user is required.  Raises ProxyError 400 without one."""
        user = self.of_user(named)
        if user is None:
            raise invalid(
                "Say whose memory is meant: with the argument user, or for good with the header"
                " X-User-Id in the settings of the client.",
                "user",
            )
        return user

    async def ask(
        self,
        operation: Operation,
        answer: type[T],
        path: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> T:
        """Call an operation; returns its answer, decoded as ``answer``.

        Values of ``path`` and ``query`` are not encoded; None in ``query`` is omitted.  Raises
        what the operation raises.
        """
        scope = self._scope(operation, path or {}, query or {})
        handle = handler_of(operation, self.api, self.access)
        sends = _sends(msgspec.json.encode(body) if body else b"")
        try:
            raw = bytes((await handle(Request(scope, sends))).body)
            if len(raw) > LARGE:
                return await asyncio.to_thread(_read, raw, answer)
            return _read(raw, answer)
        finally:
            release(scope)

    def _scope(
        self, operation: Operation, path: Mapping[str, str], query: Mapping[str, object]
    ) -> Scope:
        segments = {name: quote(value, safe="") for name, value in path.items()}
        place = operation.path.format_map(segments)
        tenant = [("tenant", name) for name in self.request.query_params.getlist("tenant")]
        said = [(name, str(value)) for name, value in query.items() if value is not None]
        return {
            "type": "http",
            "method": operation.method,
            "path": place,
            "raw_path": place.encode("ascii"),
            "query_string": urlencode([*tenant, *said]).encode("ascii"),
            "path_params": segments,
            "headers": _inner(self.request.headers.raw),
            "client": self.request.scope.get("client"),
        }


def _inner(headers: RawHeaders) -> RawHeaders:
    return [field for field in headers if field[0] not in _OUTER_HEADERS]


def _sends(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _read(raw: bytes, answer: type[T]) -> T:
    """Decode an answer; not strict, so that Unix seconds become dates.  Lone surrogates, which
    msgspec rejects, are replaced."""
    try:
        return msgspec.json.decode(raw, type=answer, strict=False)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        text = well_formed(json.dumps(decode(raw), ensure_ascii=False))
        return msgspec.json.decode(text.encode(), type=answer, strict=False)
