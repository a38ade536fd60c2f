"""The same request twice is one request: Idempotency-Key on what creates something.

No answer is kept.  What a request creates has ids that are made from its tenant, path and key, so
that a second attempt finds it there, or creates what the first one did not get to.  Kept is a
fingerprint of the body, for a day: it says whether it is the same request, and, since it is made
with the key, nothing of what the body says.
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
    """What is kept of a request; ``done``: it has created what it was to create.

    ``at``: when it came first, Unix seconds.
    """

    body: str
    at: float
    done: bool = False


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a request with a key.

    ``mark`` is the same for all of them and for no other request.  ``again``: it has come before.
    """

    mark: str
    seen: RequestRecord
    again: bool = False

    @property
    def at(self) -> float:
        return self.seen.at

    @property
    def done(self) -> bool:
        return self.seen.done


class IdempotentRequest:
    """One request: which requests have come is stored among the tenant's own items.

    All methods raise StoreError.
    """

    def __init__(self, items: Items, request: Request, tenant: str, body: bytes) -> None:
        self._items, self._owner = items, ItemOwner(tenant)
        self._request, self._tenant, self._body = request, tenant, body

    async def attempt(self) -> Attempt | None:
        """The attempt that this request is, None without a key.

        To be asked for a request that is right in itself: one that is refused may be put right and
        come again with its key.  Raises ProxyError 400 and 422.
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
            found = await self._found(mark)
            if found is not None:
                return _repeated(mark, first, msgspec.json.decode(found.value, type=RequestRecord))
        raise memory_unavailable()

    async def done(self, attempt: Attempt) -> None:
        """Record that everything was created: what is deleted later is not created again."""
        if not attempt.done:
            await self._put(attempt.mark, replace(attempt.seen, done=True), None)

    async def dropped(self, attempt: Attempt) -> None:
        """Delete the record: nothing was created, and the key may be used again."""
        await self._items.change_items(self._owner, [delete_change(_place(attempt.mark))])

    async def _put(self, mark: str, seen: RequestRecord, after: int | None) -> bool:
        change = put_change(_place(mark), seen, after, time.time() + IDEMPOTENCY_SECONDS)
        return await self._items.change_items(self._owner, [change])

    async def _found(self, mark: str) -> Item | None:
        place = _place(mark)
        return (await self._items.items_at(self._owner, [place])).get(place)


def _repeated(mark: str, now: RequestRecord, seen: RequestRecord) -> Attempt:
    if seen.body != now.body:
        raise idempotency_key_reused()
    return Attempt(mark, seen, again=True)


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
