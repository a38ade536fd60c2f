"""The composition root: makes all parts and connects them.

The server, the commands that work on a store and the tests use it; everything else receives its
collaborators.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property, partial

import msgspec
from starlette.routing import BaseRoute

from proxy.assembly.background import SHUTDOWN_SECONDS, Writing, learning_of, writing_of
from proxy.assembly.mcp import route_of_mcp
from proxy.assembly.recall import Recalling, recalling_of
from proxy.assembly.resources import Resources, spool_of
from proxy.assembly.upstreams import upstreams_of
from proxy.gateway.asking.asker import UpstreamCaller
from proxy.gateway.conversation import Conversations
from proxy.gateway.dispatch.dispatch import Dispatch, DispatchOptions
from proxy.gateway.exchange import Services, catalogue_window
from proxy.gateway.fetches import Fetches
from proxy.gateway.gateway import Gateway
from proxy.gateway.passthrough import Passthrough
from proxy.gateway.preview import Preview
from proxy.gateway.prompt.knowledge_step import KnowledgeStep
from proxy.gateway.prompt.recall_step import RecallStep
from proxy.gateway.prompt.rewrite_step import RewriteStep
from proxy.gateway.recording.exchange_recorder import due_after_import
from proxy.gateway.state.conversations import Removals
from proxy.gateway.state.endpoints import StateEndpoints
from proxy.gateway.state.log import StateLog
from proxy.gateway.tools.toolbox import Toolbox
from proxy.learning.kinds import KINDS, Kind
from proxy.learning.learned import Learned
from proxy.memory.archive import do_nothing
from proxy.memory.locks import Locks
from proxy.memory.model import SessionKey
from proxy.memory.planner import Planner, planning_threads
from proxy.memory.recording.backlog import Backlog
from proxy.memory.recording.commit import Count
from proxy.memory.recording.concurrent_commit import CommitSettler
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.recorder import Recorder
from proxy.memory.recording.replay import ReplayContext
from proxy.memory.recording.spool import Spool
from proxy.memory_api.api import Api, LongTimeoutStores
from proxy.memory_api.conversations.message_edit import remove
from proxy.memory_api.erasure.caches import TextCaches
from proxy.memory_api.routes import admin_routes
from proxy.recall.recaller import RecallAdmin
from proxy.rewrite.rewriter import Rewriter
from proxy.settings import ClientSettings, Settings
from proxy.tenancy import Client, Tenancy
from proxy.upstreams.choice import Upstreams
from proxy.upstreams.windows import ContextWindows
from proxy.wire.hosts import Trusted
from proxy.wire.limits import ByteBudgets


class Parts(msgspec.Struct, frozen=True, dict=True):
    """The parts of the applications.

    ``writing`` is None if no model writes memory here.  Chats and previews share ``services`` and
    their thread pool; all requests share ``byte_budgets``.
    """

    resources: Resources
    recalling: Recalling
    learned: Learned
    long_timeout: LongTimeoutStores
    writing: Writing | None
    spool: Spool
    recorder: Recorder
    tenancy: Tenancy
    services: Services
    byte_budgets: ByteBudgets
    upstreams: Upstreams | None
    windows: ContextWindows | None

    async def open(self, ending: float) -> None:
        """Start replaying the spool and the background work.  Recording has ``ending`` seconds at
        shutdown."""
        opened = self.resources.opened
        await self.recorder.open()
        opened.push_async_callback(self.recorder.close, ending)
        if self.writing is not None:
            self.writing.runner.open()
            opened.push_async_callback(self.writing.runner.close, SHUTDOWN_SECONDS)
        if self.windows is not None:
            self.windows.open()
            opened.push_async_callback(self.windows.close)

    def routes(self, *, mcp: bool = False) -> Sequence[BaseRoute]:
        """The routes of health, metrics, the console and the memory API; ``mcp``: also /mcp."""
        return [*admin_routes(self._api), *([route_of_mcp(self._api)] if mcp else [])]

    def gateway(self) -> Gateway:
        settings, services, api = self.resources.settings, self.services, self._api
        passthrough = self._passthrough()
        asker = self._asker(passthrough)
        on_answered = self.writing.remember_key if self.writing else None
        # As the memory API removes.
        removals = Removals(api.eraser.erase_session, partial(remove, api))
        return Gateway(
            settings,
            self.tenancy,
            passthrough,
            Conversations(settings, passthrough, services, asker, on_answered),
            Fetches(passthrough, services),
            StateEndpoints(settings, services, removals),
            self.resources.telemetry,
            self.byte_budgets,
        )

    def _asker(self, passthrough: Passthrough) -> UpstreamCaller:
        toolbox = Toolbox(self.learned.facts, self.recalling.recaller, time.time)
        again = self.resources.settings.upstream.retry_too_long
        return UpstreamCaller(passthrough, self.services, toolbox, retry_too_long=again)

    def _passthrough(self) -> Passthrough:
        """Relays to the only upstream, or chooses one of several."""
        settings, upstream = self.resources.settings, self.resources.upstream
        tenancy, telemetry = self.tenancy, self.resources.telemetry
        if self.upstreams is None or self.windows is None:
            return Passthrough(upstream, tenancy, telemetry)
        trusted = Trusted.of(settings.server.cors_origins, settings.tenancy.trusted_hosts)
        aside = self.services.threads
        choosing = DispatchOptions(self.upstreams, self.windows, aside, settings.server, trusted)
        return Dispatch(upstream, tenancy, telemetry, choosing)

    @cached_property
    def _caches(self) -> TextCaches:
        forget_session = self.writing.forget_session if self.writing else do_nothing
        return TextCaches(self.recalling.recaller.clear_caches, forget_session)

    @cached_property
    def _api(self) -> Api:
        """The memory API, shared so that all erasures go through the same eraser."""
        settings, store = self.resources.settings, self.resources.store
        counter, recalling = self.resources.tokenizers.counter_for, self.recalling
        api = Api(
            settings=settings,
            telemetry=self.resources.telemetry,
            store=store,
            spool=self.spool,
            tenancy=self.tenancy,
            preview=Preview(settings, self.services),
            recall_admin=RecallAdmin(recalling.recaller, recalling.indexer),
            on_recorded=recalling.index_updater.on_recorded,
            on_edited=recalling.index_updater.on_edited,
            due_after_import=partial(due_after_import, settings.memory),
            counter=lambda model: counter(model).count,
            counters=self.resources.tokenizers.in_use,
            count_text=self.resources.count_text,
            learned=self.learned,
            long_timeout=self.long_timeout,
            caches=self._caches,
            byte_budgets=self.byte_budgets,
            failing_sessions=lambda: self.recorder.failing_sessions,
            is_losing=lambda: self.recorder.is_losing,
        )
        self.resources.opened.push_async_callback(api.eraser.close)
        return api


async def parts_of(
    resources: Resources,
    *,
    writes: bool = False,
    load_timeout: float | None = None,
    index_delay: float | None = None,
    kinds: Sequence[Kind] = KINDS,
) -> Parts:
    """All parts over open resources; spool and recorder are not open yet.

    ``writes``: background work runs here, if the settings enable any.  ``load_timeout`` and
    ``index_delay`` (seconds) override the defaults.  ``kinds`` are those of learned memory.
    Raises ValueError for settings that cannot be met, OSError.
    """
    recalling = await recalling_of(resources, index_delay)
    learned = learning_of(resources, resources.store, kinds)
    long_timeout = LongTimeoutStores(
        resources.long_timeout_store, learning_of(resources, resources.long_timeout_store, kinds)
    )
    upstreams = await upstreams_of(resources)
    windows = ContextWindows(upstreams) if upstreams else None
    writing = await writing_of(resources, learned, upstreams) if writes else None
    spool = spool_of(resources.settings, resources.store.name)
    timeout = load_timeout or resources.settings.store.timeout
    recorder = _recorder(resources, spool, timeout, recalling, writing)
    tenancy = _tenancy(resources.settings)
    services = Services(
        recorder=recorder,
        recall=RecallStep(recalling.recaller, resources.telemetry),
        knowledge=KnowledgeStep(learned.prompt_cards),
        counter=resources.tokenizers.counter_for,
        telemetry=resources.telemetry,
        state=StateLog(resources.store, timeout),
        rewrite=_rewrite(resources, writing),
        window=windows or catalogue_window,
    )
    return Parts(
        resources=resources,
        recalling=recalling,
        learned=learned,
        long_timeout=long_timeout,
        writing=writing,
        spool=spool,
        recorder=recorder,
        tenancy=tenancy,
        services=services,
        byte_budgets=ByteBudgets(resources.settings.server.max_held_bytes),
        upstreams=upstreams,
        windows=windows,
    )


def _rewrite(resources: Resources, writing: Writing | None) -> RewriteStep:
    """The step that rewrites follow-up questions; it does nothing without background work."""
    if writing is None:
        return RewriteStep()
    rewriter = Rewriter(writing.completer, resources.count_text)
    resources.opened.push_async_callback(rewriter.close)
    return RewriteStep(rewriter)


def _recorder(
    resources: Resources,
    spool: Spool,
    timeout: float,
    recalling: Recalling,
    writing: Writing | None,
) -> Recorder:
    """The recorder; ``timeout``: seconds for loading a session."""
    planning, locks = planning_threads(), Locks[SessionKey]()
    resources.opened.callback(planning.shutdown)

    def counter(model: str | None) -> Count:
        return resources.tokenizers.counter_for(model).count

    live, long_timeout = (
        ReplayContext(store, Planner(store, planning), CommitSettler(store, locks), counter)
        for store in (resources.store, resources.long_timeout_store)
    )
    listeners = Listeners(
        on_recorded=recalling.index_updater.on_recorded,
        on_edited=recalling.index_updater.on_edited,
        on_due=writing.due if writing else do_nothing,
        on_quarantine=resources.telemetry.count_quarantined,
        on_session_failure=resources.telemetry.count_failing_session,
    )
    last_resort = resources.settings.store.commit_limit
    backlog = Backlog(spool, live, long_timeout, listeners, last_resort)
    return Recorder(live, backlog, listeners, timeout)


def _tenancy(settings: Settings) -> Tenancy:
    upstream_key, admin_key = settings.upstream.api_key, settings.server.admin_key
    return Tenancy(
        settings.tenancy.mode,
        [_client(chosen) for chosen in settings.clients],
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
