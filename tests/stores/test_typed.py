"""Decorators keep the types of what they wrap: mypy finds wrong arguments.

Nothing here is run but mypy: it fails where an error that is ignored is none any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

from proxy.memory.model import LoadOptions, Outcome, SessionKey, Snapshot
from proxy.stores.open import Backend
from proxy.stores.redis.store import RedisStore
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.store.commits import chat

KEY, ASK = SessionKey("tenant", "session"), LoadOptions("default")


def test_a_method_is_called_as_what_it_is_made_of() -> None:
    assert SQLiteStore.load.__name__ == RedisStore.load.__name__ == "load"


if TYPE_CHECKING:

    async def of_sqlite(store: SQLiteStore) -> Backend:
        assert_type(await store.load(KEY, ASK), Snapshot)
        assert_type(await store.load(key=KEY, options=ASK), Snapshot)
        assert_type(await store.commit(KEY, chat("x1")), Outcome)
        await store.load("session", ASK)  # type: ignore[arg-type]
        await store.load(KEY)  # type: ignore[call-arg]
        await store.load(KEY, ASK, 1.0)  # type: ignore[call-arg]
        await store.postpone(KEY, 1.0)  # type: ignore[arg-type, call-arg]
        await store.drop_summaries(KEY, now=1.0)  # type: ignore[call-arg]
        return store

    async def of_redis(store: RedisStore) -> Backend:
        assert_type(await store.load(KEY, ASK), Snapshot)
        assert_type(await store.commit(key=KEY, commit=chat("x1")), Outcome)
        await store.load("session", ASK)  # type: ignore[arg-type]
        await store.usage_of_days("tenant")  # type: ignore[call-arg]
        await store.move("old", new=1)  # type: ignore[arg-type]
        return store
