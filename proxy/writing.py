"""Making the parts that write memory with a model: who is asked, what is asked, what runs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from proxy.assembly import Ground, upstream_of
from proxy.background.budget import Budget
from proxy.background.completer import UpstreamCompleter
from proxy.background.completion import Completer
from proxy.background.credentials import Credentials
from proxy.background.ending import Backoff
from proxy.background.runner import Runner
from proxy.chat import jsontext
from proxy.chat.message import text_of
from proxy.errors import RawHeaders
from proxy.gateway.profile import window_of
from proxy.gateway.tenancy import ANONYMOUS
from proxy.learning.fact_book import FactBook
from proxy.learning.fact_choice import FactChoice
from proxy.learning.fact_student import FactStudent
from proxy.learning.knowledge import CardFile
from proxy.learning.known import Knowledge
from proxy.learning.learned import Learned
from proxy.learning.learner import Learner
from proxy.learning.reader import Reader
from proxy.memory.work import Due
from proxy.settings import ProfileSettings, Settings, WriterSettings
from proxy.summary.summarizer import Summarizer
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


@dataclass(frozen=True, slots=True)
class Learning:
    """What is known of people and of how to answer."""

    learned: Learned
    facts: FactBook
    knowledge: Knowledge


def writers(settings: Settings) -> Iterator[WriterSettings]:
    """All parts that are switched on, of all profiles."""
    for profile in (settings.memory, *settings.profiles.values()):
        parts: list[WriterSettings] = [getattr(profile, name) for name in PARTS]
        yield from (part for part in parts if part.enabled)


def learning_of(ground: Ground) -> Learning:
    """What is learned, as it is kept, shown and forgotten, whether or not anything is learned now.

    Raises ValueError for a schema that is none.
    """
    store, count = ground.store, ground.count_text
    learned = Learned.under(ground.settings, store, text_of, count, time.time)
    facts = FactBook(store, count, time.time)
    instructions, profile, episodes = learned.cards()
    cards = (instructions, profile, FactChoice(time.time), episodes)
    return Learning(
        learned=learned,
        facts=facts,
        knowledge=CardFile(store, cards, time.time),
    )


async def writing_of(ground: Ground, learning: Learning) -> Writing | None:
    """None where no profile has anything written; its runner has still to be opened."""
    settings = ground.settings
    if not any(writers(settings)):
        return None
    credentials = Credentials(ANONYMOUS, _key_for_all(settings))
    budget = Budget(ground.store, settings.background.tokens_per_day, time.time)
    ground.opened.push_async_callback(budget.settle)
    completer = UpstreamCompleter(
        await _upstreams(ground),
        credentials,
        budget,
        lambda model: ground.tokenizers.counter_for(model).count_text,
        ground.telemetry,
        time.time,
    )
    pace = settings.background
    runner = Runner(
        ground.store,
        {
            "summary": _summarizer(ground, completer),
            "learning": _learner(ground, learning, completer),
        },
        pace.concurrency,
        Backoff(pace.retry_seconds, pace.max_retry_seconds),
        time.time,
        ground.telemetry.worked,
    )
    return Writing(credentials, runner)


async def _upstreams(ground: Ground) -> Mapping[str, Upstream]:
    """Clients by the URL that the settings have; "" is the one that chats go to."""
    known = {"": ground.upstream, ground.settings.upstream.url: ground.upstream}
    for url in {part.url for part in writers(ground.settings)} - known.keys():
        known[url] = upstream_of(ground.settings, url)
        await known[url].open()
        ground.opened.push_async_callback(known[url].close)
    return known


def _key_for_all(settings: Settings) -> str | None:
    key = settings.upstream.api_key
    clients = settings.tenancy.mode == "clients"
    return key.get_secret_value() if key is not None and clients else None


def _profiles(settings: Settings) -> Callable[[str], ProfileSettings | None]:
    return lambda name: settings.profile(name or None)


def _summarizer(ground: Ground, completer: Completer) -> Summarizer:
    return Summarizer(
        ground.store,
        completer,
        _profiles(ground.settings),
        window_of,
        jsontext.decode,
        ground.count_text,
        time.time,
    )


def _learner(ground: Ground, learning: Learning, completer: Completer) -> Learner:
    store, telemetry, learned = ground.store, ground.telemetry, learning.learned
    return Learner(
        Reader(store, text_of, ground.count_text),
        store,
        _profiles(ground.settings),
        time.time,
        (
            FactStudent(completer, store, learning.facts, telemetry.learned_nothing),
            *learned.students(completer, telemetry.skipped),
        ),
        (learned.reflector(completer, telemetry.skipped),),
        telemetry.skipped,
    )
