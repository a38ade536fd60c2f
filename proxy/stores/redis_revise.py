"""Changes that people make to sessions in Redis, and sessions that are put back."""

from __future__ import annotations

import secrets

from proxy.memory.archive import Archived, Revision
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.stores.redis_base import RedisBase
from proxy.stores.redis_keys import session_keys
from proxy.stores.redis_link import bounded
from proxy.stores.redis_revise_codec import batches, restored_values, revise_arguments

BROUGHT_SECONDS = 60
"""How long what is brought of a session lives at most from one part to the next."""


class RedisRevisions(RedisBase):
    """See :class:`proxy.memory.archive.Archive`."""

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        """A revision whose reply was lost, and that is sent once more, is known by its name.

        Not so one that is made again after a StoreError: if the first was done, what ``was`` says
        is not so any more.
        """
        arguments = revise_arguments(revision, secrets.token_hex(8))
        work = self._scripts.write(self._scripts.revise, session_keys(key), arguments)
        reply = await bounded(work, self._commit_timeout)
        if not reply:
            return False
        _, owner, *activity = reply
        # The lists know when a session expires.
        if revision.details is not None:
            listing = self._archive.list(key, owner.decode(), activity)
            await bounded(listing, self._commit_timeout)
        return True

    async def restore(self, key: SessionKey, archived: Archived) -> bool:
        """Brought bit by bit under other names, then made the session at once."""
        name = secrets.token_hex(8)
        keys = session_keys(key)
        brought = session_keys(key, prefix=f"brought-{name}-".encode())
        fill, seconds = self._scripts.restore_fill, BROUGHT_SECONDS
        for values in batches(restored_values(archived, name)):
            await self._step(fill, brought, (seconds, *values))
        arguments = (archived.session.details.ttl, name)
        work = self._scripts.write(self._scripts.restore, [*keys, *brought], arguments)
        status, owner, *activity = await bounded(work, self._commit_timeout)
        if status < 0:
            raise StoreError("Redis: putting a session back took too long")
        # One that was there as well: an earlier attempt may have been cut short here.
        listing = self._archive.list(key, owner.decode(), activity)
        await bounded(listing, self._commit_timeout)
        return bool(status)
