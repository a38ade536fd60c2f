"""The queue of work in Redis, in one slot, whosever the work is, and what the work has cost."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, cast, get_args
from urllib.parse import quote, unquote

from msgspec.structs import replace

from proxy.memory.model import Due, Kind, SessionKey, Work
from proxy.memory.usage import KEPT_DAYS, UsageKey, UsageTotals
from proxy.stores.redis.base import RedisBase, tag_of, with_timeout
from proxy.stores.redis.connection import collect_keys
from proxy.stores.redis.scripts import Script
from proxy.stores.redis.wire import raise_errors

PASSED_AT_ONCE = 4096
MAX_SKIPPED = 50_000
"""Pieces that one look reads past, because they are of tenants that it is without."""

LOOKS, TIDIED_AT_ONCE = 16, 500
"""Looks at most, where names are in the way whose pieces are lost; how many a script forgets."""


class RedisQueue(RedisBase):
    """See :class:`proxy.memory.store.Queue`."""

    async def enqueue(self, key: SessionKey, due: Due) -> None:
        await self._enqueue(key, (due,))

    async def _enqueue(self, key: SessionKey, dues: Sequence[Due]) -> None:
        await self._write_script(self._scripts.work_enqueue, QUEUE_KEYS, due_arguments(key, dues))

    @with_timeout("read")
    async def waiting(
        self, now: float, limit: int, without: Collection[str] = ()
    ) -> Sequence[Work]:
        """Of more than ``MAX_SKIPPED`` that are passed over, those behind are not found."""
        for _ in range(LOOKS):
            pieces, lost = await self._look_for(now, limit, without)
            if not lost:
                break
            await self._tidy(lost)
        return pieces

    async def _look_for(
        self, now: float, limit: int, without: Collection[str]
    ) -> tuple[Sequence[Work], Sequence[bytes]]:
        """The pieces that are due first, and names among these of which none is kept."""
        found, passed, others = dict[bytes, bytes](), 0, _tenants_in_names(without)
        at_once = max(limit, PASSED_AT_ONCE) if others else limit
        while len(found) < limit and passed < MAX_SKIPPED:
            names = await self._due(now, passed, at_once)
            found |= {name: at for name, at in names if _tenant_in(name) not in others}
            passed += at_once
            if len(names) < at_once:
                break
        return await self._pieces(dict(islice(found.items(), limit)))

    async def _due(self, now: float, first: int, limit: int) -> list[tuple[bytes, bytes]]:
        """The names and the times of what is due, from the nth on."""
        due = QUEUE_KEYS[0]
        search = ("ZRANGEBYSCORE", due, "-inf", repr(now), "WITHSCORES", "LIMIT", first, limit)
        (found,) = await self._link.many([(due, search)])
        return list(zip(found[::2], found[1::2], strict=True))

    async def _pieces(self, found: Mapping[bytes, bytes]) -> tuple[list[Work], list[bytes]]:
        if not found:
            return [], []
        pieces = QUEUE_KEYS[1]
        (packed,) = await self._link.many([(pieces, ("HMGET", pieces, *found))])
        kept = dict(zip(found, packed, strict=True))
        works = [read_piece(name, found[name], piece) for name, piece in kept.items() if piece]
        return works, [name for name, piece in kept.items() if not piece]

    async def _tidy(self, names: Sequence[bytes]) -> None:
        for first in range(0, len(names), TIDIED_AT_ONCE):
            some = names[first : first + TIDIED_AT_ONCE]
            await self._scripts.read(self._scripts.work_tidy, QUEUE_KEYS, some)

    @with_timeout("read")
    async def asked_for(
        self, tenant: str, sessions: Sequence[str], kind: Kind
    ) -> Mapping[str, str]:
        if not sessions:
            return {}
        names = [piece_name(SessionKey(tenant, session), kind) for session in sessions]
        pieces = QUEUE_KEYS[1]
        (packed,) = await self._link.many([(pieces, ("HMGET", pieces, *names))])
        found = zip(sessions, packed, strict=True)
        return {session: profile_of(piece) for session, piece in found if piece}

    async def claim(self, work: Work, now: float, until: float) -> Work | None:
        lease = secrets.token_hex(8)
        reply = await self._of(work, self._scripts.work_claim, repr(now), repr(until), lease)
        if not reply:
            return None
        asked, attempts, profile = reply
        return replace(
            work,
            profile=profile.decode(),
            due=until,
            asked=asked,
            attempts=attempts,
            lease=lease,
        )

    async def extend(self, work: Work, until: float) -> bool:
        return bool(await self._of(work, self._scripts.work_extend, work.lease, repr(until)))

    async def finish(self, work: Work, again: float) -> None:
        await self._of(work, self._scripts.work_finish, work.lease, work.asked, repr(again))

    async def put_off(self, work: Work, due: float, *, failed: bool) -> None:
        await self._of(work, self._scripts.work_put_off, work.lease, repr(due), int(failed))

    async def _forget_work(self, key: SessionKey) -> None:
        await self._write_script(self._scripts.work_forget, QUEUE_KEYS, all_names(key))

    async def _of(self, work: Work, script: Script, *arguments: Any) -> Any:
        return await self._write_script(script, QUEUE_KEYS, (name_of(work), *arguments))


# Keys and arguments of its scripts, and what they reply

QUEUE_KEYS = [b"mp:{+work}:due", b"mp:{+work}:pieces"]
"""One queue for all; no tenant's tag has a plus sign, which percent-encoding would not leave."""


def piece_name(key: SessionKey, kind: Kind) -> str:
    return f"{kind}:{quote(key.tenant, safe='')}:{quote(key.session, safe='')}"


def name_of(work: Work) -> str:
    return piece_name(SessionKey(work.tenant, work.session), work.kind)


def all_names(key: SessionKey) -> list[str]:
    """What work on a session may be called."""
    return [piece_name(key, kind) for kind in get_args(Kind)]


def due_arguments(key: SessionKey, dues: Sequence[Due]) -> list[Any]:
    arguments: list[Any] = []
    for due in dues:
        name = piece_name(key, due.kind)
        arguments += [name, due.profile, repr(due.at), due.after, repr(due.later)]
    return arguments


def _tenants_in_names(tenants: Collection[str]) -> frozenset[bytes]:
    """Tenants as the names of pieces have them."""
    return frozenset(quote(tenant, safe="").encode() for tenant in tenants)


def _tenant_in(name: bytes) -> bytes:
    return name.split(b":", 2)[1]


def profile_of(packed: bytes) -> str:
    """The profile of a piece, from what is kept of it."""
    return packed.decode().split(" ", 3)[3]


def read_piece(name: bytes, score: bytes, packed: bytes) -> Work:
    """A piece that nobody holds, from its name, its score and what is kept of it."""
    kind, tenant, session = name.decode().split(":")
    asked, attempts, _, profile = packed.decode().split(" ", 3)
    return Work(
        tenant=unquote(tenant),
        session=unquote(session),
        kind=cast(Kind, kind),
        profile=profile,
        due=float(score),
        asked=int(asked),
        attempts=int(attempts),
    )


# What it has cost: a hash for each tenant and day

KEPT = KEPT_DAYS * 86_400
"""Seconds that a day is kept after something was spent on it."""

FIGURES = UsageTotals.__struct_fields__
"""The fields of Spent; a hash has them for each feature as "calls facts"."""

_LEAVING = b"leaving-"


class RedisMeter(RedisBase):
    """See :class:`proxy.memory.usage.Meter`."""

    @with_timeout("write")
    async def spend(self, tenant: str, account: UsageKey, spent: UsageTotals) -> None:
        key = _key(tenant, account.day)
        counts = [
            ("HINCRBY", key, f"{figure} {account.feature}", getattr(spent, figure))
            for figure in FIGURES
        ]
        await self._link.many([(key, command) for command in (*counts, ("EXPIRE", key, KEPT))])

    @with_timeout("read")
    async def spent(self, tenant: str, days: Sequence[str]) -> Mapping[UsageKey, UsageTotals]:
        keys = [_key(tenant, day) for day in days]
        replies = await self._link.many([(key, ("HGETALL", key)) for key in keys])
        found: dict[UsageKey, UsageTotals] = {}
        for day, flat in zip(days, replies, strict=True):
            found |= _read(day, flat)
        return found

    async def _move_spent(self, old: str, new: str) -> None:
        """Add what a tenant has spent to another's.  Raises errors of Redis.

        A day is put aside under a name of its own first: what is spent on it meanwhile stays, and
        what was cut short is done again by this name.
        """
        days = _key(old, "")
        for key in await collect_keys(self._link.scan(days + b"*")):
            if not key.startswith(days + _LEAVING):
                once = f"{secrets.token_hex(8)}-".encode()
                aside = days + _LEAVING + once + key.removeprefix(days)
                raise_errors(await self._link.run(key, ("RENAME", key, aside)))
        for key in await collect_keys(self._link.scan(days + _LEAVING + b"*")):
            await self._add(key, _key(new, key.decode()[-len("YYYY-MM-DD") :]))

    async def _add(self, aside: bytes, there: bytes) -> None:
        (flat,) = raise_errors(await self._link.run(aside, ("HGETALL", aside)))
        added = self._scripts.usage_adopt
        await self._scripts.write(added, [there], (aside, KEPT, *flat))
        raise_errors(await self._link.run(aside, ("DEL", aside)))
        raise_errors(await self._link.run(there, ("HDEL", there, aside)))


def _key(tenant: str, day: str) -> bytes:
    return tag_of(tenant) + f"usage:{day}".encode()


def _read(day: str, flat: Sequence[bytes]) -> dict[UsageKey, UsageTotals]:
    """What was spent on a day, from the reply to HGETALL."""
    figures: dict[str, dict[str, int]] = {}
    for field, number in zip(flat[::2], flat[1::2], strict=True):
        figure, _, feature = field.decode().partition(" ")
        if figure in FIGURES:
            figures.setdefault(feature, {})[figure] = int(number)
    return {UsageKey(day, feature): UsageTotals(**known) for feature, known in figures.items()}
