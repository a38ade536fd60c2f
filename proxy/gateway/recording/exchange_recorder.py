"""Recording one exchange: what was said, once the reply is there, and the work that follows.

Made when the request is on its way, and as small as can be: streams last long, and there are many.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from proxy.chat import jsontext
from proxy.chat.message import ChatMessage
from proxy.chat.reply.answer import Choice, Reply
from proxy.chat.tools.calltext import in_words
from proxy.gateway.aside import LARGE, Aside
from proxy.gateway.context import RequestContext
from proxy.gateway.exchange import Services
from proxy.gateway.outgoing import Degraded, OutgoingRequest
from proxy.gateway.recording.tap import TOO_LARGE
from proxy.gateway.report import MemoryReport
from proxy.gateway.tools.toolbox import ToolLog
from proxy.memory.erasure import steady
from proxy.memory.model import (
    Amendment,
    Commit,
    Due,
    Exchange,
    Injection,
    Kind,
    SessionKey,
    Snapshot,
)
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.amend import More, amend, gone_on
from proxy.memory.recording.commit import (
    AND_AN_ANSWER,
    Count,
    Deferred,
    ExchangeMeta,
    PendingRecord,
    build_commit,
    fetch_key,
    pending_record,
    utterances,
)
from proxy.memory.recording.recorder import CommitResult, Recorder
from proxy.settings import ProfileSettings
from proxy.telemetry import Telemetry

logger = logging.getLogger(__name__)


def due_of(context: RequestContext, now: float) -> tuple[Due, ...]:
    """All that may be due once the reply is there; ``now`` in Unix seconds."""
    return (*_summary(context, now), *_learning(context, now))


def due_after_import(profile: ProfileSettings, user: str | None, now: float) -> tuple[Due, ...]:
    """What an import into a session of ``user`` asks for, under the default profile: at once."""
    kinds: list[Kind] = ["summary"] if profile.summary.enabled else []
    if user is not None and profile.paces:
        kinds.append("learning")
    return tuple(Due(kind=kind, profile="", at=now) for kind in kinds)


def _summary(context: RequestContext, now: float) -> Iterator[Due]:
    """Only where the exchange fills the window: see ``build_commit``."""
    if context.profile.summary.enabled:
        yield Due(kind="summary", profile=context.identity.profile, at=now)


def _learning(context: RequestContext, now: float) -> Iterator[Due]:
    """A person's sessions are learned from, a few turns at a time or when there is a pause."""
    pace = context.usual.pace
    if pace is not None and context.identity.user is not None:
        yield Due(
            kind="learning",
            profile=context.identity.profile,
            at=now,
            after=pace.turns,
            later=now + pace.seconds,
        )


class Heading(msgspec.Struct, frozen=True, gc=False):
    """What is recorded of an exchange beside the messages.  ``system`` is empty if it is known.

    ``forced``: the model had to call a tool, so that its calls may be the answer.
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
    due: tuple[Due, ...]
    forced: bool


class Unplanned(msgspec.Struct, frozen=True, gc=False):
    """A request that found no snapshot: it is reconciled when its record is replayed."""

    said: Sequence[ChatMessage]
    intent: Intent
    window: Window

    @property
    def messages(self) -> Sequence[ChatMessage]:
        return self.said

    def recorded(self) -> Unplanned:
        said = [utterance.message for utterance in utterances(self.said)]
        return msgspec.structs.replace(self, said=said)


class ExchangeRecorder:
    """Where the tap writes the reply.

    ``size`` is that of the request's new messages, in bytes.
    """

    def __init__(
        self,
        key: SessionKey,
        heading: Heading,
        pending: PendingRecord | Unplanned,
        recorder: Recorder,
        count: Count,
        telemetry: Telemetry,
        aside: Aside,
        size: int,
        tools: ToolLog | None,
    ) -> None:
        self._key, self._heading, self._pending = key, heading, pending
        self._recorder, self._count, self._telemetry = recorder, count, telemetry
        self._aside, self._size = aside, size
        self._tools = tools
        self._commit: Commit | None = None
        self._deferred: Exchange | None = None
        self._answers: tuple[Choice, ...] = ()
        """As they are recorded."""
        self._told_usage = self._counted_cache = False
        self.recorded = False
        """Is it in history, or on its way there?"""

    async def kept(self) -> int:
        """Keep of the messages what will be recorded of them: how many bytes that is.

        A picture of megabytes is none of it, and a stream may last for minutes.
        """
        if self._size > LARGE:
            self._pending = await self._aside.run(self._size, self._pending.recorded)
            self._size = sum(len(message.raw) for message in self._pending.messages)
        return self._size

    async def commit(self, reply: Reply | None, *, incomplete: bool) -> None:
        """Record the exchange; durable on return, or counted as lost."""
        clock = time.perf_counter()
        result = await self._record(reply, await self._meta(reply, incomplete))
        self.recorded = result in ("recorded", "spooled")
        self._telemetry.committed(time.perf_counter() - clock)
        if result == "lost":
            self._telemetry.lost()
        else:
            self._telemetry.outcome(result)
        if result == "erased":
            logger.warning("an exchange is not recorded: it began before an erasure")
        if reply is not None:
            self._count_cache(reply)

    def _count_cache(self, reply: Reply) -> None:
        """Once, in whichever of the two writes the usage has come by."""
        if reply.usage is None or self._counted_cache:
            return
        self._counted_cache = True
        use = reply.cache_use
        self._telemetry.cached(use.read or 0)
        self._telemetry.cache_written(use.written or 0)

    async def _record(self, reply: Reply | None, meta: ExchangeMeta) -> CommitResult:
        self._told_usage = meta.exchange.usage is not None
        answers = self._answers = self._choices(reply) if reply else ()
        pending = self._pending
        if isinstance(pending, Unplanned):
            self._deferred = meta.exchange
            unplanned = (pending.said, answers, meta, pending.intent, pending.window)
            deferred = await self._aside.run(self._size, partial(Deferred.of, *unplanned))
            return await self._recorder.defer(self._key, deferred)
        size = self._size + sum(len(answer.body) for answer in answers)
        planned = (pending, answers, meta, self._count)
        self._commit = await self._aside.run(size, partial(build_commit, *planned))
        return await self._recorder.record(self._key, self._commit)

    async def amend(self, reply: Reply) -> None:
        """Record what came after choice 0 was complete."""
        self._count_cache(reply)
        answers = self._choices(reply)
        more = gone_on(self._answers, answers)
        amendment = None
        if self._commit is not None:
            came = (self._commit, answers, reply.usage, self._count, more)
            size = len(more.body) if more else 0
            amendment = await self._aside.run(size, partial(amend, *came))
        elif reply.usage is not None and not self._told_usage:
            amendment = Amendment(exchange=self._heading.id, usage=reply.usage)
        if amendment is not None:
            await self._recorder.amend(self._key, amendment)
        if more is not None and self._deferred is not None:
            late = More.of(self._deferred, self._answers, more)
            await self._recorder.defer_more(self._key, late)

    def _choices(self, reply: Reply) -> tuple[Choice, ...]:
        if not self._heading.forced:
            return reply.choices
        return tuple(
            msgspec.structs.replace(choice, told=in_words(choice.body)) if choice.calls else choice
            for choice in reply.choices
        )

    async def _meta(self, reply: Reply | None, incomplete: bool) -> ExchangeMeta:
        heading, pending = self._heading, reply.pending if reply else None
        return ExchangeMeta(
            exchange=self._exchange(reply, incomplete),
            user=heading.user,
            system=jsontext.join_items(heading.system) if heading.system else None,
            system_tokens=await self._aside.total(self._count, heading.system),
            idempotency_key=fetch_key(pending) if pending else heading.idempotency_key,
            ttl=heading.ttl,
            choices=AND_AN_ANSWER if pending else heading.choices,
            due=heading.due,
        )

    def _exchange(self, reply: Reply | None, incomplete: bool) -> Exchange:
        heading = self._heading
        first = reply.choices[0] if reply and reply.choices else None
        return Exchange(
            id=heading.id,
            profile=heading.profile,
            started_at=heading.began,
            created_at=steady(),
            model=_encodable((reply.model if reply else None) or heading.model),
            asked=_encodable(heading.model),
            incomplete=incomplete,
            finish_reason=_encodable(first.finish_reason) if first else None,
            usage=reply.usage if reply else None,
            memory=self._injection(reply),
            keyed=heading.idempotency_key is not None,
        )

    def _injection(self, reply: Reply | None) -> Injection:
        """What memory did, and whether it could keep all of the answer."""
        injection = self._heading.injection
        if reply is not None and reply.truncated:
            injection = msgspec.structs.replace(injection, reason=TOO_LARGE)
        return self._tools.into(injection) if self._tools else injection


def recorder_for(
    outgoing: OutgoingRequest, report: MemoryReport, services: Services
) -> ExchangeRecorder:
    """What will be recorded of a request that is on its way; ``report`` is what it is told."""
    exchange = outgoing.exchange
    pending = _pending(outgoing)
    size = sum(len(message.raw) for message in pending.messages)
    if isinstance(pending, PendingRecord) and size <= LARGE:
        pending = pending.counted(exchange.counter.count)
    return ExchangeRecorder(
        exchange.context.key,
        _heading(outgoing, report),
        pending,
        recorder=services.recorder,
        count=exchange.counter.count,
        telemetry=services.telemetry,
        aside=services.aside,
        size=size,
        tools=outgoing.tools.log if outgoing.tools else None,
    )


def _pending(outgoing: OutgoingRequest) -> PendingRecord | Unplanned:
    exchange, prompt = outgoing.exchange, outgoing.prompt
    said = exchange.request.messages
    if isinstance(prompt, Degraded):
        return Unplanned(said, exchange.intent, exchange.rules.window)
    prepared = prompt.loaded.prepared
    plan, alone = prepared.planned.plan, bool(exchange.intent.on)
    return pending_record(plan, prompt.prompt, said, prepared.snapshot, alone=alone)


def _heading(outgoing: OutgoingRequest, report: MemoryReport) -> Heading:
    exchange, prompt = outgoing.exchange, outgoing.prompt
    request, context = exchange.request, exchange.context
    leading = request.system_record
    system = jsontext.join_items(leading) if leading else None
    found = Snapshot() if isinstance(prompt, Degraded) else prompt.loaded.prepared.snapshot
    return Heading(
        id=exchange.id,
        profile=context.identity.profile,
        began=exchange.began,
        model=request.model,
        choices=request.n,
        forced=request.forces_calls,
        user=context.identity.user or found.owner,
        system=leading if system != found.system else (),
        idempotency_key=context.identity.idempotency_key,
        ttl=context.profile.ttl,
        injection=outgoing.injection(report),
        due=due_of(context, time.time()),  # queues go by the clock, which may have been put back
    )


NAMED = 500
"""Characters that are recorded of a name: no model's is longer."""


def _encodable(said: str | None) -> str | None:
    """A name that clients or upstreams said: they may say half a surrogate pair, which no store
    keeps."""
    return None if said is None else jsontext.well_formed(said[:NAMED])
