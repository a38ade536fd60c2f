"""Makes the parts that write memory with a model: the completer, the jobs, the runner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from proxy.assembly.resources import Resources, upstream_of
from proxy.background.budget import Budget
from proxy.background.completer import UpstreamCompleter
from proxy.background.completion import Completer
from proxy.background.credentials import Credentials
from proxy.background.routing import NamedUpstreams
from proxy.background.runner import Backoff, Runner
from proxy.chat import jsontext
from proxy.chat.message import typed_string_of
from proxy.errors import RawHeaders
from proxy.gateway.context import window_of
from proxy.learning.job import LearningJob
from proxy.learning.kinds import Kind, LearningObserver
from proxy.learning.learned import Learned
from proxy.learning.profile.document import Schemas
from proxy.learning.reading import Reader
from proxy.memory.model import SessionKey, WorkRequest
from proxy.settings import Settings, WriterSettings
from proxy.stores.open import Backend
from proxy.summary.summarizer import Rebuilder, Summarizer
from proxy.tenancy import ANONYMOUS
from proxy.upstreams.choice import Upstreams
from proxy.wire.upstream import Upstream

SHUTDOWN_SECONDS = 5.0
"""Seconds that running jobs have at shutdown; unfinished ones are run again later."""


class Writing(msgspec.Struct, frozen=True):
    """The background work, and what it is told: the clients' keys, and what is due.

    ``credentials``: the store of clients' keys for each upstream, by its name.
    ``forget_session`` drops what is written about a session and not stored.
    """

    credentials: Mapping[str, Credentials]
    runner: Runner
    completer: Completer
    forget_session: Callable[[SessionKey], None]

    def remember_key(self, tenant: str, headers: RawHeaders, upstream: str) -> None:
        """Remember a tenant's key after a successful request: for the upstream ("" for [upstream])
        that it was sent to."""
        known = self.credentials.get(upstream)
        if known is not None:
            known.remember(tenant, headers)

    def due(self, due: Sequence[WorkRequest]) -> None:
        """Work has been put into the queue."""
        if due:
            self.runner.wake_at(min(one.due_at for one in due))


def writers(settings: Settings) -> Iterator[WriterSettings]:
    """The enabled settings sections of parts that call a model, of all profiles."""
    for profile in (settings.memory, *settings.profiles.values()):
        yield from (part for part in profile.model_callers.values() if part.enabled)


def learning_of(resources: Resources, store: Backend, kinds: Sequence[Kind]) -> Learned:
    """Access to learned memory, which exists even if nothing is learned now.

    ``store`` is that of the resources, or the one with the long timeout.  Raises ValueError for an
    invalid schema.
    """
    settings, count = resources.settings, resources.count_text
    schemas = Schemas(settings.schemas)
    return Learned(store, schemas, typed_string_of, count, settings.profile, time.time, kinds)


async def writing_of(
    resources: Resources, learned: Learned, several: Upstreams | None
) -> Writing | None:
    """The background work, with its runner not open yet; None if no profile calls a model."""
    settings = resources.settings
    if not any(writers(settings)):
        return None
    credentials = Credentials(ANONYMOUS, _key_for_all(settings))
    named = NamedUpstreams(several, ANONYMOUS) if several else None
    budget = Budget(resources.store, settings.background.tokens_per_day, time.time)
    resources.opened.push_async_callback(budget.flush)
    completer = UpstreamCompleter(
        await _upstreams(resources),
        credentials,
        budget,
        lambda model: resources.tokenizers.counter_for(model).count_text,
        resources.telemetry,
        time.time,
        named,
    )
    summarizer = _summarizer(resources, completer)
    runner = Runner(
        resources.store,
        {
            "summary": summarizer,
            "rebuild": Rebuilder(summarizer, settings.background.max_retry_seconds),
            "learning": _learning(resources, learned, completer),
        },
        settings.background.concurrency,
        _backoff(settings),
        time.time,
        resources.telemetry.count_work,
    )
    known = {"": credentials, **(named.credentials if named else {})}
    return Writing(known, runner, completer, summarizer.forget)


async def _upstreams(resources: Resources) -> Mapping[str, Upstream]:
    """Upstream clients by the URL in the settings; "" is [upstream]."""
    known = {"": resources.upstream, resources.settings.upstream.url: resources.upstream}
    for url in {part.url for part in writers(resources.settings)} - known.keys():
        known[url] = upstream_of(resources.settings, url)
        await known[url].open()
        resources.opened.push_async_callback(known[url].close)
    return known


def _key_for_all(settings: Settings) -> str | None:
    key = settings.upstream.api_key
    clients = settings.tenancy.mode == "clients"
    return key.get_secret_value() if key is not None and clients else None


def _backoff(settings: Settings) -> Backoff:
    return Backoff(settings.background.retry_seconds, settings.background.max_retry_seconds)


def _summarizer(resources: Resources, completer: Completer) -> Summarizer:
    return Summarizer(
        resources.store,
        completer,
        resources.settings.profile,
        window_of,
        jsontext.decode,
        resources.count_text,
        time.time,
    )


def _learning(resources: Resources, learned: Learned, completer: Completer) -> LearningJob:
    store, telemetry = resources.store, resources.telemetry
    watch = LearningObserver(telemetry.count_skipped, telemetry.count_empty_learning)
    return LearningJob(
        Reader(store, typed_string_of, resources.count_text),
        store,
        store,
        resources.settings.profile,
        time.time,
        _backoff(resources.settings),
        learned.extractors(completer, watch),
        learned.improvers(completer, watch),
        telemetry.count_skipped,
    )
