"""An episode: an exchange that went well, stored as an example of how to answer.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Literal

import msgspec

from proxy.learning.batch import AnsweredQuestion
from proxy.learning.collection import LearnedMemory
from proxy.learning.evidence import Source, source_fields
from proxy.learning.similarity import pack_terms
from proxy.memory.items import PEOPLE, Item, Namespace, Place

FEATURE = "episodes"
KIND = "episode"
"""The kind of an episode in lists of memories."""

MAX_EPISODES = 50
"""Episodes of a person; of more, the oldest are deleted."""

QUESTION_TOKENS = 100
ANSWER_TOKENS = 250
"""What is stored of an exchange: two of them fit into the default ``max_tokens``."""

_CHARACTERS_PER_TOKEN = 10
"""Characters per token to which a text is cut before it is counted."""

_CUT = " …"

Origin = Literal["feedback", "learned"]


class Episode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question and its answer, truncated.  ``sources`` has the answer's message.  Times are Unix
    seconds."""

    id: str
    question: str
    answer: str
    origin: Origin
    sources: tuple[Source, ...] = ()
    created_at: float = 0.0
    expires_at: float | None = None

    def is_expired(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An episode on the card, the tokens of its example, and the packed terms of its question."""

    episode: Episode
    tokens: int
    terms: bytes


class EpisodeCard(msgspec.Struct, frozen=True):
    """All episodes of a person, the oldest first."""

    entries: tuple[Entry, ...] = ()


def namespace(user: str) -> Namespace:
    return (PEOPLE, user, FEATURE)


def episode_place(user: str, episode: str) -> Place:
    return Place(namespace(user), episode)


def episode_id(session: str, message: str) -> str:
    """The id of the episode with this answer: an answer is one episode at most."""
    name = f"{session}\n{message}".encode()
    return f"episode_{blake2b(name, digest_size=9).hexdigest()}"


def make_episode(
    found: AnsweredQuestion, origin: Origin, count: Callable[[str], int], now: float, ttl: float
) -> Episode:
    """An exchange as an episode; ``ttl`` is that of its session in seconds, 0 for ever."""
    source = Source(
        session=found.session, message=found.message, exchange=found.exchange, at=found.at
    )
    return Episode(
        id=episode_id(found.session, found.message),
        question=truncate(found.question, QUESTION_TOKENS, count),
        answer=truncate(found.answer, ANSWER_TOKENS, count),
        origin=origin,
        sources=(source,),
        created_at=now,
        expires_at=now + ttl if ttl else None,
    )


def truncate(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """The beginning of a text, of at most so many tokens."""
    text = text.strip()
    kept = text[: _CHARACTERS_PER_TOKEN * tokens]
    while (size := count(kept)) > tokens:
        kept = kept[: min(len(kept) - 1, int(len(kept) * 0.95 * tokens / size))]
    return kept if kept == text else kept.rstrip() + _CUT


def make_entry(episode: Episode, count: Callable[[str], int]) -> Entry:
    terms = pack_terms(episode.question, episode.sources[0].at)
    return Entry(episode, count(render_example(episode)), terms)


def render_example(episode: Episode) -> str:
    """An episode as text for a prompt."""
    return f"User: {episode.question}\nAnswer: {episode.answer}"


def episode_memory(item: Item, now: float) -> LearnedMemory:
    return LearnedMemory(item.key, "current", item.created_at, None, partial(_fields, item))


def _fields(item: Item, count: Callable[[str], int]) -> dict[str, object]:
    episode = msgspec.json.decode(item.value, type=Episode)
    return {
        "object": "memory",
        "id": episode.id,
        "kind": KIND,
        "text": render_example(episode),
        "question": episode.question,
        "answer": episode.answer,
        "about": "user",
        "state": "current",
        "sources": [source_fields(source) for source in episode.sources],
        "origin": episode.origin,
        "edited": False,
        "expires_at": episode.expires_at,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "version": item.version,
    }
