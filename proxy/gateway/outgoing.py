"""A chat request as it is sent upstream: its body with memory, its report and its record.

``prepare`` makes it.  If the upstream refuses it, ``with_less_memory``, ``without_tools``,
``without_marks`` and ``after_media_error`` make the request of the next attempt;
``without_refused_media`` is for what it has refused before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping

import msgspec
from msgspec.structs import replace

from proxy.chat.cachemarks import may_have_marks
from proxy.chat.reasoning import with_reasoning
from proxy.errors import ProxyError, memory_unavailable
from proxy.gateway.asking.refusals import Refusal
from proxy.gateway.exchange import ChatExchange, ContinuedAnswer, Services, load
from proxy.gateway.prompt.enrich import compose_within, enrich
from proxy.gateway.prompt.prompt import AssembledPrompt, stored_as_text
from proxy.gateway.references import resolve_references
from proxy.gateway.report import MemoryReport, Reason
from proxy.gateway.state.emulation import log_ends_with
from proxy.gateway.tools.use import ToolUse, tool_use
from proxy.memory.model import Injection, Snapshot
from proxy.memory.prompt.trace import KnownRuns
from proxy.memory.store import StoreError, StoreTimeout

logger = logging.getLogger(__name__)

_ESCAPE = rb"\u00"


class DegradedPrompt(msgspec.Struct, frozen=True, gc=False):
    """Memory has failed: the request is sent unchanged, and planned when its record is replayed."""

    exchange: ChatExchange
    reason: Reason

    @property
    def recorded(self) -> bool:
        return self.exchange.recorded


class OutgoingRequest(msgspec.Struct, frozen=True, gc=False):
    """One attempt to call the upstream.

    ``duration``: seconds that memory took.  ``adds_marks``: the proxy adds cache marks.
    ``is_reduced``: memory was reduced before.  ``refusals``: why earlier attempts were refused.
    ``body_without_signed``: the body without the signed content that the upstream rejected.
    ``reasoning``: reasoning of earlier answers to send back, as JSON by the ids of their calls;
    ``reasoning_retried``: adding or omitting it has been tried before.  ``is_text_only``: all
    stored messages are sent without media.
    """

    exchange: ChatExchange
    prompt: AssembledPrompt | DegradedPrompt
    recorded: bool
    reason: Reason | None
    duration: float
    tools: ToolUse | None = None
    adds_marks: bool = False
    is_reduced: bool = False
    refusals: tuple[Refusal, ...] = ()
    body_without_signed: bytes | None = None
    reasoning: Mapping[str, bytes] | None = None
    reasoning_retried: bool = False
    is_text_only: bool = False

    @property
    def adds_memory(self) -> bool:
        """Whether memory adds anything to the messages."""
        return isinstance(self.prompt, AssembledPrompt) and not self.prompt.empty

    @property
    def session_began(self) -> float | None:
        """When the session began (Unix seconds); 0 for a new session, None if memory failed."""
        if isinstance(self.prompt, DegradedPrompt):
            return None
        return self.prompt.loaded.prepared.snapshot.created_at

    @property
    def memory_bytes(self) -> int:
        """Bytes in memory: the body and what was loaded of the session."""
        session_bytes = sum(map(len, self.reasoning.values())) if self.reasoning else 0
        if isinstance(self.prompt, AssembledPrompt):
            session_bytes += sum(map(len, self.prompt.loaded.bodies.values()))
        return len(self.exchange.body) + session_bytes

    @property
    def rewritten(self) -> bool:
        changed = self.exchange.expanded or self.body_without_signed is not None
        added = self.adds_marks or self.tools is not None or self.reasoning is not None
        return self.adds_memory or added or changed

    @property
    def marks_refusal(self) -> Refusal | None:
        """The key under which a refusal of cache marks is remembered; None if none are added."""
        exchange = self.exchange
        enabled = exchange.context.profile.cache_marks and exchange.format.records
        if not (enabled and exchange.rules.inject) or exchange.is_side_request:
            return None
        if isinstance(self.prompt, DegradedPrompt):
            return None
        return Refusal(exchange.request.model, feature="marks")

    @property
    def reasoning_refusal(self) -> Refusal | None:
        """The key under which a demand for reasoning is remembered; None if none may be added."""
        exchange = self.exchange
        if not exchange.format.supports_tools or exchange.is_side_request:
            return None
        if not exchange.rules.inject:
            return None
        return Refusal(exchange.request.model, feature="missing_reasoning")

    @property
    def drains(self) -> bool:
        """Whether the reply is read to its end after the client has disconnected."""
        return self.recorded and self.exchange.context.profile.on_disconnect == "drain"

    def body(self) -> bytes:
        """The body with memory in it; the client's own bytes, still coded, if nothing changed."""
        if self.body_without_signed is not None:
            return self.body_without_signed
        prompt, body = self.prompt, self.exchange.body
        if isinstance(prompt, AssembledPrompt) and not prompt.empty:
            body = prompt.body()
        if self.adds_marks:
            exchange = self.exchange
            body = exchange.format.with_cache_marks(
                body, exchange.request.model, exchange.context.cache_key
            )
        if self.tools is not None:
            body = self.tools.put_into(body)
        if self.reasoning is not None:
            return with_reasoning(body, self.reasoning)
        wire_body = self.exchange.wire_body
        return body if self.rewritten or wire_body is None else wire_body

    @property
    def report(self) -> MemoryReport:
        """What memory did in all steps."""
        report = MemoryReport(
            session=self.exchange.context.key.session,
            exchange=self.exchange.id if self.recorded else None,
            status="degraded",
            reason=self.reason or self.exchange.context.identity.reason,
            duration=self.duration,
        )
        if isinstance(self.prompt, DegradedPrompt):
            return report
        return self.prompt.add_to_report(report)

    def injection(self, report: MemoryReport, known_runs: KnownRuns) -> Injection:
        """The ``report`` in the form in which the exchange is recorded."""
        if isinstance(self.prompt, DegradedPrompt):
            return report.injection()
        return report.injection(self.prompt.record_details(known_runs))

    def unrecorded(self, reason: Reason) -> OutgoingRequest:
        """The same request, not to be recorded."""
        return replace(self, recorded=False, reason=reason)


async def prepare(exchange: ChatExchange, services: Services) -> OutgoingRequest:
    """Resolve references, load the session and enrich the prompt.

    Raises ProxyError 403 for another user's session, 503 if memory fails and must not, 404 and 400
    for state that neither the proxy nor the upstream keeps.
    """
    start = time.perf_counter()
    exchange = await resolve_references(exchange, services)
    prompt = await _prompt(exchange, services)
    if exchange.continued is not None:
        prompt = await _on_branch_if_possible(exchange, exchange.continued, prompt, services)
    duration = time.perf_counter() - start
    services.telemetry.observe_load(duration)
    return OutgoingRequest(prompt.exchange, prompt, prompt.recorded, prompt.reason, duration)


async def _on_branch_if_possible(
    exchange: ChatExchange,
    continued: ContinuedAnswer,
    prompt: AssembledPrompt | DegradedPrompt,
    services: Services,
) -> AssembledPrompt | DegradedPrompt:
    """``_on_branch``; if that fails and the upstream has the conversation, ``prompt`` unchanged.
    Raises ProxyError 503 if the upstream does not have it, or memory must not fail."""
    try:
        return await _on_branch(exchange, continued, prompt, services)
    except ProxyError:
        if exchange.context.fails_closed or not exchange.request.state.kept_upstream:
            raise
        return prompt


async def _on_branch(
    exchange: ChatExchange,
    continued: ContinuedAnswer,
    prompt: AssembledPrompt | DegradedPrompt,
    services: Services,
) -> AssembledPrompt | DegradedPrompt:
    """The prompt with the branch that ends with ``continued``, loaded if the log is another one.
    Raises ProxyError 503 if the branch cannot be loaded."""
    if log_ends_with(_snapshot_of(prompt).log, continued):
        return prompt
    try:
        branch = await services.state.branch_to(exchange.context.key, continued.message_id)
    except StoreError as failure:
        raise memory_unavailable() from failure
    if not branch:
        raise memory_unavailable()
    prompt = await _prompt(
        replace(exchange, intent=replace(exchange.intent, branch=branch)), services
    )
    _snapshot_of(prompt)
    return prompt


def _snapshot_of(prompt: AssembledPrompt | DegradedPrompt) -> Snapshot:
    """The snapshot that a prompt was made from.  Raises ProxyError 503 if memory has failed."""
    if isinstance(prompt, DegradedPrompt):
        raise memory_unavailable()
    return prompt.loaded.prepared.snapshot


async def _prompt(exchange: ChatExchange, services: Services) -> AssembledPrompt | DegradedPrompt:
    try:
        return await enrich(await load(exchange, services), services)
    except ProxyError:
        raise
    except StoreError as error:
        return _degraded(exchange, error)
    except Exception as error:  # the boundary to memory: the chat continues without it
        logger.exception("a request goes on without memory")
        return _degraded(exchange, error)


def _degraded(exchange: ChatExchange, error: Exception) -> DegradedPrompt:
    """The request without memory.  Raises ProxyError 503 if it must not be sent without."""
    if exchange.context.fails_closed:
        raise memory_unavailable() from error
    timeout = isinstance(error, StoreTimeout)
    return DegradedPrompt(exchange, "store_timeout" if timeout else "store_error")


def with_tools(outgoing: OutgoingRequest) -> OutgoingRequest:
    """The request with memory's tools, if its format and its client allow them."""
    exchange = outgoing.exchange
    if not exchange.format.supports_tools:
        return outgoing
    count = exchange.counter.count_text
    use = tool_use(exchange.request, exchange.context, outgoing.report, count, exchange.began)
    if use == "tool_name_taken":
        return replace(outgoing, reason=outgoing.reason or use)
    return replace(outgoing, tools=use)


def without_tools(outgoing: OutgoingRequest, *refused: Refusal) -> OutgoingRequest:
    """The request without memory's tools, which the upstream refuses."""
    kinds = (*outgoing.refusals, *refused)
    return replace(outgoing, tools=None, reason="tools_refused", refusals=kinds)


def without_marks(outgoing: OutgoingRequest, *refused: Refusal) -> OutgoingRequest:
    """The request without our cache marks, which the upstream refuses."""
    reason: Reason = outgoing.reason or "marks_refused"
    kinds = (*outgoing.refusals, *refused)
    return replace(
        outgoing, adds_marks=False, body_without_signed=None, reason=reason, refusals=kinds
    )


def after_marks_error(outgoing: OutgoingRequest) -> OutgoingRequest:
    """The request without our cache marks, after an error that may be about them.

    The refusal is remembered only if the client sent no marks itself, which may be what the error
    is about.  A body with escapes may hold marks that a search for their names does not find.
    """
    kind, body = outgoing.marks_refusal, outgoing.exchange.body
    only_ours = not may_have_marks(body) and _ESCAPE not in body
    return without_marks(outgoing, *([kind] if kind and only_ours else []))


def after_media_error(outgoing: OutgoingRequest, first: OutgoingRequest) -> OutgoingRequest | None:
    """The request after an error that may be about media: its stored messages with text alone.

    Tools and marks of the ``first`` attempt are back in it: it was refused without them too, so
    media may be all that the upstream refuses.  None if the messages have nothing but text.
    """
    prompt = outgoing.prompt
    if outgoing.is_text_only or isinstance(prompt, DegradedPrompt):
        return None
    text_only = stored_as_text(prompt)
    if text_only is prompt:
        return None
    model = outgoing.exchange.request.model
    new_ids = [id for id in text_only.text_only if id not in prompt.text_only]
    return replace(
        _with_prompt(outgoing, text_only),
        tools=first.tools,
        adds_marks=first.adds_marks,
        refusals=(
            *[kind for kind in outgoing.refusals if kind.feature == "missing_reasoning"],
            *[Refusal(model, feature="media", message=id) for id in new_ids],
        ),
        is_text_only=True,
        body_without_signed=None,
    )


def without_refused_media(outgoing: OutgoingRequest, refused: Collection[str]) -> OutgoingRequest:
    """The request without media in the stored messages with these ids: they were refused before."""
    prompt = outgoing.prompt
    if isinstance(prompt, DegradedPrompt):
        return outgoing
    text_only = stored_as_text(prompt, refused)
    return outgoing if text_only is prompt else _with_prompt(outgoing, text_only)


def _with_prompt(outgoing: OutgoingRequest, prompt: AssembledPrompt) -> OutgoingRequest:
    reason: Reason = "media_refused"
    return replace(outgoing, prompt=prompt, reason=reason)


def with_less_memory(outgoing: OutgoingRequest, services: Services) -> OutgoingRequest | None:
    """The request after "context too long": without reasoning, then with half of memory's tokens,
    then with none.

    None if there is nothing left to omit.
    """
    if outgoing.reasoning:
        return replace(outgoing, reasoning={}, reason="context_trimmed")
    prompt = outgoing.prompt
    if isinstance(prompt, DegradedPrompt) or prompt.empty:
        return None
    half = () if outgoing.is_reduced else (prompt.tokens // 2,)
    for cap in (*half, 0):
        less = compose_within(prompt, cap, services, caps_system=True)
        if less != prompt:
            reason: Reason = "context_trimmed"
            return replace(
                outgoing, prompt=less, reason=reason, is_reduced=True, body_without_signed=None
            )
        prompt = less
    return None
