"""One request of an MCP client: who it is from, and the memory API's operations in its name.

An operation is asked for as if its own request had come: with the same credentials, from the same
peer, through the same checks.  There is no other way from here to the store.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from proxy.chat.jsontext import decode, well_formed
from proxy.errors import RawHeaders
from proxy.gateway.identity import Identity
from proxy.memory_api.access import Access
from proxy.memory_api.api import Api
from proxy.memory_api.body import LARGE
from proxy.memory_api.fields import invalid
from proxy.memory_api.openapi.operation import Operation
from proxy.memory_api.operation import handler_of
from proxy.wire.places import let_go

T = TypeVar("T")

_OF_THE_OUTER = frozenset(
    {
        b"content-length",
        b"content-type",
        b"transfer-encoding",
        b"idempotency-key",
        b"if-match",
        b"if-none-match",
    }
)
"""Headers that are about the MCP request itself, and would mean something else inside."""


class Visit(msgspec.Struct, frozen=True):
    """``identity``: what the headers of the request say of user and mode."""

    api: Api
    access: Access
    request: Request
    identity: Identity

    @property
    def reads(self) -> bool:
        """May memory be read?"""
        return self.identity.mode in ("on", "read")

    @property
    def writes(self) -> bool:
        """May memory be changed?"""
        return self.identity.mode in ("on", "write")

    def of_user(self, named: str | None) -> str | None:
        """Whose memory is meant, None where nobody says.

        Who set the header has bound the connection to one person: an argument, which a model
        writes, leads to nobody else.  Raises ProxyError 400.
        """
        bound = self.identity.user
        if bound is not None and named not in (None, bound):
            raise invalid("This connection is of another user (X-User-Id). Leave user out.", "user")
        return bound or named

    def user(self, named: str | None) -> str:
        """The same where somebody has to be meant.  Raises ProxyError 400."""
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
        """What an operation answers, as much of it as ``answer`` has.

        Values of ``path`` and ``query`` are plain text, None of ``query`` is left out.  Raises all
        that the operation does.
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
            let_go(scope)

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
    return [field for field in headers if field[0] not in _OF_THE_OUTER]


def _sends(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _read(raw: bytes, answer: type[T]) -> T:
    """Not strict: Unix seconds become a date.  Where half a surrogate pair is in it, which msgspec
    does not read, another character stands there."""
    try:
        return msgspec.json.decode(raw, type=answer, strict=False)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        text = well_formed(json.dumps(decode(raw), ensure_ascii=False))
        return msgspec.json.decode(text.encode(), type=answer, strict=False)
