"""Making the parts that write memory with a model: who is asked, what is asked, what runs it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from proxy.assembly import upstream_of
from proxy.background.budget import Budget
from proxy.background.completer import UpstreamCompleter
from proxy.background.completion import Completer
from proxy.background.credentials import Credentials
from proxy.background.ending import Backoff
from proxy.background.job import Job
from proxy.background.runner import Runner
from proxy.chat import jsontext
from proxy.chat.tokens import Tokenizers
from proxy.errors import RawHeaders
from proxy.gateway.profile import window_of
from proxy.gateway.tenancy import ANONYMOUS
from proxy.memory.work import Due, Kind
from proxy.settings import ProfileSettings, Settings, WriterSettings
from proxy.stores.backend import Backend
from proxy.summary.summarizer import Summarizer
from proxy.telemetry import Telemetry
from proxy.wire.upstream import Upstream

PARTS = ("summary", "facts", "profile", "episodes", "instructions")
"""The parts of a profile that a model writes."""

ENDING = 5.0
"""Seconds that work under way has to end when the proxy does; else it is done another time."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What the proxy's other parts tell the background: whose keys there are, and what is due."""

    credentials: Credentials
    runner: Runner

    def heard(self, tenant: str, headers: RawHeaders) -> None:
        """The upstream has answered a request that a tenant made with these headers."""
        self.credentials.note(tenant, headers)

    def due(self, due: Sequence[Due]) -> None:
        """Work has been put into the queue."""
        if due:
            self.runner.awake(min(one.at for one in due))


def writers(settings: Settings) -> Iterator[WriterSettings]:
    """All parts that are switched on, of all profiles."""
    for profile in (settings.memory, *settings.profiles.values()):
        parts: list[WriterSettings] = [getattr(profile, name) for name in PARTS]
        yield from (part for part in parts if part.enabled)


async def writing_of(
    settings: Settings,
    store: Backend,
    upstream: Upstream,
    tokenizers: Tokenizers,
    telemetry: Telemetry,
    opened: AsyncExitStack,
) -> Writing | None:
    """None where no profile has anything written; its runner has still to be opened."""
    if not any(writers(settings)):
        return None
    by_url = await _upstreams(settings, upstream, opened)
    credentials = Credentials(ANONYMOUS, _key_for_all(settings))
    budget = Budget(store, settings.background.tokens_per_day, time.time)
    opened.push_async_callback(budget.settle)
    completer = UpstreamCompleter(
        by_url,
        credentials,
        budget,
        lambda model: tokenizers.counter_for(model).count_text,
        telemetry,
        time.time,
    )
    pace = settings.background
    runner = Runner(
        store,
        _jobs(settings, store, completer, tokenizers),
        pace.concurrency,
        Backoff(pace.retry_seconds, pace.max_retry_seconds),
        time.time,
        telemetry.worked,
    )
    return Writing(credentials, runner)


async def _upstreams(
    settings: Settings, upstream: Upstream, opened: AsyncExitStack
) -> Mapping[str, Upstream]:
    """Clients by the URL that the settings have; "" is the one that chats go to."""
    known = {"": upstream, settings.upstream.url: upstream}
    for url in {part.url for part in writers(settings)} - known.keys():
        known[url] = upstream_of(settings, url)
        await known[url].open()
        opened.push_async_callback(known[url].close)
    return known


def _key_for_all(settings: Settings) -> str | None:
    key = settings.upstream.api_key
    clients = settings.tenancy.mode == "clients"
    return key.get_secret_value() if key is not None and clients else None


def _jobs(
    settings: Settings, store: Backend, completer: Completer, tokenizers: Tokenizers
) -> Mapping[Kind, Job]:
    def profile_of(name: str) -> ProfileSettings | None:
        return settings.profile(name or None)

    count = tokenizers.counter_for(None).count_text
    summarizer = Summarizer(
        store, completer, profile_of, window_of, jsontext.decode, count, time.time
    )
    return {"summary": summarizer}
