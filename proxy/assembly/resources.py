"""Opens what all parts use: the store, the upstream, the tokenizers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from proxy.assembly.origin import upstream_options
from proxy.chat.models.tokens import Tokenizers
from proxy.memory.recording.replay import REPLAY_SECONDS
from proxy.memory.recording.spool import Spool
from proxy.settings import Settings
from proxy.stores.address import is_same_store
from proxy.stores.open import Backend, open_store
from proxy.telemetry import Telemetry
from proxy.wire.upstream import Upstream, open_upstream

STORE_TIMEOUT = REPLAY_SECONDS
"""The store timeout of background work, in seconds: replaying and indexing long sessions."""


class Resources(msgspec.Struct, frozen=True):
    """What all parts use.  They register what they open with ``opened``, which closes it in reverse
    order.

    ``long_timeout_store`` is another client of the same store for background work, with a longer
    timeout and with threads and connections of its own.
    """

    settings: Settings
    telemetry: Telemetry
    tokenizers: Tokenizers
    store: Backend
    long_timeout_store: Backend
    upstream: Upstream
    opened: AsyncExitStack

    def count_text(self, text: str) -> int:
        """Tokens of a text, for no model in particular."""
        return self.tokenizers.counter_for(None).count_text(text)


@asynccontextmanager
async def open_resources(
    settings: Settings,
    telemetry: Telemetry,
    timeout_override: float | None = None,
    *,
    as_is: bool = False,
) -> AsyncIterator[Resources]:
    """Open the store and the upstream; close everything at the end.

    ``timeout_override`` (seconds) replaces all store timeouts; ``long_timeout_store`` is then the
    same one; ``as_is``: the store's file is neither created nor migrated.  Raises StoreError,
    OSError and ValueError if one of them cannot be opened.
    """
    async with AsyncExitStack() as opened:
        store = store_of(settings, timeout_override, as_is=as_is)
        upstream = upstream_of(settings)
        await store.open()
        opened.push_async_callback(store.close)
        long_timeout_store = store if timeout_override else store.with_long_timeout(STORE_TIMEOUT)
        await long_timeout_store.open()
        opened.push_async_callback(long_timeout_store.close)
        await upstream.open()
        opened.push_async_callback(upstream.close)
        yield Resources(
            settings, telemetry, Tokenizers(), store, long_timeout_store, upstream, opened
        )


def store_of(
    settings: Settings, timeout_override: float | None = None, *, as_is: bool = False
) -> Backend:
    """The store; ``timeout_override`` and ``as_is`` as of ``open_resources``."""
    limits = settings.store
    return open_store(
        limits.url,
        timeout=timeout_override or limits.timeout,
        commit_timeout=timeout_override or limits.commit_limit,
        wait_replicas=limits.wait_replicas,
        as_is=as_is,
    )


def spool_of(settings: Settings, store: str) -> Spool:
    """The spool for exchanges that the store with this name could not record; not open yet."""
    chosen = settings.spool
    return Spool(Path(chosen.path), store, chosen.max_bytes, is_same_store)


def upstream_of(settings: Settings, url: str = "") -> Upstream:
    """A client of the upstream, or of another API at ``url`` with the same options.  Raises
    ValueError for options with which no request can succeed, OSError."""
    return open_upstream(settings.upstream.client, upstream_options(settings, url))
