"""Records one exchange once its reply is there, and queues the background work that is due then.

Recorders are made while the request is in flight and live as long as its stream, so they hold as
little as possible.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from proxy.chat import jsontext
from proxy.chat.message import ChatMessage
from proxy.chat.models.limits import MAX_NAME
from proxy.chat.reply.answer import Choice, Reply
from proxy.chat.tools.calltext import calls_as_text
from proxy.gateway.context import RequestContext
from proxy.gateway.exchange import Services
from proxy.gateway.offload import MIN_THREAD_BYTES, RequestThreads
from proxy.gateway.outgoing import DegradedPrompt, OutgoingRequest
from proxy.gateway.recording.tap import TOO_LARGE
from proxy.gateway.report import MemoryReport
from proxy.gateway.tools.toolbox import ToolLog
from proxy.memory.erasure import steady_now
from proxy.memory.model import (
    Amendment,
    Commit,
    Exchange,
    Injection,
    Kind,
    SessionKey,
    Snapshot,
    WorkRequest,
)
from proxy.memory.prompt.trace import KnownRuns
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.amend import ExtendedAnswer, amend, extended_answer
from proxy.memory.recording.commit import (
    ROOM_FOR_ANSWER,
    Count,
    Deferred,
    ExchangeMeta,
    PendingRecord,
    build_commit,
    fetch_key,
    pending_record,
    spooled_messages,
)
from proxy.memory.recording.recorder import CommitResult, Recorder
from proxy.settings import ProfileSettings
from proxy.telemetry import Telemetry

logger = logging.getLogger(__name__)

T = TypeVar("T")


def due_of(context: RequestContext, now: float) -> tuple[WorkRequest, ...]:
    """The background work that may be due after an exchange; ``now`` in Unix seconds.

    ``build_commit`` drops the summary unless the exchange fills the window.  A user's session is
    learned from after some turns, or after a pause.
    """
    identity, pace = context.identity, context.profile_rules.pace
    profile, due = identity.profile, list[WorkRequest]()
    if context.profile.summary.enabled:
        due.append(WorkRequest(kind="summary", profile=profile, due_at=now))
    if pace is not None and identity.user is not None:
        later = now + pace.seconds
        due.append(
            WorkRequest(
                kind="learning",
                profile=profile,
                due_at=now,
                min_requests=pace.turns,
                due_if_fewer=later,
            )
        )
    return tuple(due)


def due_after_import(
    profile: ProfileSettings, user: str | None, now: float
) -> tuple[WorkRequest, ...]:
    """The background work that is due after an import into a session of ``user``."""
    kinds: list[Kind] = ["summary"] if profile.summary.enabled else []
    if user is not None and profile.paces:
        kinds.append("learning")
    return tuple(WorkRequest(kind=kind, profile="", due_at=now) for kind in kinds)


class RecordHeader(msgspec.Struct, frozen=True, gc=False):
    """What is recorded of an exchange beside its messages.

    ``system`` is empty if it has not changed.  ``forces_calls``: the request demands a tool call,
    so that the calls may be the answer.
    """

    id: str
    profile: str
    began: float
    model: str | None
    choices: int
    user: str | None
    system: tuple[bytes, ...]
    idempotency_key: str | None
    ttl: int
    injection: Injection
    due: tuple[WorkRequest, ...]
    forces_calls: bool


class UnplannedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request without a snapshot (memory had failed), reconciled when its record is replayed."""

    messages: Sequence[ChatMessage]
    intent: Intent
    window: Window

    def recorded(self) -> UnplannedRequest:
        messages = [utterance.message for utterance in spooled_messages(self.messages)]
        return msgspec.structs.replace(self, messages=messages)


class ExchangeRecorder:
    """The ReplyRecorder of a chat exchange.

    ``size``: bytes of the request's new messages.
    """

    def __init__(
        self,
        key: SessionKey,
        header: RecordHeader,
        pending: PendingRecord | UnplannedRequest,
        recorder: Recorder,
        count: Count,
        telemetry: Telemetry,
        threads: RequestThreads,
        size: int,
        tools: ToolLog | None,
    ) -> None:
        self._key, self._header, self._pending = key, header, pending
        self._recorder, self._count, self._telemetry = recorder, count, telemetry
        self._threads, self._size = threads, size
        self._tools = tools
        self._commit: Commit | None = None
        self._deferred: Exchange | None = None
        self._answers: tuple[Choice, ...] = ()
        """The choices in the form in which they are recorded."""
        self._usage_recorded = self._cache_counted = False
        self.recorded = False
        """The exchange is in history or in the spool."""

    async def reduce_messages(self) -> int:
        """Reduce large messages to what will be recorded of them; returns the bytes that remain.

        Inline media are dropped here, since the stream may last for minutes.
        """
        if self._size > MIN_THREAD_BYTES:
            self._pending = await self._in_thread(self._size, self._pending.recorded)
            self._size = sum(len(message.raw) for message in self._pending.messages)
        return self._size

    async def commit(self, reply: Reply | None, *, incomplete: bool) -> None:
        """Record the exchange: durable on return, else counted as lost."""
        start = time.perf_counter()
        result = await self._record(reply, await self._meta(reply, incomplete))
        self.recorded = result in ("recorded", "spooled")
        self._telemetry.observe_commit(time.perf_counter() - start)
        if result == "lost":
            self._telemetry.count_lost()
        else:
            self._telemetry.count_commit(result)
        if result == "erased":
            logger.warning("an exchange is not recorded: it began before an erasure")
        if reply is not None:
            self._count_cache(reply)

    def _count_cache(self, reply: Reply) -> None:
        """Count the cache use once: in the commit or in the amendment, wherever usage arrives."""
        if reply.usage is None or self._cache_counted:
            return
        self._cache_counted = True
        usage = reply.token_usage
        self._telemetry.count_cached_tokens(usage.cached)
        self._telemetry.count_cache_writes(usage.written)

    async def _record(self, reply: Reply | None, meta: ExchangeMeta) -> CommitResult:
        self._usage_recorded = meta.exchange.usage is not None
        answers = self._answers = self._choices(reply) if reply else ()
        pending = self._pending
        if isinstance(pending, UnplannedRequest):
            self._deferred = meta.exchange
            unplanned = (pending.messages, answers, meta, pending.intent, pending.window)
            deferred = await self._in_thread(self._size, partial(Deferred.of, *unplanned))
            return await self._recorder.defer(self._key, deferred)
        size = self._size + sum(len(answer.body) for answer in answers)
        planned = (pending, answers, meta, self._count)
        self._commit = await self._in_thread(size, partial(build_commit, *planned))
        return await self._recorder.record(self._key, self._commit)

    async def amend(self, reply: Reply) -> None:
        """Record what arrived after the commit."""
        self._count_cache(reply)
        answers = self._choices(reply)
        extended = extended_answer(self._answers, answers)
        amendment = None
        if self._commit is not None:
            arguments = (self._commit, answers, reply.usage, self._count, extended)
            size = len(extended.body) if extended else 0
            amendment = await self._in_thread(size, partial(amend, *arguments))
        elif reply.usage is not None and not self._usage_recorded:
            amendment = Amendment(exchange=self._header.id, usage=reply.usage)
        if amendment is not None:
            await self._recorder.amend(self._key, amendment)
        if extended is not None and self._deferred is not None:
            deferred_answer = ExtendedAnswer.of(self._deferred, self._answers, extended)
            await self._recorder.defer_extended_answer(self._key, deferred_answer)

    def _choices(self, reply: Reply) -> tuple[Choice, ...]:
        if not self._header.forces_calls:
            return reply.choices
        return tuple(
            msgspec.structs.replace(choice, unanswered_form=calls_as_text(choice.body))
            if choice.calls
            else choice
            for choice in reply.choices
        )

    async def _in_thread(self, size: int, work: Callable[[], T]) -> T:
        return await self._threads.run(self._key.tenant, size, work)

    async def _meta(self, reply: Reply | None, incomplete: bool) -> ExchangeMeta:
        header, pending_id = self._header, reply.pending_id if reply else None
        return ExchangeMeta(
            exchange=self._exchange(reply, incomplete),
            user=header.user,
            system=jsontext.join_items(header.system) if header.system else None,
            system_tokens=await self._threads.sum_tokens(
                self._key.tenant, self._count, header.system
            ),
            idempotency_key=fetch_key(pending_id) if pending_id else header.idempotency_key,
            ttl=header.ttl,
            choices=ROOM_FOR_ANSWER if pending_id else header.choices,
            work_requests=header.due,
        )

    def _exchange(self, reply: Reply | None, incomplete: bool) -> Exchange:
        header = self._header
        choice = reply.choices[0] if reply and reply.choices else None
        return Exchange(
            id=header.id,
            profile=header.profile,
            started_at=header.began,
            created_at=steady_now(),
            model=_encodable((reply.model if reply else None) or header.model),
            requested_model=_encodable(header.model),
            incomplete=incomplete,
            finish_reason=_encodable(choice.finish_reason) if choice else None,
            usage=reply.usage if reply else None,
            memory=self._injection(reply),
            has_idempotency_key=header.idempotency_key is not None,
        )

    def _injection(self, reply: Reply | None) -> Injection:
        """What memory did, with the calls of its tools, and whether the answer was truncated."""
        injection = self._header.injection
        if reply is not None and reply.truncated:
            injection = msgspec.structs.replace(injection, reason=TOO_LARGE)
        return self._tools.add_to(injection) if self._tools else injection


def recorder_for(
    outgoing: OutgoingRequest, report: MemoryReport, services: Services
) -> ExchangeRecorder:
    """The recorder of a request that is about to be sent; ``report`` is that of its answer."""
    exchange = outgoing.exchange
    pending = _pending(outgoing)
    size = sum(len(message.raw) for message in pending.messages)
    if isinstance(pending, PendingRecord) and size <= MIN_THREAD_BYTES:
        pending = pending.counted(exchange.counter.count)
    return ExchangeRecorder(
        exchange.context.key,
        _record_header(outgoing, report, services.known_runs),
        pending,
        recorder=services.recorder,
        count=exchange.counter.count,
        telemetry=services.telemetry,
        threads=services.threads,
        size=size,
        tools=outgoing.tools.log if outgoing.tools else None,
    )


def _pending(outgoing: OutgoingRequest) -> PendingRecord | UnplannedRequest:
    exchange, prompt = outgoing.exchange, outgoing.prompt
    messages = exchange.request.messages
    if isinstance(prompt, DegradedPrompt):
        return UnplannedRequest(messages, exchange.intent, exchange.rules.window)
    prepared = prompt.loaded.prepared
    plan, continues = prepared.planned.plan, bool(exchange.intent.continued_answer)
    return pending_record(
        plan, prompt.prompt, messages, prepared.snapshot, supersedes_siblings=continues
    )


def _record_header(
    outgoing: OutgoingRequest, report: MemoryReport, known_runs: KnownRuns
) -> RecordHeader:
    exchange, prompt = outgoing.exchange, outgoing.prompt
    request, context = exchange.request, exchange.context
    leading = request.system_record
    system = jsontext.join_items(leading) if leading else None
    snapshot = Snapshot() if isinstance(prompt, DegradedPrompt) else prompt.loaded.prepared.snapshot
    return RecordHeader(
        id=exchange.id,
        profile=context.identity.profile,
        began=exchange.began,
        model=request.model,
        choices=request.n,
        forces_calls=request.forces_calls,
        user=context.identity.user or snapshot.owner,
        system=leading if system != snapshot.system else (),
        idempotency_key=context.identity.idempotency_key,
        ttl=context.profile.ttl,
        injection=outgoing.injection(report, known_runs),
        due=due_of(context, time.time()),  # queues go by the clock, which may have been put back
    )


def _encodable(name: str | None) -> str | None:
    """The beginning of a client's or upstream's name (a model, a finish reason), without lone
    surrogates, which no store accepts."""
    return None if name is None else jsontext.well_formed(name[:MAX_NAME])
