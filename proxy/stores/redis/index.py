"""The index in Redis: strings of packed rows and postings, with the hash tag of their owner.

No write waits for replicas: after a failover an index is caught up, or rebuilt if it is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import pack, unpack
from typing import Any

from msgspec.structs import replace

from proxy.memory.model import SessionKey
from proxy.recall.index import (
    NO_POSTINGS,
    POSTING_SIZE,
    TERM_SIZE,
    IndexBatch,
    IndexLookup,
    IndexLost,
    IndexMark,
    Owner,
    Postings,
    Rows,
    WholeIndex,
    split_terms,
)
from proxy.stores.redis import request_cache
from proxy.stores.redis.base import RedisBase, format_time, session_keys, tag_of, with_timeout

LEFTOVERS, LOST = -1, -2
"""Replies of index_write.lua: keys of a dropped index remain; a part of the index is gone."""

KEYS_AT_ONCE = 1000
"""Keys that one script renews or deletes, so that it never blocks the server for long."""


class RedisIndex(RedisBase):
    """See :class:`proxy.recall.index.Index`."""

    async def lookup(
        self, owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> IndexLookup:
        if not terms and (
            loaded_head := request_cache.take_index_lookup(self._passages, owner, session)
        ):
            return read_lookup(loaded_head, 0)
        keys = index_keys(owner) + term_keys(owner, terms)
        reply = await self._read_script(self._scripts.index_lookup, keys, (newest, session))
        return read_lookup(reply, len(terms))

    @with_timeout("read")
    async def whole_index(
        self, owner: Owner, max_terms: int, session: str = ""
    ) -> WholeIndex | None:
        meta, *_, vocabulary, _ = index_keys(owner)
        read = ("GETRANGE", vocabulary, 0, (max_terms + 1) * TERM_SIZE - 1)
        exists = ("EXISTS", vocabulary)
        commands = [(meta, ("HGET", meta, "revision")), (vocabulary, exists), (vocabulary, read)]
        revision, named, joined = await self._link.many(commands)
        if revision is None or not named or len(joined) > max_terms * TERM_SIZE:
            return None
        terms = sorted(split_terms(joined))
        keys = index_keys(owner) + term_keys(owner, terms)
        reply = await self._read_script(self._scripts.index_whole, keys, (session,))
        # The revision was the same before and after the terms were read: so these are all.
        if not reply or reply[0] != revision:
            return None
        *head, sizes, postings = reply
        sizes = unpack(f"<{len(terms)}I", sizes)
        return WholeIndex(read_lookup(head, 0), b"".join(terms), sizes, postings)

    async def rows(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        arguments = (pack(f"<{len(numbers)}I", *numbers),)
        reply = await self._read_script(self._scripts.index_rows, index_keys(owner), arguments)
        return read_rows(reply)

    async def write(self, owner: Owner, batch: IndexBatch) -> bool:
        if batch.session_created_at is None or self._one_slot or owner.session:
            return await self._add_batch(owner, batch)
        done = await self._add_batch(owner, replace(batch, session_created_at=None))
        return done and await self._is_still_wanted(owner, batch)

    async def _is_still_wanted(self, owner: Owner, batch: IndexBatch) -> bool:
        """Whether the session of a written batch still exists; else what was written is dropped.

        In a cluster the session is on another server, so it is checked after writing: an erasure
        either finds the batch in the index, or is noticed here.  A batch for revision 0 has made
        the index, so the whole index is dropped.
        """
        meta = session_keys(SessionKey(owner.tenant, batch.session))[0]
        began = await self._run_command(meta, "HGET", meta, "created")
        if began is not None and float(began) == batch.session_created_at:
            return True
        if batch.revision:
            await self.drop_session(owner, batch.session)
        else:
            await self.drop(owner)
        return False

    async def _add_batch(self, owner: Owner, batch: IndexBatch) -> bool:
        keys = index_keys(owner) + term_keys(owner, list(batch.postings))
        if batch.session_created_at is not None:
            keys.append(session_keys(SessionKey(owner.tenant, batch.session))[0])
        arguments = write_arguments(batch)
        done = await self._write_unreplicated(self._scripts.index_write, keys, arguments)
        if done == LEFTOVERS:
            await self._sweep(owner)
            done = await self._write_unreplicated(self._scripts.index_write, keys, arguments)
        if done == LOST:
            raise IndexLost("Redis: a part of an index is gone")
        if done == 2:
            await self._renew(owner, 2 * batch.ttl)
        return int(done) > 0

    async def drop_session(self, owner: Owner, session: str) -> None:
        await self._write_unreplicated(self._scripts.index_forget, index_keys(owner), (session,))

    async def drop(self, owner: Owner, state: bytes = b"") -> None:
        keys = index_keys(owner)
        # Without its head nobody finds the index; its other keys are deleted in steps.
        if state:
            existed = await self._write_unreplicated(self._scripts.index_drop, keys, (state,))
        else:
            existed = await self._run_command(keys[0], "DEL", keys[0])
        await self._sweep(owner, existed=bool(existed))

    async def put_vectors(
        self, owner: Owner, model: str, size: int, vectors: Mapping[int, bytes]
    ) -> None:
        keys = [*index_keys(owner), vectors_key(owner, model, size)]
        flat = [part for item in vectors.items() for part in item]
        await self._write_unreplicated(self._scripts.index_vectors, keys, (size, model, *flat))

    @with_timeout("read")
    async def vectors(self, owner: Owner, model: str, size: int, first: int, last: int) -> bytes:
        if last <= first:
            return b""
        meta, key = index_keys(owner)[0], vectors_key(owner, model, size)
        read = ("GETRANGE", key, first * size, last * size - 1)
        exists, data = await self._link.many([(meta, ("HEXISTS", meta, "revision")), (key, read)])
        return bytes(data) if exists else b""

    async def _set_life(self, owner: Owner, ttl: int) -> None:
        """Let an index live at least so long (s) from now on, 0 for ever; a session's no longer."""
        meta, life = index_keys(owner)[0], 2 * ttl
        left = await self._run_command(meta, "PTTL", meta)
        too_short = left >= 0 and (ttl == 0 or left < ttl * 1000)
        too_long = owner.session and ttl and (left == -1 or left > life * 1000)
        if too_short or too_long:
            await self._renew(owner, life)

    async def _sweep(self, owner: Owner, *, existed: bool = False) -> None:
        """Delete the keys that a dropped index has left, unless a new index is begun meanwhile.

        ``existed``: it existed until just now.
        """
        keys = index_keys(owner)
        rows, vocabulary = [await self._run_command(keys[n], "EXISTS", keys[n]) for n in (1, 3)]
        if (existed or rows) and not vocabulary:
            await self._sweep_unnamed(owner)
        fixed = [*keys[1:3], keys[4], *await self._vector_keys(owner)]
        replaced = not await self._write_unreplicated(
            self._scripts.index_sweep, [*keys, *fixed], ("",)
        )
        while not replaced:
            tail = await self._run_command(
                keys[3], "GETRANGE", keys[3], -KEYS_AT_ONCE * TERM_SIZE, -1
            )
            if not tail:
                return
            swept = term_keys(owner, split_terms(tail))
            replaced = not await self._write_unreplicated(
                self._scripts.index_sweep, [*keys, *swept], (tail,)
            )

    async def _sweep_unnamed(self, owner: Owner) -> None:
        """Delete the terms' keys of a lost vocabulary, found by a scan; before the rows, whose
        existence shows that there may be some."""
        async for terms in self._scan(term_keys(owner, [b"*"])[0]):
            await self._write_unreplicated(
                self._scripts.index_sweep, [*index_keys(owner), *terms], ("",)
            )

    async def _renew(self, owner: Owner, seconds: int) -> None:
        """Set the time to live (s) of all keys, 0 for ever."""
        keys = index_keys(owner)
        size, at = KEYS_AT_ONCE * TERM_SIZE, 0
        while terms := await self._run_command(keys[3], "GETRANGE", keys[3], at, at + size - 1):
            some = [*keys, *term_keys(owner, split_terms(terms))]
            await self._write_unreplicated(self._scripts.index_renew, some, (seconds, 0))
            at += size
        rest = [*keys, *await self._vector_keys(owner)]
        await self._write_unreplicated(self._scripts.index_renew, rest, (seconds, 1))

    async def _vector_keys(self, owner: Owner) -> list[bytes]:
        models = index_keys(owner)[4]
        names = [
            name.split(b" ", 1) for name in await self._run_command(models, "SMEMBERS", models)
        ]
        return [vectors_key(owner, model.decode(), int(size)) for size, model in names]


# Keys, arguments and replies of the scripts

KEY_NAMES = (b"meta", b"rows", b"marks", b"vocabulary", b"models")
"""The keys of an index, besides those of terms and vectors; every script gets them first."""


@lru_cache(maxsize=4096)
def _prefix(owner: Owner) -> bytes:
    """The prefix of an index's keys; short, because every term of every owner has a key.

    A user and a session may have the same name, and so the same tag: then what follows differs.
    """
    who, kind = (owner.user, b"ui:") if owner.user else (owner.session, b"si:")
    return tag_of(owner.tenant, who) + kind


def index_keys(owner: Owner) -> list[bytes]:
    prefix = _prefix(owner)
    return [prefix + part for part in KEY_NAMES]


def term_keys(owner: Owner, terms: Sequence[bytes]) -> list[bytes]:
    prefix = _prefix(owner) + b"t:"
    return [prefix + term for term in terms]


def vectors_key(owner: Owner, model: str, size: int) -> bytes:
    return _prefix(owner) + f"v:{size}:{model}".encode()


def write_arguments(batch: IndexBatch) -> list[Any]:
    mark = "" if batch.mark is None else " ".join(map(str, batch.mark))
    head = [batch.revision, batch.state, batch.first, batch.rows, batch.ttl, batch.session]
    return [*head, mark, format_time(batch.session_created_at), *batch.postings.values()]


def read_lookup(reply: Sequence[Any], terms: int) -> IndexLookup:
    """The lookup of so many terms from the reply to index_lookup.lua."""
    if not reply:
        return IndexLookup(postings=(NO_POSTINGS,) * terms)
    revision, state, mark, *found = reply
    if not int(revision):  # the index was dropped, and its state kept
        return IndexLookup(state=state, postings=(NO_POSTINGS,) * terms)
    postings = tuple(
        Postings(size // POSTING_SIZE, newest)
        for size, newest in zip(found[::2], found[1::2], strict=True)
    )
    return IndexLookup(
        int(revision), state, postings, IndexMark(*map(int, mark.split())) if mark else None
    )


def read_rows(reply: Sequence[Any]) -> Rows:
    data, names = reply
    sessions = zip(names[::2], names[1::2], strict=True)
    return Rows(data, {int(number): name.decode() for number, name in sessions})
