"""The memory API as the integrations ask it: one request, one answer, one kind of error."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import httpx
import msgspec
from pydantic import BaseModel

from proxy.integrations.terms import (
    NO_ANSWER_OF_OURS,
    UNREACHABLE,
    MemoryProxyError,
    NoAnswerInTime,
)

SECONDS = 30.0
"""How long a request of a client of our own may take at each step."""

LONG = httpx.Timeout(3600.0, connect=SECONDS)
"""The same where an answer comes when all is done, as the erasure of thousands of sessions."""


class _Answer(dict[str, Any]):
    """What the memory API has said.

    Where what it always says is missing, some other server answers with JSON too.
    """

    def __missing__(self, key: str) -> NoReturn:
        raise _failure(200, None)


class MemoryApi:
    """Asks the proxy at ``base_url``, with or without the ``/v1`` that SDKs want.

    ``api_key`` is the one that the application chats with: memory belongs to it.  ``tenant`` is for
    the administrator's key.  Threads may share it.  A ``client`` that is given stays open; one of
    our own is closed with this object.
    """

    def __init__(
        self, base_url: str, api_key: str | None, tenant: str | None, client: httpx.Client | None
    ) -> None:
        self._root = base_url.rstrip("/").removesuffix("/v1")
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._tenant = [("tenant", tenant)] if tenant else []
        self._client = client or httpx.Client(timeout=SECONDS)
        self._end = None if client else weakref.finalize(self, self._client.close)

    def ask(
        self,
        method: str,
        path: str,
        params: Sequence[tuple[str, str]] = (),
        body: bytes | Iterable[bytes] | None = None,
        *,
        long: bool = False,
    ) -> dict[str, Any]:
        """The answer, a JSON object.  Raises MemoryProxyError.

        ``path`` is below ``/memory/v1``, ids in it as :func:`segment` writes them.  A ``body`` in
        pieces is sent as they come.  ``long``: it may take its time, see LONG.
        """
        with self.stream(method, path, params, body, long=long) as response:
            response.read()
            return _object_of(response)

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        params: Sequence[tuple[str, str]] = (),
        body: bytes | Iterable[bytes] | None = None,
        *,
        long: bool = False,
    ) -> Iterator[httpx.Response]:
        """An answer that is still to be read.  Raises MemoryProxyError, also while it is read."""
        url = f"{self._root}/memory/v1{path}"
        query = httpx.QueryParams([*params, *self._tenant])
        timeout = LONG if long else httpx.USE_CLIENT_DEFAULT
        try:
            with self._client.stream(
                method, url, params=query, content=body, headers=self._headers, timeout=timeout
            ) as response:
                if not response.is_success:
                    response.read()
                    _object_of(response)
                yield response
        except httpx.LocalProtocolError:
            # Its own words quote the header: the key.
            sentence = f"Nothing is sent to {self._root}: HTTP cannot carry such a key."
            raise MemoryProxyError(None, UNREACHABLE, sentence) from None
        except httpx.ReadTimeout:
            sentence = f"No answer from {self._root} in time; what was asked may go on there."
            raise NoAnswerInTime(None, UNREACHABLE, sentence) from None
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            sentence = f"No answer from {self._root}: {reason}."
            raise MemoryProxyError(None, UNREACHABLE, sentence) from error

    def close(self) -> None:
        if self._end:
            self._end()


def is_address(url: str) -> bool:
    """Can it be that of a proxy?"""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parts.scheme in ("http", "https") and bool(parts.host)


def encoded(value: object) -> bytes:
    """JSON; times, UUIDs, sets, dataclasses and pydantic models as what JSON has for them.  Raises
    TypeError for what has no JSON, ValueError for NaN, infinity and lone surrogates."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    return text.encode()


def _plain(value: object) -> object:
    return msgspec.to_builtins(value, enc_hook=_dumped)


def _dumped(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot be put into JSON")


def _object_of(response: httpx.Response) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        found = None
    if response.is_success and isinstance(found, dict):
        return _Answer(found)
    raise _failure(response.status_code, found)


def _failure(status: int, found: object) -> MemoryProxyError:
    error = found.get("error") if isinstance(found, dict) else None
    match error:  # codes of ours are words; those of model servers may be numbers, or null
        case {"code": str(code), "message": str(message)}:
            return MemoryProxyError(status, code, message)
    sentence = f"What answered, with status {status}, is not the proxy's memory API."
    return MemoryProxyError(status, NO_ANSWER_OF_OURS, sentence)
