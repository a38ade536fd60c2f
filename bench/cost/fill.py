"""Histories and indexes of any size, put into a store by the product's own ways."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from bench.cost.plan import SESSION
from bench.cost.text import Talk
from proxy.chat.message import read_stored, typed_text_of
from proxy.memory.model import Card, Commit, Draft, Exchange, SessionKey, State, message_id
from proxy.recall.index import IndexBatch, owner_of
from proxy.recall.indexing.indexer import Indexer
from proxy.recall.indexing.state import Addition, read_state
from proxy.stores.open import Backend

TENANT = "single"
DAY = 86_400.0
CHARACTERS = 4
"""In a token, about."""

TEMPLATES = 20
"""Different histories that many users share: to make ten thousand would take an hour."""

Step = Callable[[int], None]
"""Told how many messages have been done."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """Whose sessions they are, and texts to ask about, some of each session."""

    user: str
    sessions: tuple[str, ...]
    texts: tuple[str, ...]


async def history(store: Backend, talk: Talk, user: str, messages: int, step: Step) -> Seeded:
    """One user's sessions, without an index; one a day until now."""
    count = -(-messages // SESSION)
    names, texts = [f"{user}-{number}" for number in range(count)], []
    for number, name in enumerate(names):
        said = talk.session(min(SESSION, messages - number * SESSION))
        texts += said[:: SESSION // 10]
        at = time.time() - DAY * (count - number)
        await commit(store, name, user, said, at)
        step(len(said))
    return Seeded(user, tuple(names), tuple(texts))


async def index(store: Backend, seeded: Seeded, step: Step) -> None:
    """As ``reindex`` would do it."""
    indexer = indexer_of(store)
    for name in seeded.sessions:
        step(await indexer.index_session(SessionKey(TENANT, name)))


def indexer_of(store: Backend) -> Indexer:
    return Indexer(store, store, typed_text_of, time.time)


async def many_users(
    store: Backend, talk: Talk, users: int, messages: int, step: Step
) -> list[Seeded]:
    """Users with a session each, indexed: a few histories are made, and all users share them."""
    templates = [talk.session(messages) for _ in range(min(TEMPLATES, users))]
    batches = [await _first(store, f"u{at}", said) for at, said in enumerate(templates)]
    step(len(templates) * messages)
    seeded = []
    for number in range(users):
        user, said = f"u{number}", templates[number % len(templates)]
        if number >= len(templates):
            key = await commit(store, f"{user}-0", user, said, _EPOCH)
            batch = replace(batches[number % len(templates)], session=key.session)
            await _done(store.write(owner_of(key, user), batch))
            step(len(said))
        seeded.append(Seeded(user, (f"{user}-0",), tuple(said[:: max(1, len(said) // 10)])))
    return seeded


_ACTIVE: tuple[State, ...] = ("active",)
_EPOCH = 1_700_000_000.0
"""When what all users share was said: batches are the same only with the same times."""


async def _first(store: Backend, user: str, said: Sequence[str]) -> IndexBatch:
    """The first user of a history, and the batch that indexes it."""
    key = await commit(store, f"{user}-0", user, said, _EPOCH)
    owner = owner_of(key, user)
    lookup = await store.lookup(owner, (), 0, session=key.session)
    state, session = read_state(lookup.state), await store.session(key)
    page = await store.messages(key, _ACTIVE, 0, len(said))
    assert state is not None and session is not None
    batch = Addition(lookup, state, session, page.items, typed_text_of).batch()
    await _done(store.write(owner, batch))
    return batch


async def commit(
    store: Backend, name: str, user: str, said: Sequence[str], at: float, exchange: str = "seed"
) -> SessionKey:
    """A session of a user's that begins with these messages, or goes on with them."""
    key = SessionKey(TENANT, name)
    record = Exchange(id=exchange, profile="", started_at=at, created_at=at)
    drafts = tuple(_drafts(exchange, said, at))
    outcome = await store.commit(key, Commit(exchange=record, user=user, drafts=drafts))
    if outcome != "recorded":
        raise RuntimeError(f"seeding ended with {outcome!r}")
    return key


async def _done(write: Awaitable[bool]) -> None:
    if not await write:
        raise RuntimeError("somebody else writes to this index")


def _drafts(exchange: str, said: Sequence[str], at: float) -> Iterator[Draft]:
    """Questions and answers in turn."""
    for number, text in enumerate(said):
        role = "assistant" if number % 2 else "user"
        body = json.dumps({"role": role, "content": text}).encode()
        yield Draft(
            card=Card(
                id=message_id(exchange, number),
                role=role,
                tokens=1 + len(text) // CHARACTERS,
                digest=read_stored(body).digest,
                origin="import",
                evidence=role == "assistant",
                created_at=at,
            ),
            turn=message_id(exchange, number - number % 2),
            body=body,
        )
