"""The queue of background work in Redis, one for all tenants, and what the work has cost."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, cast, get_args
from urllib.parse import quote, unquote

from msgspec.structs import replace

from proxy.memory.model import Kind, SessionKey, Work, WorkRequest
from proxy.memory.usage import KEPT_DAYS, UsageKey, UsageTotals
from proxy.stores.redis.base import RedisBase, tag_of, with_timeout
from proxy.stores.redis.connection import collect_keys
from proxy.stores.redis.scripts import Script
from proxy.stores.redis.wire import raise_errors

SKIPPED_AT_ONCE = 4096
MAX_SKIPPED = 50_000
"""Limits on the pieces of excluded tenants that one read skips: in a batch, and in all."""

READ_TRIES, TIDIED_AT_ONCE = 16, 500
"""Attempts to read if pieces of names are lost; how many such names one script removes."""


class RedisQueue(RedisBase):
    """See :class:`proxy.memory.store.Queue`."""

    async def enqueue(self, key: SessionKey, due: WorkRequest) -> None:
        await self._enqueue(key, (due,))

    async def _enqueue(self, key: SessionKey, dues: Sequence[WorkRequest]) -> None:
        await self._write_script(self._scripts.work_enqueue, QUEUE_KEYS, due_arguments(key, dues))

    @with_timeout("read")
    async def waiting(
        self, now: float, limit: int, without: Collection[str] = ()
    ) -> Sequence[Work]:
        """Finds nothing that comes after ``MAX_SKIPPED`` pieces of excluded tenants."""
        for _ in range(READ_TRIES):
            pieces, lost = await self._find_due(now, limit, without)
            if not lost:
                break
            await self._tidy(lost)
        return pieces

    async def _find_due(
        self, now: float, limit: int, without: Collection[str]
    ) -> tuple[Sequence[Work], Sequence[bytes]]:
        """The pieces that are due first, and the names that are due but whose pieces are lost."""
        found, skipped, excluded = dict[bytes, bytes](), 0, _quoted_tenants(without)
        at_once = max(limit, SKIPPED_AT_ONCE) if excluded else limit
        while len(found) < limit and skipped < MAX_SKIPPED:
            names = await self._due(now, skipped, at_once)
            found |= {name: at for name, at in names if name.split(b":", 2)[1] not in excluded}
            skipped += at_once
            if len(names) < at_once:
                break
        return await self._read_pieces(dict(islice(found.items(), limit)))

    async def _due(self, now: float, first: int, limit: int) -> list[tuple[bytes, bytes]]:
        """The names and times of what is due, from the nth (``first``) on."""
        due = QUEUE_KEYS[0]
        search = ("ZRANGEBYSCORE", due, "-inf", repr(now), "WITHSCORES", "LIMIT", first, limit)
        (found,) = await self._link.many([(due, search)])
        return list(zip(found[::2], found[1::2], strict=True))

    async def _read_pieces(self, found: Mapping[bytes, bytes]) -> tuple[list[Work], list[bytes]]:
        if not found:
            return [], []
        pieces = QUEUE_KEYS[1]
        (packed,) = await self._link.many([(pieces, ("HMGET", pieces, *found))])
        packed_by_name = dict(zip(found, packed, strict=True))
        works = [
            read_piece(name, found[name], piece) for name, piece in packed_by_name.items() if piece
        ]
        return works, [name for name, piece in packed_by_name.items() if not piece]

    async def _tidy(self, names: Sequence[bytes]) -> None:
        for first in range(0, len(names), TIDIED_AT_ONCE):
            some = names[first : first + TIDIED_AT_ONCE]
            await self._scripts.read(self._scripts.work_drop_lost, QUEUE_KEYS, some)

    @with_timeout("read")
    async def requested_profiles(
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
        reply = await self._run_on(work, self._scripts.work_claim, repr(now), repr(until), lease)
        if not reply:
            return None
        requests, attempts, profile = reply
        return replace(
            work,
            profile=profile.decode(),
            due=until,
            requests=requests,
            attempts=attempts,
            lease=lease,
        )

    async def extend(self, work: Work, until: float) -> bool:
        return bool(await self._run_on(work, self._scripts.work_extend, work.lease, repr(until)))

    async def finish(self, work: Work, again: float) -> None:
        await self._run_on(work, self._scripts.work_finish, work.lease, work.requests, repr(again))

    async def postpone(self, work: Work, due: float, *, failed: bool) -> None:
        await self._run_on(work, self._scripts.work_postpone, work.lease, repr(due), int(failed))

    async def _forget_work(self, key: SessionKey) -> None:
        names = [piece_name(key, kind) for kind in get_args(Kind)]
        await self._write_script(self._scripts.work_forget, QUEUE_KEYS, names)

    async def _run_on(self, work: Work, script: Script, *arguments: Any) -> Any:
        name = piece_name(work.key, work.kind)
        return await self._write_script(script, QUEUE_KEYS, (name, *arguments))


# Keys, arguments and replies of the scripts

QUEUE_KEYS = [b"mp:{+work}:due", b"mp:{+work}:pieces"]
"""No tenant's hash tag has a plus sign, since it is percent-encoded."""


def piece_name(key: SessionKey, kind: Kind) -> str:
    return f"{kind}:{quote(key.tenant, safe='')}:{quote(key.session, safe='')}"


def due_arguments(key: SessionKey, dues: Sequence[WorkRequest]) -> list[Any]:
    arguments: list[Any] = []
    for due in dues:
        name = piece_name(key, due.kind)
        arguments += [name, due.profile, repr(due.due_at), due.min_requests, repr(due.due_if_fewer)]
    return arguments


def _quoted_tenants(tenants: Collection[str]) -> frozenset[bytes]:
    """Tenants as they are written in the names of pieces."""
    return frozenset(quote(tenant, safe="").encode() for tenant in tenants)


def profile_of(packed: bytes) -> str:
    """The profile in a packed piece."""
    return packed.decode().split(" ", 3)[3]


def read_piece(name: bytes, score: bytes, packed: bytes) -> Work:
    """A piece without a lease, from its name, its score (when it is due) and its packed rest."""
    kind, tenant, session = name.decode().split(":")
    asked, attempts, _, profile = packed.decode().split(" ", 3)
    return Work(
        tenant=unquote(tenant),
        session=unquote(session),
        kind=cast(Kind, kind),
        profile=profile,
        due=float(score),
        requests=int(asked),
        attempts=int(attempts),
    )


# Usage: a hash for each tenant and day

KEPT_SECONDS = KEPT_DAYS * 86_400
"""Time to live (s) of a day's hash after its last change."""

FIGURES = UsageTotals.__struct_fields__
"""The fields of UsageTotals; a hash has them for each feature, as in "calls facts"."""

_LEAVING = b"leaving-"


class RedisMeter(RedisBase):
    """See :class:`proxy.memory.usage.Meter`."""

    @with_timeout("write")
    async def add_usage(self, tenant: str, account: UsageKey, spent: UsageTotals) -> None:
        key = _key(tenant, account.day)
        counts = [
            ("HINCRBY", key, f"{figure} {account.feature}", getattr(spent, figure))
            for figure in FIGURES
        ]
        await self._link.many(
            [(key, command) for command in (*counts, ("EXPIRE", key, KEPT_SECONDS))]
        )

    @with_timeout("read")
    async def usage_of_days(
        self, tenant: str, days: Sequence[str]
    ) -> Mapping[UsageKey, UsageTotals]:
        keys = [_key(tenant, day) for day in days]
        replies = await self._link.many([(key, ("HGETALL", key)) for key in keys])
        found: dict[UsageKey, UsageTotals] = {}
        for day, flat in zip(days, replies, strict=True):
            found |= _read(day, flat)
        return found

    async def _move_spent(self, old: str, new: str) -> None:
        """Add a tenant's usage to another's.  Raises Redis' errors.

        A day's hash is renamed first, to a unique name: so what is spent meanwhile stays with the
        old tenant, and an interrupted move is continued by that name.
        """
        days = _key(old, "")
        for key in await collect_keys(self._link.scan(days + b"*")):
            if not key.startswith(days + _LEAVING):
                unique = f"{secrets.token_hex(8)}-".encode()
                renamed = days + _LEAVING + unique + key.removeprefix(days)
                raise_errors(await self._link.run(key, ("RENAME", key, renamed)))
        for key in await collect_keys(self._link.scan(days + _LEAVING + b"*")):
            await self._add(key, _key(new, key.decode()[-len("YYYY-MM-DD") :]))

    async def _add(self, renamed: bytes, target: bytes) -> None:
        (flat,) = raise_errors(await self._link.run(renamed, ("HGETALL", renamed)))
        added = self._scripts.usage_adopt
        await self._scripts.write(added, [target], (renamed, KEPT_SECONDS, *flat))
        raise_errors(await self._link.run(renamed, ("DEL", renamed)))
        raise_errors(await self._link.run(target, ("HDEL", target, renamed)))


def _key(tenant: str, day: str) -> bytes:
    return tag_of(tenant) + f"usage:{day}".encode()


def _read(day: str, flat: Sequence[bytes]) -> dict[UsageKey, UsageTotals]:
    """The usage of a day, from the reply to HGETALL."""
    figures: dict[str, dict[str, int]] = {}
    for field, number in zip(flat[::2], flat[1::2], strict=True):
        figure, _, feature = field.decode().partition(" ")
        if figure in FIGURES:
            figures.setdefault(feature, {})[figure] = int(number)
    return {UsageKey(day, feature): UsageTotals(**known) for feature, known in figures.items()}
