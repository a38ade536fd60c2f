"""Making the parts that the settings describe: stores, upstreams, embedders, tenants."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

from proxy.chat.message import text_of
from proxy.chat.tokens import Tokenizers
from proxy.gateway.embeddings import RemoteEmbedder
from proxy.gateway.tenancy import Client, Tenancy
from proxy.gateway.toolbox import Toolbox
from proxy.learning.fact_book import FactBook
from proxy.recall.embedding import Embedder
from proxy.recall.filler import Filler
from proxy.recall.nearness import Nearness
from proxy.recall.recaller import Recaller
from proxy.recall.universal import UniversalEmbedder
from proxy.settings import ClientSettings, Settings
from proxy.stores import open_store
from proxy.stores.backend import Backend
from proxy.wire.upstream import Upstream, UpstreamOptions, open_upstream


def store_of(settings: Settings, patience: float | None = None) -> Backend:
    """The store; ``patience`` is a limit in seconds for each look where nobody waits for it."""
    limits = settings.store
    return open_store(
        limits.url,
        timeout=patience or limits.timeout,
        commit_timeout=patience or limits.commit_limit,
        wait_replicas=limits.wait_replicas,
    )


def upstream_of(settings: Settings, url: str = "") -> Upstream:
    """A client of the upstream, or in the same way of another API.

    Raises ValueError where no request could ever succeed, OSError.
    """
    return open_upstream(settings.upstream.client, upstream_options(settings, url))


def upstream_options(settings: Settings, url: str = "") -> UpstreamOptions:
    """Raises ValueError where no request could ever succeed."""
    chosen = settings.upstream
    return UpstreamOptions(
        url=url or chosen.url,
        connect_timeout=chosen.connect_timeout,
        read_timeout=chosen.read_timeout,
        trust_env=chosen.trust_env,
        ca_file=chosen.ca_file,
        proxy=chosen.proxy,
    )


async def embedder_of(
    settings: Settings, upstream: Upstream, opened: AsyncExitStack
) -> Embedder | None:
    """What makes recall's vectors; None where words alone count."""
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


def filler_of(store: Backend, embedder: Embedder | None, opened: AsyncExitStack) -> Filler | None:
    if embedder is None:
        return None
    filler = Filler(store, store, embedder, text_of, time.time)
    filler.open()
    opened.push_async_callback(filler.close)
    return filler


def nearness_of(
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


def toolbox_of(store: Backend, recaller: Recaller, tokenizers: Tokenizers) -> Toolbox:
    """What the model's own tools of memory work with."""
    book = FactBook(store, tokenizers.counter_for(None).count_text, time.time)
    return Toolbox(book, recaller, time.time)


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
