"""How long recall takes to find, and to index what was just said; no HTTP in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from bench.cost.fill import TENANT, Seeded, commit, indexer_of
from bench.cost.text import Talk
from proxy.chat.message import typed_text_of
from proxy.chat.models.tokens import Tokenizers
from proxy.memory.model import SessionKey
from proxy.recall.index_cache import IndexCache
from proxy.recall.indexing.index_updater import IndexUpdater
from proxy.recall.query.query import RecallQuery
from proxy.recall.recaller import Recaller
from proxy.settings import RecallSettings
from proxy.stores.open import Backend

WARM_UP = 20
BUDGET = RecallSettings().max_tokens


class Asker:
    """Asks on behalf of users of a store, drawn at random, and keeps the times in seconds."""

    def __init__(self, store: Backend, users: Sequence[Seeded], talk: Talk) -> None:
        # Never opened: nothing is indexed meanwhile.
        index_updater = IndexUpdater(indexer_of(store), time.monotonic, lambda _: None)
        self._recaller = Recaller(IndexCache(store), store, index_updater, typed_text_of, time.time)
        self._users, self._talk, self._drawn = users, talk, random.Random(7)
        self._count = Tokenizers().counter_for(None).count_text
        self._found = 0
        self.times: list[float] = []

    async def ask(self) -> None:
        user = self._drawn.choice(self._users)
        wanted = RecallQuery(
            key=SessionKey(TENANT, "asking"),
            user=user.user,
            session_owner=None,
            text=self._talk.question(self._drawn.choice(user.texts)),
            budget=BUDGET,
            count=self._count,
        )
        clock = time.perf_counter()
        recollection = await self._recaller.recall(wanted)
        self.times.append(time.perf_counter() - clock)
        self._found += bool(recollection)

    def check(self) -> None:
        """Raises RuntimeError where little was found: that looks better than it is."""
        if self._found < len(self.times) / 2:
            raise RuntimeError(
                f"only {self._found} of {len(self.times)} questions recalled anything"
            )


async def ask(askers: Sequence[Asker], count: int, step: Callable[[int], None]) -> None:
    """Let all ask ``count`` times, in turns, so that what disturbs one disturbs all."""
    for _ in range(WARM_UP + count):
        for asker in askers:
            await asker.ask()
        step(1)
    for asker in askers:
        asker.check()
        del asker.times[:WARM_UP]


async def write(
    store: Backend, talk: Talk, seeded: Seeded, count: int, step: Callable[[int], None]
) -> list[float]:
    """Seconds a message that indexing an exchange took, beside all that is indexed already."""
    indexer, times = indexer_of(store), []
    for number in range(count):
        name = f"{seeded.user}-new-{number // 10}"
        said = talk.session(2)
        key = await commit(store, name, seeded.user, said, time.time(), f"new-{number}")
        clock = time.perf_counter()
        indexed = await indexer.index_session(key)
        times.append((time.perf_counter() - clock) / indexed)
        step(1)
    return times
