"""The index over the history in a SQLite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proxy.recall.index import Batch, Look, Owner, Rows
from proxy.stores import sqlite_index
from proxy.stores.sqlite_file import SQLiteFile


class SQLiteIndex(SQLiteFile):
    """See :class:`proxy.recall.index.Index`."""

    async def look(
        self, owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> Look:
        now = self._clock()
        return await self._read(lambda c: sqlite_index.look(c, owner, terms, newest, session, now))

    async def rows(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        now = self._clock()
        return await self._read(lambda c: sqlite_index.rows(c, owner, numbers, now))

    async def write(self, owner: Owner, batch: Batch) -> bool:
        now = self._clock()
        return await self._write(lambda c: sqlite_index.write(c, owner, batch, now))

    async def drop_session(self, owner: Owner, session: str) -> None:
        now = self._clock()
        await self._write(lambda c: sqlite_index.drop_session(c, owner, session, now))

    async def drop(self, owner: Owner) -> None:
        await self._erase(lambda c: sqlite_index.drop(c, owner))

    async def put_vectors(
        self, owner: Owner, model: str, size: int, vectors: Mapping[int, bytes]
    ) -> None:
        now = self._clock()
        await self._write(lambda c: sqlite_index.put_vectors(c, owner, model, size, vectors, now))

    async def vectors(self, owner: Owner, model: str, size: int, first: int, last: int) -> bytes:
        now = self._clock()
        return await self._read(
            lambda c: sqlite_index.vectors(c, owner, model, size, first, last, now)
        )
