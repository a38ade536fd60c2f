"""One chat completion with memory, up to loading its session.

``ChatExchange`` is the request with its context; ``load`` adds the session (``LoadedExchange``).
The next steps are ``prompt.enrich`` and ``outgoing``.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.chat.models.limits import ModelList, context_window
from proxy.chat.models.tokens import TokenCounter
from proxy.chat.request import ChatRequest
from proxy.errors import session_owner_mismatch
from proxy.formats.format import Format
from proxy.formats.responses.names import EXCHANGE
from proxy.gateway.context import RequestContext, intent_of, load_options_of, rules_of
from proxy.gateway.offload import RequestThreads
from proxy.gateway.prompt.knowledge_step import KnowledgeStep, LoadedKnowledge
from proxy.gateway.prompt.recall_step import RecallStep
from proxy.gateway.prompt.rewrite_step import RewriteStep
from proxy.gateway.report import MemoryReport, Reason
from proxy.gateway.state.log import StateLog, StoredAnswer
from proxy.memory.erasure import steady_now
from proxy.memory.model import Snapshot
from proxy.memory.prompt.compose import PromptRules
from proxy.memory.prompt.trace import KnownRuns
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.recorder import PreparedRequest, Recorder
from proxy.rewrite.rewriter import Rewriting
from proxy.telemetry import Telemetry

WindowLookup = Callable[[str, str | None, int], int | None]
"""From an upstream's name, a model and a number of tokens: the model's context window in tokens.

None if it is not known, or if any model takes as many tokens.
"""


def catalogue_window(upstream: str, model: str | None, tokens: int) -> int | None:
    """A ``WindowLookup`` that ignores the upstream: the window is that of the catalogue."""
    return context_window(model, tokens)


ID_BYTES = 15


class ExchangeIds:
    """Makes ids of 120 random bits, 20 characters.

    ``os.urandom`` releases the GIL, so it is called for 256 ids at once.
    """

    def __init__(self) -> None:
        self._random = b""

    def __call__(self) -> str:
        if not self._random:
            self._random = os.urandom(256 * ID_BYTES)
        id, self._random = self._random[:ID_BYTES], self._random[ID_BYTES:]
        return f"{EXCHANGE}{urlsafe_b64encode(id).decode()}"


class Services(msgspec.Struct, frozen=True):
    """The collaborators of every exchange.

    ``counter`` returns the token counter of a model; ``threads`` runs work on large requests.
    ``state`` keeps responses for upstreams that do not.  ``window`` takes the upstream's name, or
    "" to choose it by the model; ``models`` must be loaded before ``window`` is called.
    """

    recorder: Recorder
    recall: RecallStep
    knowledge: KnowledgeStep
    counter: Callable[[str | None], TokenCounter]
    telemetry: Telemetry
    state: StateLog
    rewrite: RewriteStep
    window: WindowLookup
    threads: RequestThreads = msgspec.field(default_factory=RequestThreads)
    models: ModelList = msgspec.field(default_factory=ModelList)
    new_id: Callable[[], str] = msgspec.field(default_factory=ExchangeIds)
    known_runs: KnownRuns = msgspec.field(default_factory=KnownRuns)


class ContinuedAnswer(NamedTuple):
    """The stored answer that a request continues (``previous_response_id``), by its message's id.

    ``follows_id`` is the message that the answer's exchange followed: see Exchange.
    """

    message_id: str
    follows_id: str | None

    @classmethod
    def of(cls, answer: StoredAnswer) -> ContinuedAnswer:
        return cls(answer.stored_message.card.id, answer.exchange.follows)


class ChatExchange(msgspec.Struct, frozen=True, gc=False):
    """A request with its context; ``began`` in Unix seconds.

    ``body`` is the decoded body; ``wire_body`` is the client's, if it had a content coding.
    ``expanded``: ids in ``body`` have been replaced by what they refer to.
    ``is_side_request``: it is neither enriched nor recorded.  ``continued``: the conversation is
    the branch that ends with this answer.  ``response_fields``: if the proxy keeps the response,
    the fields that replace the upstream's in the answer (its id, for example), as JSON by name.
    """

    id: str
    began: float
    format: Format
    request: ChatRequest
    body: bytes
    context: RequestContext
    counter: TokenCounter
    intent: Intent
    rules: PromptRules
    is_side_request: bool
    expanded: bool = False
    wire_body: bytes | None = None
    continued: ContinuedAnswer | None = None
    response_fields: Mapping[str, bytes] | None = None

    @classmethod
    def start(
        cls,
        format: Format,
        request: ChatRequest,
        body: bytes,
        context: RequestContext,
        services: Services,
    ) -> ChatExchange:
        counter, began = services.counter(request.model), steady_now()
        side_requests = context.profile_rules.side_requests
        return cls(
            id=services.new_id(),
            began=began,
            format=format,
            request=request,
            body=body,
            context=context,
            counter=counter,
            intent=intent_of(request, context, began),
            rules=rules_of(request, context, counter.count_text),
            is_side_request=side_requests.matches(request.last_user_text, request.system_text),
        )

    def with_body(self, body: bytes) -> ChatExchange | None:
        """The exchange with another body, which is parsed; None if it is no readable request."""
        request = self.format.read(body, self.context.profile.max_inline_media_bytes)
        if not isinstance(request, ChatRequest):
            return None
        rules = rules_of(request, self.context, self.counter.count_text)
        return replace(self, request=request, body=body, rules=rules, expanded=True)

    @property
    def recorded(self) -> bool:
        recording = self.format.records and not self.is_side_request
        return recording and self.context.identity.records

    @property
    def may_enrich(self) -> bool:
        """Whether learned memory and recalled passages may be added."""
        return (self.rules.inject or self._extends_instructions) and not self.is_side_request

    @property
    def _extends_instructions(self) -> bool:
        """Whether they may be added as instructions, where the upstream keeps the messages."""
        wanted = self.context.profile.recall_in_instructions
        return (
            wanted
            and self.request.state.extends_instructions
            and self.context.identity.mode != "write"
        )

    @property
    def reason(self) -> Reason | None:
        return "side_request" if self.is_side_request else None

    @property
    def report(self) -> MemoryReport:
        """The report of a request that fails before it is enriched."""
        reason = self.reason or self.context.identity.reason
        return MemoryReport(self.context.key.session, reason=reason)


class LoadedExchange(msgspec.Struct, frozen=True, gc=False):
    """The exchange with its loaded and planned session.

    ``knowledge`` is None if there is no learned memory, ``rewriting`` if no rewrite was started.
    ``is_stale_retry``: it retries an exchange that is no longer the last one; it is not recorded.
    """

    exchange: ChatExchange
    prepared: PreparedRequest
    knowledge: LoadedKnowledge | None
    is_stale_retry: bool
    rewriting: Rewriting | None = None

    @property
    def bodies(self) -> Mapping[str, bytes]:
        """The JSON of stored messages by id."""
        return self.prepared.planned.bodies

    @property
    def recorded(self) -> bool:
        return self.exchange.recorded and not self.is_stale_retry

    @property
    def reason(self) -> Reason | None:
        if self.is_stale_retry:
            return "stale_retry"
        return self.exchange.reason or ("spooled" if self.prepared.will_spool else None)


async def load(exchange: ChatExchange, services: Services) -> LoadedExchange:
    """Load and plan the session; look up learned memory and start the rewrite concurrently.  Raises
    ProxyError 403 for another user's session, StoreError."""
    request, context = exchange.request, exchange.context
    question, count = request.last_user_text, exchange.counter.count_lines
    lookup = services.knowledge.begin(context, question, count, wanted=exchange.may_enrich)
    rewriting = services.rewrite.begin(context, request) if exchange.may_enrich else None
    try:
        options = load_options_of(context, exchange.rules)
        prepared = await services.recorder.prepare(
            context.key, options, request.messages, exchange.intent, exchange.rules
        )
        check_owner(prepared.snapshot.owner, context.identity.user)
        is_stale_retry = _is_stale_retry(prepared.snapshot)
        exchange = _as_planned(exchange, prepared.planned.messages)
        return LoadedExchange(exchange, prepared, await lookup, is_stale_retry, rewriting)
    finally:
        lookup.cancel()


def _as_planned(exchange: ChatExchange, planned: Sequence[ChatMessage]) -> ChatExchange:
    """The exchange with the planner's version of the request's messages, if it made one."""
    request = exchange.request
    if planned is request.messages:
        return exchange
    return replace(exchange, request=replace(request, messages=tuple(planned)))


def check_owner(owner: str | None, user: str | None) -> None:
    """Raise ProxyError 403 for another user's session; a request without a user may use any."""
    if owner and user is not None and owner != user:
        raise session_owner_mismatch()


def _is_stale_retry(snapshot: Snapshot) -> bool:
    attempt, last = snapshot.attempt, snapshot.last
    return attempt is not None and last is not None and attempt.id != last.id
