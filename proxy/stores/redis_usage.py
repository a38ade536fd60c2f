"""What was spent, in Redis: a hash for each tenant and day."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from proxy.memory.usage import Account, Spent
from proxy.stores.redis_base import RedisBase
from proxy.stores.redis_link import bounded, checked

KEPT = 400 * 86_400
"""Seconds that a day is kept after something was spent on it."""

FIGURES = Spent.__struct_fields__
"""The fields of Spent; a hash has them for each feature as "calls facts"."""

_LEAVING = b"leaving-"


class RedisMeter(RedisBase):
    """See :class:`proxy.memory.usage.Meter`."""

    async def spend(self, tenant: str, account: Account, spent: Spent) -> None:
        key = _key(tenant, account.day)
        counts = [
            ("HINCRBY", key, f"{figure} {account.feature}", getattr(spent, figure))
            for figure in FIGURES
        ]
        commands = [(key, command) for command in (*counts, ("EXPIRE", key, KEPT))]
        await bounded(self._link.many(commands), self._commit_timeout)

    async def spent(self, tenant: str, days: Sequence[str]) -> Mapping[Account, Spent]:
        keys = [_key(tenant, day) for day in days]
        read = self._link.many([(key, ("HGETALL", key)) for key in keys])
        found: dict[Account, Spent] = {}
        for day, flat in zip(days, await bounded(read, self._timeout), strict=True):
            found |= _read(day, flat)
        return found

    async def _move_spent(self, old: str, new: str) -> None:
        """Add what a tenant has spent to another's.  Raises errors of Redis.

        A day is put aside under a name of its own first: what is spent on it meanwhile stays, and
        what was cut short is done again by this name.
        """
        days = _key(old, "")
        for key in set(await self._link.scan(days + b"*")):
            if not key.startswith(days + _LEAVING):
                once = f"{secrets.token_hex(8)}-".encode()
                aside = days + _LEAVING + once + key.removeprefix(days)
                checked(await self._link.run(key, ("RENAME", key, aside)))
        for key in set(await self._link.scan(days + _LEAVING + b"*")):
            await self._add(key, _key(new, key.decode()[-len("YYYY-MM-DD") :]))

    async def _add(self, aside: bytes, there: bytes) -> None:
        (flat,) = checked(await self._link.run(aside, ("HGETALL", aside)))
        added = self._scripts.usage_adopt
        await self._scripts.write(added, [there], (aside, KEPT, *flat))
        checked(await self._link.run(aside, ("DEL", aside)))
        checked(await self._link.run(there, ("HDEL", there, aside)))


def _key(tenant: str, day: str) -> bytes:
    return f"mp:{{{quote(tenant, safe='')}}}:usage:{day}".encode()


def _read(day: str, flat: Sequence[bytes]) -> dict[Account, Spent]:
    """What was spent on a day, from the reply to HGETALL."""
    figures: dict[str, dict[str, int]] = {}
    for field, number in zip(flat[::2], flat[1::2], strict=True):
        figure, _, feature = field.decode().partition(" ")
        if figure in FIGURES:
            figures.setdefault(feature, {})[figure] = int(number)
    return {Account(day, feature): Spent(**known) for feature, known in figures.items()}
