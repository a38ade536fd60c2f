"""Makes recall: by words, and by vectors if the settings enable them."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

import msgspec

from proxy.assembly.resources import Resources, upstream_of
from proxy.chat.message import typed_text_of
from proxy.recall.index_cache import IndexCache
from proxy.recall.indexing.backfill import EmbeddingBackfill
from proxy.recall.indexing.index_updater import DELAY, IndexUpdater
from proxy.recall.indexing.indexer import Indexer, ignore_owner
from proxy.recall.recaller import Recaller
from proxy.recall.semantic.embedders import Embedder, RemoteEmbedder, UniversalEmbedder
from proxy.recall.semantic.vectors import VectorSearch
from proxy.settings import Settings
from proxy.stores.open import Backend

SHUTDOWN_SECONDS = 5.0
"""Seconds that indexing has at shutdown; the rest is indexed after the next start."""


class Recalling(msgspec.Struct, frozen=True):
    indexer: Indexer
    index_updater: IndexUpdater
    recaller: Recaller


async def recalling_of(resources: Resources, delay: float | None) -> Recalling:
    """Recall, with its index updater running; ``delay``: seconds from recording to indexing."""
    store, opened = resources.store, resources.opened
    embedder = await _embedder(resources)
    known = IndexCache(store)
    backfill = _backfill(store, embedder, opened, known)
    on_up_to_date = backfill.enqueue if backfill else ignore_owner
    slow = resources.long_timeout_store  # background work has threads and connections of its own
    indexer = Indexer(slow, slow, typed_text_of, time.time, on_up_to_date, known.on_write)
    delay = DELAY if delay is None else delay
    index_updater = IndexUpdater(indexer, time.monotonic, resources.telemetry.count_indexed, delay)
    index_updater.open()
    opened.push_async_callback(index_updater.close, SHUTDOWN_SECONDS)
    vector_search = _vector_search(resources.settings, store, embedder, opened)
    recaller = Recaller(known, store, index_updater, typed_text_of, time.time, vector_search)
    return Recalling(indexer, index_updater, recaller)


async def _embedder(resources: Resources) -> Embedder | None:
    """The embedder, open; None if the settings have no model for vectors."""
    settings, upstream, opened = resources.settings, resources.upstream, resources.opened
    chosen = settings.memory.recall.embeddings
    if not chosen.model:
        return None
    if chosen.local:
        local = UniversalEmbedder()
        await local.open()
        opened.push_async_callback(local.close)
        return local
    key = chosen.api_key
    if chosen.url:
        upstream = upstream_of(settings, chosen.url)
        await upstream.open()
        opened.push_async_callback(upstream.close)
    else:
        key = key or settings.upstream.api_key
    secret = key.get_secret_value() if key else None
    return RemoteEmbedder(upstream, chosen.model, chosen.dimensions, secret)


def _backfill(
    store: Backend, embedder: Embedder | None, opened: AsyncExitStack, known: IndexCache
) -> EmbeddingBackfill | None:
    if embedder is None:
        return None
    backfill = EmbeddingBackfill(
        store, store, embedder, typed_text_of, time.time, on_write=known.on_write
    )
    backfill.open()
    opened.push_async_callback(backfill.close)
    return backfill


def _vector_search(
    settings: Settings, store: Backend, embedder: Embedder | None, opened: AsyncExitStack
) -> VectorSearch | None:
    if embedder is None:
        return None
    profiles = (settings.memory, *settings.profiles.values())
    half = min(profile.recall.timeout for profile in profiles) / 2
    timeout = min(half, settings.memory.recall.embeddings.timeout)
    vector_search = VectorSearch(store, embedder, timeout)
    opened.push_async_callback(vector_search.close)
    return vector_search
