"""What all parts of the Redis store have in common: keys, the way to the servers, and limits of
time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import lru_cache, wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar
from urllib.parse import quote, unquote

import msgspec
from redis.asyncio.sentinel import MasterNotFoundError
from redis.exceptions import (
    AuthenticationError,
    ClusterCrossSlotError,
    MovedError,
    RedisClusterException,
    RedisError,
)
from redis.exceptions import TimeoutError as RedisTimeoutError

from proxy.memory.erasure import Subject
from proxy.memory.limit import TimeLimit
from proxy.memory.locks import Locks
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError, StoreFull, StoreTimeout
from proxy.stores.common.damage import DAMAGE_ERRORS, as_damage
from proxy.stores.common.log_cache import LogCache
from proxy.stores.common.passage_cache import PassageCache
from proxy.stores.redis.connection import Link
from proxy.stores.redis.scripts import Script, Scripts

PARTS = (b"meta", b"cards", b"log", b"active", b"exchanges", b"keys", b"choices", b"summaries")
"""The keys of a session, in the order in which every script gets them."""

FULL = "when used memory > 'maxmemory'"
"""The message of a server without free memory; before Redis 7 scripts give it no code."""

ANY_LIST = b"mp:{*}:sessions"
"""The pattern of the keys of all lists of sessions."""


def session_keys(key: SessionKey, prefix: bytes = b"") -> list[bytes]:
    """All keys of a session: one hash tag, so one slot, and no two sessions share it.

    Percent-encoding leaves neither braces nor colons in a tenant or a session id.  With ``prefix``
    other names in the same slot.
    """
    tag = tag_of(key.tenant, key.session) + prefix
    return [tag + part for part in PARTS]


def list_keys(tenant: str, user: str | None = None) -> list[bytes]:
    """The list of a tenant's sessions, or of one user's, and when their entries expire."""
    tag = tag_of(tenant, user)
    return [tag + b"sessions", tag + b"expiries"]


def mark_key(subject: Subject) -> bytes:
    """The key of an erasure's mark, which is not one of the session's own keys.

    It is in the slot of the session, or in that of the person's list and items.  The two have
    different names, since a session and a person may have the same id, and then the same hash tag.
    """
    if subject.session:
        return tag_of(subject.tenant, subject.session) + b"erased"
    return tag_of(subject.tenant, subject.user or None) + b"person-erased"


def format_time(at: float | None) -> str:
    """A time as an argument of scripts, "" for None."""
    return "" if at is None else repr(at)


def tag_pattern(tenant: str) -> bytes:
    """The pattern of the beginning of all keys of a tenant's sessions and users."""
    return f"mp:{{{quote(tenant, safe='')}:*}}:".encode()


def head_pattern(tenant: str) -> bytes:
    """The pattern of the heads of all sessions of a tenant, and of its indexes."""
    return tag_pattern(tenant) + b"*meta"


def read_head(key: bytes) -> str | None:
    """The session of a head's key; None for the head of an index."""
    who, _, part = key.decode().partition("}:")
    return unquote(who.rpartition(":")[2]) if part == "meta" else None


def read_tenant(key: bytes) -> str | None:
    """The tenant of a key of a list of all sessions; None for a user's list."""
    who = key.decode().removeprefix("mp:{").removesuffix("}:sessions")
    return None if ":" in who else unquote(who)


def field_of(seq: int) -> bytes:
    return b"%010d" % seq


@lru_cache(maxsize=4096)
def tag_of(tenant: str, name: str | None = None) -> bytes:
    """The beginning of keys: the hash tag of a tenant, or of one of its sessions or users."""
    who = quote(tenant, safe="")
    if name is not None:
        who = f"{who}:{quote(name, safe='')}"
    return f"mp:{{{who}}}:".encode()


T = TypeVar("T")
P = ParamSpec("P")
StoreT = TypeVar("StoreT", bound="RedisBase")


def with_timeout(
    limit: Literal["read", "write"] | float,
) -> Callable[
    [Callable[Concatenate[StoreT, P], Awaitable[T]]],
    Callable[Concatenate[StoreT, P], Coroutine[Any, Any, T]],
]:
    """Decorates a method with the timeout of a read, of a write, or of so many seconds.

    Errors of Redis become StoreErrors.
    """

    def decorated(
        work: Callable[Concatenate[StoreT, P], Awaitable[T]],
    ) -> Callable[Concatenate[StoreT, P], Coroutine[Any, Any, T]]:
        @wraps(work)
        async def method(self: StoreT, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await bounded(work(self, *args, **kwargs), self._seconds(limit))

        return method

    return decorated


def limits_concurrency(
    work: Callable[Concatenate[StoreT, P], Awaitable[T]],
) -> Callable[Concatenate[StoreT, P], Coroutine[Any, Any, T]]:
    """Decorates a method that may read much: it waits until fewer than ``PAGES_AT_ONCE`` others
    run, and its timeout (see ``with_timeout``) starts after that."""

    @wraps(work)
    async def method(self: StoreT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._page_slots:
            return await work(self, *args, **kwargs)

    return method


async def bounded(work: Awaitable[T], seconds: float) -> T:
    """The result of ``work``.  The one place where Redis' errors become StoreError."""
    try:
        async with TimeLimit(seconds):
            return await work
    except (TimeoutError, RedisTimeoutError) as error:
        raise StoreTimeout(f"Redis took longer than {seconds:g} s") from error
    except (RedisError, RedisClusterException, OSError, msgspec.MsgspecError) as error:
        kind = StoreFull if FULL in str(error) else StoreError
        raise kind(f"Redis: {_explain(error)}") from error
    except DAMAGE_ERRORS as error:
        raise as_damage(error) or error from error.__cause__


def _explain(error: Exception) -> str:
    """A hint for errors that a wrong URL causes; else the error's own message."""
    if isinstance(error, AuthenticationError):
        return "its user or password is missing or wrong: write redis://USER:PASSWORD@host"
    if isinstance(error, MasterNotFoundError):
        return "no Sentinel answers and knows a master of this name"
    if isinstance(error, MovedError | ClusterCrossSlotError):
        return "it is a server of a Cluster, and has not all keys: write redis+cluster://host"
    text = str(error).replace("`", "'")  # quotes before Redis 7
    if text.startswith("unknown command 'SET'"):
        return "a Sentinel keeps nothing itself: write redis+sentinel://host/service"
    if text.startswith("unknown command 'SENTINEL'"):
        return "what answers there is no Sentinel: write redis://host"
    return str(error)


PAGES_AT_ONCE = 4
"""Pages that are read concurrently: each may have megabytes."""


class RedisBase:
    """``timeout`` bounds each read, ``commit_timeout`` each step of a write, in seconds.

    ``one_slot`` says that all keys are on one server, so that one script can write several of them.
    """

    def __init__(
        self,
        link: Link,
        scripts: Scripts,
        timeout: float,
        commit_timeout: float,
        clock: Callable[[], float],
        *,
        one_slot: bool,
    ) -> None:
        self._link = link
        self._scripts = scripts
        self._timeout = timeout
        self._commit_timeout = commit_timeout
        self._clock = clock
        self._page_slots = asyncio.Semaphore(PAGES_AT_ONCE)
        self._one_slot = one_slot
        self._logs = LogCache()
        self._long_loads: Locks[str] = Locks()
        self._passages = PassageCache()

    def _clear_caches(self) -> None:
        self._logs.clear()
        self._passages.clear()

    def _seconds(self, limit: Literal["read", "write"] | float) -> float:
        if limit == "read":
            return self._timeout
        return self._commit_timeout if limit == "write" else limit

    @with_timeout("read")
    async def _read_script(
        self, script: Script, keys: Sequence[bytes], arguments: Sequence[Any]
    ) -> Any:
        return await self._scripts.read(script, keys, arguments)

    @with_timeout("write")
    async def _write_script(
        self, script: Script, keys: Sequence[bytes], arguments: Sequence[Any]
    ) -> Any:
        """Run a script that writes; waits for replicas if configured."""
        return await self._scripts.write(script, keys, arguments)

    @with_timeout("write")
    async def _write_unreplicated(
        self, script: Script, keys: Sequence[bytes], arguments: Sequence[Any]
    ) -> int:
        """Run a script whose write may be lost, since it is then repeated: waits for no replica."""
        return int(await self._scripts.read(script, keys, arguments))

    async def _scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """See ``Link.scan``; each step has the timeout of a write."""
        steps = self._link.scan(pattern)
        while (keys := await bounded(anext(steps, None), self._commit_timeout)) is not None:
            yield keys

    @with_timeout("write")
    async def _run_command(self, key: bytes, *command: Any) -> Any:
        (reply,) = await self._link.many([(key, command)])
        return reply
