"""Episodes among a person's memories, over the memory API."""

from __future__ import annotations

import msgspec

from proxy.admin.objects import Object, source_object
from proxy.learning.episode import Episode, example
from proxy.learning.episode_lines import KIND
from proxy.memory.items import Item


def is_episode(memory: str) -> bool:
    """Is this the id of an episode?"""
    return memory.startswith("episode_")


def episode_object(item: Item) -> Object:
    """A memory of the kind "episode"; ``item`` holds an Episode."""
    episode = msgspec.json.decode(item.value, type=Episode)
    return {
        "object": "memory",
        "id": episode.id,
        "kind": KIND,
        "text": example(episode),
        "question": episode.question,
        "answer": episode.answer,
        "about": "user",
        "state": "current",
        "sources": [source_object(source) for source in episode.sources],
        "origin": episode.origin,
        "edited": False,
        "expires_at": episode.expires_at,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "version": item.version,
    }
