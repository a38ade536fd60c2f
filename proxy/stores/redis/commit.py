"""Writing exchanges into Redis, and the marks of what was erased: a key each, which ends by itself.

Nothing of a person who is erased may be written behind the erasure's back.  Whoever erases marks
the person first, then reads the list of their sessions, then marks and deletes each.  On one server
a commit is one script, which sees the marks of session and person: it comes before the mark, and
its session is in the list, or behind it, and is refused.

In a cluster a session and its owner's list and mark lie on different servers.  The session is put
into the list first, so that whoever is killed here leaves none that is in no list.  The mark is
looked at then, which refuses all that is late; left is only a mark that is set between this look
and the end of the commit.  Putting the session into the list as it is now looks at the mark again,
in one script with the writing.  Either that is refused, and the exchange is taken back; or the
session is in the list before the mark is there, hence before the list is read, and is deleted and
marked like the others.  A duplicate was recorded earlier: it is taken back if it never came into
the list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from proxy.memory.erasure import Subject
from proxy.memory.model import Amendment, Commit, Outcome, SessionKey
from proxy.stores.common.rules import expiry, is_refused, session_subject
from proxy.stores.common.steps import CommitStep, commit_steps
from proxy.stores.redis.base import (
    RedisBase,
    format_time,
    list_keys,
    mark_key,
    session_keys,
    with_timeout,
)
from proxy.stores.redis.codec import OUTCOMES, CommitContext, amend_arguments, commit_arguments
from proxy.stores.redis.lists import RedisLists
from proxy.stores.redis.request_cache import expire
from proxy.stores.redis.wire import raise_errors
from proxy.stores.redis.work import QUEUE_KEYS, RedisQueue

WRITTEN_OUTCOMES: Collection[Outcome] = ("recorded", "duplicate")
"""Outcomes after which the exchange is in its session."""

LARGE_COMMIT = 500
"""Messages; a larger commit is encoded in a thread."""


class RedisCommits(RedisLists, RedisQueue):
    """See :class:`proxy.memory.store.Memory`."""

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        outcome: Outcome = "recorded"
        for step in commit_steps(commit):
            outcome = await self._commit(key, step)
            if outcome != "recorded":
                break
        return outcome

    @with_timeout("write")
    async def _commit(self, key: SessionKey, commit: Commit) -> Outcome:
        reply = await self._write_exchange(key, commit, commit.user or "")
        while reply[0] == b"owned":
            reply = await self._write_exchange(key, commit, reply[1].decode())
        expire()
        outcome = OUTCOMES[reply[0]]
        if isinstance(commit, CommitStep) and outcome == "recorded":
            return outcome
        # In a cluster the script cannot write these.  Also after a duplicate: the first attempt may
        # have been interrupted before it wrote them.
        if not self._one_slot and outcome in WRITTEN_OUTCOMES:
            return await self._update_lists_and_queue(key, commit, outcome, reply)
        return outcome

    async def amend(self, key: SessionKey, amendment: Amendment) -> int | None:
        arguments = amend_arguments(amendment)
        edited = await self._write_script(self._scripts.amend, session_keys(key), arguments)
        expire()
        return int(edited) or None

    async def _update_lists_and_queue(
        self, key: SessionKey, commit: Commit, outcome: Outcome, reply: Sequence[Any]
    ) -> Outcome:
        """Write the lists and the queue, or, if an erasure refuses that, remove the exchange; the
        final outcome."""
        _, owner, *activity = reply
        since, new = commit.exchange.started_at, outcome == "recorded"
        if not await self._add_to_lists(key, owner.decode(), activity, since, new=new):
            await self._undo_commit(key, commit, owner.decode())
            return "erased"
        if commit.work_requests:
            await self._enqueue(key, commit.work_requests)
        return outcome

    async def _write_exchange(self, key: SessionKey, commit: Commit, person: str) -> Sequence[Any]:
        """The reply of commit.lua.  ``person`` is the user or the session's owner ("": none)."""
        keys = [*session_keys(key), mark_key(session_subject(key))]
        if not self._one_slot:
            return await self._write_in_cluster(
                keys, key, replace(commit, work_requests=()), person
            )
        known = CommitContext(marks=2 if person else 1, person=person)
        keys += [mark_key(Subject(key.tenant, person))] if person else []
        keys += list_keys(key.tenant)
        keys += list_keys(key.tenant, person) if person else []
        keys += QUEUE_KEYS if commit.work_requests else []
        return await self._run_commit(keys, key, commit, known)

    async def _run_commit(
        self, keys: Sequence[bytes], key: SessionKey, commit: Commit, known: CommitContext
    ) -> Sequence[Any]:
        make = partial(commit_arguments, key, commit, known)
        many = len(commit.drafts) > LARGE_COMMIT
        arguments = await asyncio.to_thread(make) if many else make()
        reply: Sequence[Any] = await self._scripts.write(self._scripts.commit, keys, arguments)
        return reply

    async def _write_in_cluster(
        self, keys: Sequence[bytes], key: SessionKey, commit: Commit, person: str
    ) -> Sequence[Any]:
        at = repr(commit.exchange.created_at)
        mark, new = await self._list_before_write(key, person, at) if person else (None, False)
        known = CommitContext(marks=1, mark=mark, person=person)
        reply = await self._run_commit(keys, key, commit, known)
        late = mark is not None and is_refused(mark, commit.exchange.started_at)
        if new and (late or OUTCOMES.get(reply[0]) not in WRITTEN_OUTCOMES):
            lists = list_keys(key.tenant, person)
            await self._scripts.read(self._scripts.forget, lists, (key.session, at))
        return reply

    async def _list_before_write(
        self, key: SessionKey, person: str, at: str
    ) -> tuple[float | None, bool]:
        """Add the session to the person's list before it is written; the person's erasure mark
        after that, and whether the session is new in the list."""
        (listed, _), mark = list_keys(key.tenant, person), mark_key(Subject(key.tenant, person))
        put = ("ZADD", listed, "NX", at, key.session)
        new, found = raise_errors(await self._link.run(mark, put, ("GET", mark)))
        return None if found is None else float(found), bool(new)

    async def _undo_commit(self, key: SessionKey, commit: Commit, owner: str) -> None:
        """Remove an exchange, and the session if it has no other."""
        arguments = (commit.exchange.id, commit.system or b"")
        script, keys = self._scripts.undo_commit, session_keys(key)
        try:
            is_removed = await self._scripts.write(script, keys, arguments)
        finally:
            self._clear_caches()
        if is_removed:
            await self._remove_from_lists(key, owner)


# Erasure marks

MAX_MARK_SECONDS = 1e10
"""The longest time to live (s) of a mark: Redis has a limit."""


class RedisErasures(RedisBase):
    """See :class:`proxy.memory.erasure.Erasures`."""

    @with_timeout("write")
    async def mark(self, subjects: Sequence[Subject], until: float) -> None:
        left = min(expiry(until) - self._clock(), MAX_MARK_SECONDS)
        how = (repr(until), max(1, int(left * 1000)))
        keys = [mark_key(subject) for subject in subjects]
        script = self._scripts.mark.text  # short, so it is sent as text: no NOSCRIPT to handle
        await self._scripts.put_all([(key, ("EVAL", script, 1, key, *how)) for key in keys])

    @with_timeout("write")
    async def unmark(self, subject: Subject, began: float | None = None) -> None:
        keys = [mark_key(subject)]
        await self._scripts.write(self._scripts.unmark, keys, (format_time(began),))

    @with_timeout("read")
    async def is_erased(self, subjects: Sequence[Subject], began: float) -> bool:
        keys = [mark_key(subject) for subject in subjects]
        marks = await self._link.many([(key, ("GET", key)) for key in keys])
        return any(is_refused(float(mark), began) for mark in marks if mark is not None)
