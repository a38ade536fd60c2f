"""The index in Redis: strings of packed rows and postings, under the hash tag of their owner.

Nothing here waits for replicas: an index that is behind after a failover is caught up, and one that
is lost is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import pack
from typing import Any

from msgspec.structs import replace

from proxy.memory.model import SessionKey
from proxy.recall.index import (
    EVERY_POSTING,
    NO_POSTINGS,
    POSTING_SIZE,
    TERM_SIZE,
    IndexBatch,
    IndexLost,
    IndexMark,
    Look,
    Owner,
    Postings,
    Rows,
    WholeIndex,
    split_terms,
)
from proxy.stores.redis import told
from proxy.stores.redis.base import RedisBase, format_time, session_keys, tag_of, with_timeout

LEFT, LOST = -1, -2
"""What index_write.lua says."""

AT_ONCE = 1000
"""Keys that one script renews or removes, so that it never blocks the server for long."""


class RedisIndex(RedisBase):
    """See :class:`proxy.recall.index.Index`."""

    async def look(
        self, owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> Look:
        if not terms and (just := told.take_index_look(self._passages, owner, session)):
            return read_look(just, 0)
        keys = index_keys(owner) + term_keys(owner, terms)
        reply = await self._look(self._scripts.index_look, keys, (newest, session))
        return read_look(reply, len(terms))

    @with_timeout("read")
    async def whole(self, owner: Owner, most: int, session: str = "") -> WholeIndex | None:
        meta, *_, vocabulary, _ = index_keys(owner)
        read = ("GETRANGE", vocabulary, 0, (most + 1) * TERM_SIZE - 1)
        there = ("EXISTS", vocabulary)
        asked = [(meta, ("HGET", meta, "revision")), (vocabulary, there), (vocabulary, read)]
        revision, named, joined = await self._link.many(asked)
        if revision is None or not named or len(joined) > most * TERM_SIZE:
            return None
        terms = split_terms(joined)
        look = await self.look(owner, terms, EVERY_POSTING, session)
        # Of the same revision before the terms and behind them: so these are all.
        return WholeIndex(terms, look) if look.revision == int(revision) else None

    async def rows(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        arguments = (pack(f"<{len(numbers)}I", *numbers),)
        reply = await self._look(self._scripts.index_rows, index_keys(owner), arguments)
        return read_rows(reply)

    async def write(self, owner: Owner, batch: IndexBatch) -> bool:
        if batch.began is None or self._one_slot or owner.session:
            return await self._add_batch(owner, batch)
        done = await self._add_batch(owner, replace(batch, began=None))
        return done and await self._kept(owner, batch)

    async def _kept(self, owner: Owner, batch: IndexBatch) -> bool:
        """A session that lies on another server, and was erased meanwhile, leaves nothing.

        Behind the writing: who erases either finds it in the index, or it is found here.  An index
        that was there is only added to as it was, so an erased person's was made anew.
        """
        meta = session_keys(SessionKey(owner.tenant, batch.session))[0]
        began = await self._ask(meta, "HGET", meta, "created")
        if began is not None and float(began) == batch.began:
            return True
        if batch.revision:
            await self.drop_session(owner, batch.session)
        else:
            await self.drop(owner)
        return False

    async def _add_batch(self, owner: Owner, batch: IndexBatch) -> bool:
        keys = index_keys(owner) + term_keys(owner, list(batch.postings))
        if batch.began is not None:
            keys.append(session_keys(SessionKey(owner.tenant, batch.session))[0])
        arguments = write_arguments(batch)
        done = await self._step(self._scripts.index_write, keys, arguments)
        if done == LEFT:
            await self._sweep(owner)
            done = await self._step(self._scripts.index_write, keys, arguments)
        if done == LOST:
            raise IndexLost("Redis: a part of an index is gone")
        if done == 2:
            await self._renew(owner, 2 * batch.ttl)
        return int(done) > 0

    async def drop_session(self, owner: Owner, session: str) -> None:
        await self._step(self._scripts.index_forget, index_keys(owner), (session,))

    async def drop(self, owner: Owner, state: bytes = b"") -> None:
        keys = index_keys(owner)
        # Gone for everybody; the rest goes bit by bit.
        if state:
            there = await self._step(self._scripts.index_drop, keys, (state,))
        else:
            there = await self._ask(keys[0], "DEL", keys[0])
        await self._sweep(owner, there=bool(there))

    async def put_vectors(
        self, owner: Owner, model: str, size: int, vectors: Mapping[int, bytes]
    ) -> None:
        keys = [*index_keys(owner), vectors_key(owner, model, size)]
        flat = [part for item in vectors.items() for part in item]
        await self._step(self._scripts.index_vectors, keys, (size, model, *flat))

    @with_timeout("read")
    async def vectors(self, owner: Owner, model: str, size: int, first: int, last: int) -> bytes:
        if last <= first:
            return b""
        meta, key = index_keys(owner)[0], vectors_key(owner, model, size)
        read = ("GETRANGE", key, first * size, last * size - 1)
        there, data = await self._link.many([(meta, ("HEXISTS", meta, "revision")), (key, read)])
        return bytes(data) if there else b""

    async def _set_life(self, owner: Owner, ttl: int) -> None:
        """Let an index live at least so long (s) from now on, 0 for ever; a session's no longer."""
        meta, life = index_keys(owner)[0], 2 * ttl
        left = await self._ask(meta, "PTTL", meta)
        too_short = left >= 0 and (ttl == 0 or left < ttl * 1000)
        too_long = owner.session and ttl and (left == -1 or left > life * 1000)
        if too_short or too_long:
            await self._renew(owner, life)

    async def _sweep(self, owner: Owner, *, there: bool = False) -> None:
        """Remove what is left of an index that is gone, until there is nothing or a new one.

        ``there``: a moment ago it was not.
        """
        keys = index_keys(owner)
        rows, vocabulary = [await self._ask(keys[n], "EXISTS", keys[n]) for n in (1, 3)]
        if (there or rows) and not vocabulary:
            await self._sweep_unnamed(owner)
        fixed = [*keys[1:3], keys[4], *await self._vectors(owner)]
        there = not await self._step(self._scripts.index_sweep, [*keys, *fixed], ("",))
        while not there:
            tail = await self._ask(keys[3], "GETRANGE", keys[3], -AT_ONCE * TERM_SIZE, -1)
            if not tail:
                return
            gone = term_keys(owner, split_terms(tail))
            there = not await self._step(self._scripts.index_sweep, [*keys, *gone], (tail,))

    async def _sweep_unnamed(self, owner: Owner) -> None:
        """Remove the terms of a vocabulary that is lost; before the rows, which tell of them."""
        async for terms in self._each_key(term_keys(owner, [b"*"])[0]):
            await self._step(self._scripts.index_sweep, [*index_keys(owner), *terms], ("",))

    async def _renew(self, owner: Owner, seconds: int) -> None:
        """Let all keys live so long, 0 for ever."""
        keys = index_keys(owner)
        size, at = AT_ONCE * TERM_SIZE, 0
        while terms := await self._ask(keys[3], "GETRANGE", keys[3], at, at + size - 1):
            some = [*keys, *term_keys(owner, split_terms(terms))]
            await self._step(self._scripts.index_renew, some, (seconds, 0))
            at += size
        rest = [*keys, *await self._vectors(owner)]
        await self._step(self._scripts.index_renew, rest, (seconds, 1))

    async def _vectors(self, owner: Owner) -> list[bytes]:
        """The keys of the vectors that there are."""
        models = index_keys(owner)[4]
        names = [name.split(b" ", 1) for name in await self._ask(models, "SMEMBERS", models)]
        return [vectors_key(owner, model.decode(), int(size)) for size, model in names]


# Keys and arguments of its scripts, and what they reply

PARTS = (b"meta", b"rows", b"marks", b"vocabulary", b"models")
"""The keys of an index, besides those of terms and vectors; every script gets them first."""


@lru_cache(maxsize=4096)
def _prefix(owner: Owner) -> bytes:
    """A user and a session may be called the same: then only what follows the tag differs.

    Short, because every term of every owner has a key.
    """
    who, kind = (owner.user, b"ui:") if owner.user else (owner.session, b"si:")
    return tag_of(owner.tenant, who) + kind


def index_keys(owner: Owner) -> list[bytes]:
    prefix = _prefix(owner)
    return [prefix + part for part in PARTS]


def term_keys(owner: Owner, terms: Sequence[bytes]) -> list[bytes]:
    prefix = _prefix(owner) + b"t:"
    return [prefix + term for term in terms]


def vectors_key(owner: Owner, model: str, size: int) -> bytes:
    return _prefix(owner) + f"v:{size}:{model}".encode()


def write_arguments(batch: IndexBatch) -> list[Any]:
    mark = "" if batch.mark is None else " ".join(map(str, batch.mark))
    head = [batch.revision, batch.state, batch.first, batch.rows, batch.ttl, batch.session]
    return [*head, mark, format_time(batch.began), *batch.postings.values()]


def read_look(reply: Sequence[Any], terms: int) -> Look:
    """A look for so many terms from the reply to its script."""
    if not reply:
        return Look(postings=(NO_POSTINGS,) * terms)
    revision, state, mark, *found = reply
    if not int(revision):  # what was kept of a dropped one
        return Look(state=state, postings=(NO_POSTINGS,) * terms)
    postings = tuple(
        Postings(size // POSTING_SIZE, newest)
        for size, newest in zip(found[::2], found[1::2], strict=True)
    )
    return Look(
        int(revision), state, postings, IndexMark(*map(int, mark.split())) if mark else None
    )


def read_rows(reply: Sequence[Any]) -> Rows:
    data, names = reply
    sessions = zip(names[::2], names[1::2], strict=True)
    return Rows(data, {int(number): name.decode() for number, name in sessions})
