"""Making the parts that the settings describe: stores, upstreams, embedders, tenants."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from proxy.chat.message import text_of
from proxy.chat.tokens import Tokenizers
from proxy.gateway.embeddings import RemoteEmbedder
from proxy.gateway.rerender import rerender
from proxy.gateway.tenancy import Client, Tenancy
from proxy.memory.backlog import REPLAY_SECONDS, Means
from proxy.memory.planner import Planner
from proxy.memory.recorder import Recorder, unattended
from proxy.memory.spool import Spool
from proxy.memory.work import Due
from proxy.origin import upstream_options
from proxy.recall.embedding import Embedder
from proxy.recall.filler import Filler
from proxy.recall.follower import Follower
from proxy.recall.indexer import Indexer, nobody
from proxy.recall.nearness import Nearness
from proxy.recall.recaller import Recaller
from proxy.recall.universal import UniversalEmbedder
from proxy.settings import ClientSettings, Settings
from proxy.stores.backend import Backend
from proxy.stores.opening import open_store
from proxy.telemetry import Telemetry
from proxy.wire.upstream import Upstream, open_upstream

PATIENCE = REPLAY_SECONDS
"""Seconds for what nobody waits for: replaying and indexing long sessions."""

PLANNERS = 2
"""Threads in which long conversations are planned."""

INDEXING = 5.0
"""Seconds that indexing may take at the end; what is left is done at the next start."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What all parts stand on; what they open is closed with ``opened``, in the opposite order.

    ``patient`` is the same store, asked for what nobody waits for: it has more time, and threads
    and connections of its own.
    """

    settings: Settings
    telemetry: Telemetry
    tokenizers: Tokenizers
    store: Backend
    patient: Backend
    upstream: Upstream
    opened: AsyncExitStack

    def count_text(self, text: str) -> int:
        """Tokens of a text, for no model in particular."""
        return self.tokenizers.counter_for(None).count_text(text)


@dataclass(frozen=True, slots=True)
class Recalling:
    """What finds older messages, and keeps their index."""

    indexer: Indexer
    follower: Follower
    recaller: Recaller


@asynccontextmanager
async def ground_of(
    settings: Settings,
    telemetry: Telemetry,
    patience: float | None = None,
    *,
    as_is: bool = False,
) -> AsyncIterator[Ground]:
    """Store and upstream, open; at the end all is closed.

    ``patience`` is a limit in seconds for each look at the store where nobody waits for it;
    ``as_is``: the store's file is neither made nor brought up to date.
    Raises StoreError, OSError and ValueError where one of them cannot be had.
    """
    async with AsyncExitStack() as opened:
        store = store_of(settings, patience, as_is=as_is)
        upstream = upstream_of(settings)
        await store.open()
        opened.push_async_callback(store.close)
        patient = store if patience else store.patient(PATIENCE)
        await patient.open()
        opened.push_async_callback(patient.close)
        await upstream.open()
        opened.push_async_callback(upstream.close)
        yield Ground(settings, telemetry, Tokenizers(), store, patient, upstream, opened)


def store_of(settings: Settings, patience: float | None = None, *, as_is: bool = False) -> Backend:
    """The store; ``patience`` and ``as_is`` as of ``ground_of``."""
    limits = settings.store
    return open_store(
        limits.url,
        timeout=patience or limits.timeout,
        commit_timeout=patience or limits.commit_limit,
        wait_replicas=limits.wait_replicas,
        as_is=as_is,
    )


def upstream_of(settings: Settings, url: str = "") -> Upstream:
    """A client of the upstream, or in the same way of another API.

    Raises ValueError where no request could ever succeed, OSError.
    """
    return open_upstream(settings.upstream.client, upstream_options(settings, url))


async def recalling_of(ground: Ground) -> Recalling:
    """Recall; its index is kept level with history from now on."""
    store, opened = ground.store, ground.opened
    embedder = await _embedder(ground)
    filler = _filler(store, embedder, opened)
    on_level = filler.wanted if filler else nobody
    indexer = Indexer(ground.patient, ground.patient, text_of, time.time, on_level)
    follower = Follower(indexer, time.monotonic, ground.telemetry.indexed)
    follower.open()
    opened.push_async_callback(follower.close, INDEXING)
    nearness = _nearness(ground.settings, store, embedder, opened)
    recaller = Recaller(store, store, follower, text_of, time.time, nearness)
    return Recalling(indexer, follower, recaller)


def spool_of(ground: Ground) -> Spool:
    """Where exchanges wait that the store did not take; it has still to be opened."""
    chosen = ground.settings.spool
    return Spool(Path(chosen.path), ground.store.name, chosen.max_bytes)


def recorder_of(
    ground: Ground,
    spool: Spool,
    timeout: float,
    recalling: Recalling,
    on_due: Callable[[Sequence[Due]], None] = unattended,
) -> Recorder:
    """What loads and records memory, ``timeout`` seconds a load; it has still to be opened."""
    threads = ThreadPoolExecutor(PLANNERS, "planning")
    ground.opened.callback(threads.shutdown, wait=False, cancel_futures=True)
    patient = Means(ground.patient, Planner(ground.patient, rerender, threads))
    return Recorder(
        ground.store,
        spool,
        Planner(ground.store, rerender, threads),
        lambda model: ground.tokenizers.counter_for(model).count,
        timeout,
        ground.telemetry.quarantined,
        recalling.follower.recorded,
        on_due=on_due,
        patient=patient,
        on_trouble=ground.telemetry.troubled,
    )


async def _embedder(ground: Ground) -> Embedder | None:
    """What makes recall's vectors; None where words alone count."""
    settings, upstream, opened = ground.settings, ground.upstream, ground.opened
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


def _filler(store: Backend, embedder: Embedder | None, opened: AsyncExitStack) -> Filler | None:
    if embedder is None:
        return None
    filler = Filler(store, store, embedder, text_of, time.time)
    filler.open()
    opened.push_async_callback(filler.close)
    return filler


def _nearness(
    settings: Settings, store: Backend, embedder: Embedder | None, opened: AsyncExitStack
) -> Nearness | None:
    if embedder is None:
        return None
    profiles = (settings.memory, *settings.profiles.values())
    half = min(profile.recall.timeout for profile in profiles) / 2
    patience = min(half, settings.memory.recall.embeddings.timeout)
    nearness = Nearness(store, embedder, patience)
    opened.push_async_callback(nearness.close)
    return nearness


def tenancy_of(settings: Settings) -> Tenancy:
    clients = [_client(chosen) for chosen in settings.clients]
    upstream_key, admin_key = settings.upstream.api_key, settings.server.admin_key
    return Tenancy(
        settings.tenancy.mode,
        clients,
        upstream_key.get_secret_value() if upstream_key else None,
        admin_key.get_secret_value() if admin_key else None,
    )


def _client(chosen: ClientSettings) -> Client:
    secret = chosen.signing_secret
    return Client(
        chosen.name,
        chosen.key_sha256,
        chosen.profiles,
        chosen.allowed_paths,
        secret.get_secret_value().encode() if secret else None,
    )
