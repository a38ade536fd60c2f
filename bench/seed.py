"""Sessions of a given length, committed straight into a store."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import redis.asyncio as redis

from bench.memory_floor import list_of
from proxy.chat.message import read_stored
from proxy.chat.models.tokens import TokenCounter, Tokenizers
from proxy.memory.model import Card, Commit, Draft, Exchange, SessionKey, message_id
from proxy.memory.store import Store
from proxy.stores.open import open_store

TENANT = "single"
AT_ONCE = 500
"""Messages a commit."""
WORDS = (
    "we talked about the plans for the next week and what it would take to get there in time " * 2
)
"""Long enough that 200 messages fill the default window, so that longer sessions inject no more."""


async def seed_floor(url: str, names: list[tuple[str, int]]) -> None:
    """The same for the memory floor: a list of messages a session."""
    counter = Tokenizers().counter_for(None)
    async with redis.from_url(url) as store:
        for name, size in names:
            drafts = _drafts("seed", 0, size, counter, time.time())
            await store.rpush(list_of(name), *(draft.body for draft in drafts))


async def seed(url: str, names: list[tuple[str, int]]) -> None:
    """Make a session for each (name, number of messages)."""
    store = open_store(url, timeout=60, commit_timeout=60)
    counter = Tokenizers().counter_for(None)
    await store.open()
    try:
        for name, size in names:
            await _session(store, name, size, counter)
    finally:
        await store.close()


async def _session(store: Store, name: str, size: int, counter: TokenCounter) -> None:
    for first in range(0, size, AT_ONCE):
        exchange = f"seed_{first}"
        now = time.time()
        drafts = tuple(_drafts(exchange, first, min(AT_ONCE, size - first), counter, now))
        record = Exchange(id=exchange, profile="", started_at=now, created_at=now)
        commit = Commit(exchange=record, drafts=drafts)
        outcome = await store.commit(SessionKey(TENANT, name), commit)
        if outcome != "recorded":
            raise RuntimeError(f"seeding ended with {outcome!r}")


def _drafts(
    exchange: str, first: int, size: int, counter: TokenCounter, now: float
) -> Iterator[Draft]:
    """Questions and answers in turn."""
    for index in range(size):
        role = "assistant" if index % 2 else "user"
        text = f"{role} {first + index}: {WORDS}"
        body = json.dumps({"role": role, "content": text}).encode()
        message = read_stored(body)
        yield Draft(
            card=Card(
                id=message_id(exchange, index),
                role=role,
                tokens=counter.count(message),
                digest=message.digest,
                origin="import",
                evidence=role == "assistant",
                created_at=now,
            ),
            turn=message_id(exchange, index - index % 2),
            body=body,
        )
