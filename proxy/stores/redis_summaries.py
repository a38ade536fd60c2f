"""The versions of a session's summary in Redis."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from proxy.memory.model import SessionKey
from proxy.memory.summary import MOST_VERSIONS, Summary
from proxy.stores.marks import of_session
from proxy.stores.redis_base import RedisBase
from proxy.stores.redis_keys import mark_key, session_keys
from proxy.stores.redis_link import bounded, checked
from proxy.stores.redis_values import pack_version, read_version


class RedisSummaries(RedisBase):
    """See :class:`proxy.memory.store.Summaries`."""

    async def summaries(self, key: SessionKey) -> Sequence[Summary]:
        return await bounded(self._summaries(key), self._timeout)

    async def _summaries(self, key: SessionKey) -> Sequence[Summary]:
        keys = session_keys(key)
        meta, versions = keys[0], keys[-1]
        # Keys of one session expire together, but not in the same instant on every server.
        look = self._link.run(meta, ("EXISTS", meta), ("HVALS", versions))
        there, found = checked(await look)
        kept = map(read_version, found if there else ())
        return sorted(kept, key=lambda summary: summary.version, reverse=True)

    async def put_summary(
        self,
        key: SessionKey,
        summary: Summary,
        after: int,
        changes: int | None,
        since: float | None = None,
    ) -> bool:
        packed = pack_version(replace(summary, version=after + 1))
        at, read = "" if changes is None else changes, "" if since is None else repr(since)
        keys = [*session_keys(key), mark_key(of_session(key))]
        arguments = (packed, after, at, MOST_VERSIONS, read)
        work = self._scripts.write(self._scripts.summary_put, keys, arguments)
        return bool(await bounded(work, self._commit_timeout))

    async def drop_summaries(self, key: SessionKey) -> bool:
        work = self._scripts.write(self._scripts.summary_drop, session_keys(key), ())
        return bool(await bounded(work, self._commit_timeout))

    async def stall(self, key: SessionKey) -> None:
        work = self._scripts.write(self._scripts.summary_stall, session_keys(key), ())
        await bounded(work, self._commit_timeout)
