"""``Idempotency-Key`` on requests that create something: two attempts create it once.

Answers are not stored.  The ids of what a request creates are hashes of its tenant, path and key,
so that a second attempt finds it, or creates what the first did not complete.  Only a hash of the
body is stored, for a day, to recognise another request with the same key; it is keyed, so that
nothing can be inferred about the body.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from urllib.parse import quote, unquote_to_bytes

import msgspec
from msgspec.structs import replace
from starlette.requests import Request

from proxy.errors import invalid_header, memory_unavailable
from proxy.learning.collection import delete_change, put_change
from proxy.memory.items import REQUESTS, Item, ItemOwner, Items, Place
from proxy.memory.model import IDEMPOTENCY_SECONDS
from proxy.memory_api.errors import idempotency_key_reused

HEADER = "Idempotency-Key"

ATTEMPTS = 5

_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a request.  ``body``: its hash.  ``at``: its first attempt, Unix seconds.
    ``done``: everything was created.
    """

    body: str
    at: float
    done: bool = False


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a request with a key.

    ``mark`` is the same for all attempts, and differs between requests.  ``is_repeat``: not the
    first attempt.
    """

    mark: str
    record: RequestRecord
    is_repeat: bool = False

    @property
    def at(self) -> float:
        return self.record.at

    @property
    def done(self) -> bool:
        return self.record.done


class IdempotentRequest:
    """A request with its record, which is stored among the tenant's own items.

    All methods raise StoreError.
    """

    def __init__(self, items: Items, request: Request, tenant: str, body: bytes) -> None:
        self._items, self._owner = items, ItemOwner(tenant)
        self._request, self._tenant, self._body = request, tenant, body

    async def attempt(self) -> Attempt | None:
        """This attempt; None without a key.

        Call it after validation, so that an invalid request can be corrected and sent with the same
        key.  Raises ProxyError 400 and 422.
        """
        key = self._request.headers.get(HEADER)
        if key is None:
            return None
        if not _KEY.fullmatch(key):
            message = f"{HEADER} must be 1 to 255 visible ASCII characters."
            raise invalid_header(message, HEADER)
        path = _normalized_path(self._request.scope["raw_path"])
        mark = _hash(self._tenant.encode(), path, key.encode())
        first = RequestRecord(body=_hash(mark.encode(), key.encode(), self._body), at=time.time())
        for _ in range(ATTEMPTS):
            if await self._put(mark, first, 0):
                return Attempt(mark, first)
            item = await self._load(mark)
            if item is not None:
                return _repeated(mark, first, msgspec.json.decode(item.value, type=RequestRecord))
        raise memory_unavailable()

    async def done(self, attempt: Attempt) -> None:
        """Record that everything was created: what is deleted later is not created again."""
        if not attempt.done:
            await self._put(attempt.mark, replace(attempt.record, done=True), None)

    async def drop(self, attempt: Attempt) -> None:
        """Delete the record: nothing was created, and the key may be used again."""
        await self._items.change_items(self._owner, [delete_change(_place(attempt.mark))])

    async def _put(self, mark: str, record: RequestRecord, after: int | None) -> bool:
        change = put_change(_place(mark), record, after, time.time() + IDEMPOTENCY_SECONDS)
        return await self._items.change_items(self._owner, [change])

    async def _load(self, mark: str) -> Item | None:
        place = _place(mark)
        return (await self._items.items_at(self._owner, [place])).get(place)


def _repeated(mark: str, current: RequestRecord, stored: RequestRecord) -> Attempt:
    if stored.body != current.body:
        raise idempotency_key_reused()
    return Attempt(mark, stored, is_repeat=True)


def _normalized_path(path: bytes) -> bytes:
    """A path with one spelling of each character: "~" may be sent as "%7E"."""
    segments = [unquote_to_bytes(segment) for segment in path.split(b"/")]
    return b"/".join(quote(segment, safe="").encode("ascii") for segment in segments)


def _place(mark: str) -> Place:
    return Place((REQUESTS,), mark)


def _hash(*parts: bytes) -> str:
    """A hash of 22 characters, for ids and keys; the boundaries of the parts count."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8) + part)
    return base64.urlsafe_b64encode(whole.digest())[:22].decode("ascii")
