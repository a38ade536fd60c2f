"""A chat request as it goes upstream: what of memory is in it, and what is told and recorded of it.

``prepare`` makes it; where the upstream refuses it, ``lessened``, ``without_tools`` and
``without_marks`` make the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from proxy.chat.cachemarks import may_have_marks
from proxy.chat.thoughts import with_thoughts
from proxy.errors import ProxyError, memory_unavailable
from proxy.gateway.asking.refusals import RefusalKind
from proxy.gateway.exchange import ChatExchange, GoingOn, Services, load
from proxy.gateway.prompt.enrich import enrich, narrowed
from proxy.gateway.prompt.prompt import AssembledPrompt
from proxy.gateway.references import resolved
from proxy.gateway.report import NOTHING_NOTED, MemoryReport, Reason
from proxy.gateway.state.emulation import stands
from proxy.gateway.tools.use import ToolUse, tool_use
from proxy.memory.model import Injection, Snapshot
from proxy.memory.store import StoreError, StoreTimeout

logger = logging.getLogger(__name__)

_ESCAPE = rb"\u00"


class Degraded(msgspec.Struct, frozen=True, gc=False):
    """Memory has failed: the request goes on as it came, and is planned when it is replayed."""

    exchange: ChatExchange
    reason: Reason

    @property
    def recorded(self) -> bool:
        return self.exchange.recorded


class OutgoingRequest(msgspec.Struct, frozen=True, gc=False):
    """What the upstream is asked.  ``duration``: seconds that memory took.

    ``marks``: it gets cache marks.  ``lessened``: less of memory has been tried.  ``refused``: what
    it did not take.  ``unsigned``: the body without what the upstream had signed and does not take
    back.  ``thoughts``: those of earlier answers are sent back, as far as they are known, by the
    ids of their calls (JSON); ``rethought``: it was asked without them, or with them, before.
    """

    exchange: ChatExchange
    prompt: AssembledPrompt | Degraded
    recorded: bool
    reason: Reason | None
    duration: float
    tools: ToolUse | None = None
    marks: bool = False
    lessened: bool = False
    refused: tuple[RefusalKind, ...] = ()
    unsigned: bytes | None = None
    thoughts: Mapping[str, bytes] | None = None
    rethought: bool = False

    @property
    def adds(self) -> bool:
        """Is there anything of memory in it?"""
        return isinstance(self.prompt, AssembledPrompt) and not self.prompt.empty

    @property
    def session_began(self) -> float | None:
        """Unix seconds, 0 where there is no session yet; None where that is not known."""
        if isinstance(self.prompt, Degraded):
            return None
        return self.prompt.loaded.prepared.snapshot.began

    @property
    def held(self) -> int:
        """Bytes of the body, and of what was loaded of the session."""
        of_session = sum(map(len, self.thoughts.values())) if self.thoughts else 0
        if isinstance(self.prompt, AssembledPrompt):
            of_session += sum(map(len, self.prompt.loaded.bodies.values()))
        return len(self.exchange.body) + of_session

    @property
    def rewritten(self) -> bool:
        changed = self.exchange.expanded or self.unsigned is not None
        added = self.marks or self.tools is not None or self.thoughts is not None
        return self.adds or added or changed

    @property
    def marking(self) -> RefusalKind | None:
        """As what cache marks would be refused; None where they are not wanted."""
        exchange = self.exchange
        wanted = exchange.context.profile.cache_marks and exchange.format.records
        if not (wanted and exchange.rules.inject) or exchange.side:
            return None
        if isinstance(self.prompt, Degraded):
            return None
        return RefusalKind(exchange.request.model, what="marks")

    @property
    def thoughtless(self) -> RefusalKind | None:
        """As what its calls would be refused without thoughts; None where none may be added."""
        exchange = self.exchange
        may_add = exchange.format.tools and exchange.rules.inject and not exchange.side
        return RefusalKind(exchange.request.model, what="thoughtless") if may_add else None

    @property
    def drains(self) -> bool:
        """Is the reply finished for a client that has left?"""
        return self.recorded and self.exchange.context.profile.on_disconnect == "drain"

    def body(self) -> bytes:
        """The request with memory in it; its own bytes, coded as they came, where nothing is
        added."""
        if self.unsigned is not None:
            return self.unsigned
        prompt, body = self.prompt, self.exchange.body
        if isinstance(prompt, AssembledPrompt) and not prompt.empty:
            body = prompt.body()
        if self.marks:
            exchange = self.exchange
            body = exchange.format.marked(body, exchange.request.model, exchange.context.cache_key)
        if self.tools is not None:
            body = self.tools.put_into(body)
        if self.thoughts is not None:
            return with_thoughts(body, self.thoughts)
        came = self.exchange.came
        return body if self.rewritten or came is None else came

    @property
    def report(self) -> MemoryReport:
        """What memory did, from all the steps."""
        report = MemoryReport(
            session=self.exchange.context.key.session,
            exchange=self.exchange.id if self.recorded else None,
            status="degraded",
            reason=self.reason,
            duration=self.duration,
        )
        return report if isinstance(self.prompt, Degraded) else self.prompt.told_in(report)

    def injection(self, report: MemoryReport) -> Injection:
        """The ``report`` as the record has it."""
        noted = NOTHING_NOTED if isinstance(self.prompt, Degraded) else self.prompt.noted()
        return report.injection(noted)

    def unrecorded(self, reason: Reason) -> OutgoingRequest:
        """The same, of which nothing will be recorded."""
        return replace(self, recorded=False, reason=reason)


async def prepare(exchange: ChatExchange, services: Services) -> OutgoingRequest:
    """Load and enrich.

    Raises ProxyError 403 for another user's session, 503 where memory must not fail, 404 and 400
    for what an upstream without state would have to know.
    """
    clock = time.perf_counter()
    exchange = await resolved(exchange, services)
    prompt = await _prompt(exchange, services)
    if exchange.going_on is not None:
        prompt = await _turned(exchange, exchange.going_on, prompt, services)
    duration = time.perf_counter() - clock
    services.telemetry.loaded(duration)
    return OutgoingRequest(prompt.exchange, prompt, prompt.recorded, prompt.reason, duration)


async def _turned(
    exchange: ChatExchange,
    on: GoingOn,
    prompt: AssembledPrompt | Degraded,
    services: Services,
) -> AssembledPrompt | Degraded:
    """The prompt behind the answer that is gone on from; as it is where that cannot be had and the
    upstream has the conversation.  Raises ProxyError 503 where nobody else has it.
    """
    try:
        return await _behind(exchange, on, prompt, services)
    except ProxyError:
        if exchange.context.closed or not exchange.request.state.elsewhere:
            raise
        return prompt


async def _behind(
    exchange: ChatExchange,
    on: GoingOn,
    prompt: AssembledPrompt | Degraded,
    services: Services,
) -> AssembledPrompt | Degraded:
    """The prompt of the way to an answer, where the log is another.

    Raises ProxyError 503 where that cannot be had.
    """
    if stands(_found(prompt).log, on):
        return prompt
    try:
        way = await services.state.way_to(exchange.context.key, on.message)
    except StoreError as failure:
        raise memory_unavailable() from failure
    if not way:
        raise memory_unavailable()
    prompt = await _prompt(replace(exchange, intent=replace(exchange.intent, way=way)), services)
    _found(prompt)
    return prompt


def _found(prompt: AssembledPrompt | Degraded) -> Snapshot:
    """The session that a prompt is made from.  Raises ProxyError 503 where memory has failed."""
    if isinstance(prompt, Degraded):
        raise memory_unavailable()
    return prompt.loaded.prepared.snapshot


async def _prompt(exchange: ChatExchange, services: Services) -> AssembledPrompt | Degraded:
    try:
        return await enrich(await load(exchange, services), services)
    except ProxyError:
        raise
    except StoreError as error:
        return _degraded(exchange, error)
    except Exception as error:  # the boundary to what memory is made of: the chat goes on
        logger.exception("a request goes on without memory")
        return _degraded(exchange, error)


def _degraded(exchange: ChatExchange, error: Exception) -> Degraded:
    """Raises ProxyError where a chat must not go on without memory."""
    if exchange.context.closed:
        raise memory_unavailable() from error
    timeout = isinstance(error, StoreTimeout)
    return Degraded(exchange, "store_timeout" if timeout else "store_error")


def with_tools(outgoing: OutgoingRequest) -> OutgoingRequest:
    """The same with the functions of memory, where it may offer them."""
    exchange = outgoing.exchange
    if not exchange.format.tools:
        return outgoing
    count = exchange.counter.count_text
    use = tool_use(exchange.request, exchange.context, outgoing.report, count, exchange.began)
    if use == "tool_name_taken":
        return replace(outgoing, reason=outgoing.reason or use)
    return replace(outgoing, tools=use)


def without_tools(outgoing: OutgoingRequest, *refused: RefusalKind) -> OutgoingRequest:
    """The upstream takes no tools for this model, or not beside what else is sent."""
    all = (*outgoing.refused, *refused)
    return replace(outgoing, tools=None, reason="tools_refused", refused=all)


def without_marks(outgoing: OutgoingRequest, *refused: RefusalKind) -> OutgoingRequest:
    """The upstream takes no cache marks for this model."""
    reason: Reason = outgoing.reason or "marks_refused"
    all = (*outgoing.refused, *refused)
    return replace(outgoing, marks=False, unsigned=None, reason=reason, refused=all)


def refused_marks(outgoing: OutgoingRequest) -> OutgoingRequest:
    """It may take none, as far as its answer tells: the same without.

    Beside marks of the client's that says nothing of others' requests; their names may be escaped.
    """
    kind, body = outgoing.marking, outgoing.exchange.body
    plain = kind is not None and not may_have_marks(body) and _ESCAPE not in body
    return without_marks(outgoing, *([kind] if kind and plain else []))


def lessened(outgoing: OutgoingRequest, services: Services) -> OutgoingRequest | None:
    """The upstream found the context too long: no thoughts, half as much of memory, then nothing.

    None if there is nothing that could be left out.
    """
    if outgoing.thoughts:
        return replace(outgoing, thoughts={}, reason="context_trimmed")
    prompt = outgoing.prompt
    if isinstance(prompt, Degraded) or prompt.empty:
        return None
    half = () if outgoing.lessened else (prompt.tokens // 2,)
    for cap in (*half, 0):
        less = narrowed(prompt, cap, services, hard=True)
        if less != prompt:
            reason: Reason = "context_trimmed"
            return replace(outgoing, prompt=less, reason=reason, lessened=True, unsigned=None)
        prompt = less
    return None
