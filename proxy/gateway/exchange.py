"""One chat completion with memory, up to what memory has of its session.

What begins, and what is loaded, are values; ``load`` is the step between them.  What follows:
``prompt.enrich``, then ``outgoing``.
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
from proxy.gateway.aside import Aside
from proxy.gateway.context import RequestContext, ask_of, intent_of, rules_of
from proxy.gateway.prompt.knowledge_step import KnowledgeStep, LoadedKnowledge
from proxy.gateway.prompt.recall_step import RecallStep
from proxy.gateway.prompt.rewrite_step import RewriteStep
from proxy.gateway.report import MemoryReport, Reason
from proxy.gateway.state.log import KeptAnswer, StateLog
from proxy.memory.erasure import steady
from proxy.memory.model import Snapshot
from proxy.memory.prompt.compose import Rules
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.recorder import Prepared, Recorder
from proxy.rewrite.rewriter import Rewriting
from proxy.telemetry import Telemetry

Windows = Callable[[str, str | None, int], int | None]
"""The context window of an upstream's model in tokens, where so many may be too many for it."""


def of_model(upstream: str, model: str | None, wanted: int) -> int | None:
    """The context window of a model, the same wherever it is."""
    return context_window(model, wanted)


ID_BYTES = 15


class ExchangeIds:
    """Makes ids of 120 random bits, 20 characters.

    The system is asked for many at once: to ask it lets go of the interpreter.
    """

    def __init__(self) -> None:
        self._random = b""

    def __call__(self) -> str:
        if not self._random:
            self._random = os.urandom(256 * ID_BYTES)
        mine, self._random = self._random[:ID_BYTES], self._random[ID_BYTES:]
        return f"{EXCHANGE}{urlsafe_b64encode(mine).decode()}"


class Services(msgspec.Struct, frozen=True):
    """What every exchange works with.

    ``counter`` gives the token counter for a model, ``aside`` is where large requests are read.
    ``state`` is for upstreams that keep no responses.  ``window`` gives the context window of a
    model at an upstream: its name, "" where the model decides; ``models`` is what it may need.
    """

    recorder: Recorder
    recall: RecallStep
    knowledge: KnowledgeStep
    counter: Callable[[str | None], TokenCounter]
    telemetry: Telemetry
    state: StateLog
    rewrite: RewriteStep
    window: Windows
    aside: Aside = msgspec.field(default_factory=Aside)
    models: ModelList = msgspec.field(default_factory=ModelList)
    new_id: Callable[[], str] = msgspec.field(default_factory=ExchangeIds)


class GoingOn(NamedTuple):
    """The stored answer that a request goes on from, and the message that its exchange followed
    (see Exchange)."""

    message: str
    follows: str | None

    @classmethod
    def of(cls, answer: KeptAnswer) -> GoingOn:
        return cls(answer.line.card.id, answer.exchange.follows)


class ChatExchange(msgspec.Struct, frozen=True, gc=False):
    """A request and what surrounds it, as it begins (``began``, Unix seconds).

    ``side``: it is made beside the conversation, so it is neither enriched nor recorded.
    ``expanded``: ``body`` is not the client's, what it names has been put into it.  ``came`` is
    the body as it came, if that was another.  ``going_on``: only what led there is the
    conversation.  ``names`` are what the answer says of itself, where the proxy keeps it: fields by
    name, as JSON.
    """

    id: str
    began: float
    format: Format
    request: ChatRequest
    body: bytes
    context: RequestContext
    counter: TokenCounter
    intent: Intent
    rules: Rules
    side: bool
    expanded: bool = False
    came: bytes | None = None
    going_on: GoingOn | None = None
    names: Mapping[str, bytes] | None = None

    @classmethod
    def begun(
        cls,
        format: Format,
        request: ChatRequest,
        body: bytes,
        context: RequestContext,
        services: Services,
    ) -> ChatExchange:
        """The exchange of a request; ``body`` is its bytes."""
        counter, began = services.counter(request.model), steady()
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
            side=context.usual.side.matches(request.last_user_text, request.system_text),
        )

    def with_body(self, body: bytes) -> ChatExchange | None:
        """The exchange with a body of ours, read anew; None if that is no request to be read."""
        request = self.format.read(body, self.context.profile.max_inline_media_bytes)
        if not isinstance(request, ChatRequest):
            return None
        rules = rules_of(request, self.context, self.counter.count_text)
        return replace(self, request=request, body=body, rules=rules, expanded=True)

    @property
    def recorded(self) -> bool:
        recording = self.format.records and not self.side
        return recording and self.context.identity.mode in ("on", "write")

    @property
    def enriched(self) -> bool:
        """May what is known and recalled be added?"""
        return (self.rules.inject or self._instructs) and not self.side

    @property
    def _instructs(self) -> bool:
        """Does it say so beside a conversation that the upstream keeps?"""
        wanted = self.context.profile.recall_in_instructions
        return wanted and self.request.state.instructs and self.context.identity.mode != "write"

    @property
    def reason(self) -> Reason | None:
        return "side_request" if self.side else None

    @property
    def report(self) -> MemoryReport:
        """What is told of a request that is refused before memory has done anything."""
        return MemoryReport(self.context.key.session, reason=self.reason)


class Loaded(msgspec.Struct, frozen=True, gc=False):
    """The session and the plan over it; ``knowledge`` is None where there is none to choose from,
    ``rewriting`` where no question has begun to be rewritten.

    ``stale``: it is a retry of an exchange that others have followed, so it is not recorded.
    """

    exchange: ChatExchange
    prepared: Prepared
    knowledge: LoadedKnowledge | None
    stale: bool
    rewriting: Rewriting | None = None

    @property
    def bodies(self) -> Mapping[str, bytes]:
        """The JSON of stored messages by id."""
        return self.prepared.planned.bodies

    @property
    def recorded(self) -> bool:
        return self.exchange.recorded and not self.stale

    @property
    def reason(self) -> Reason | None:
        if self.stale:
            return "stale_retry"
        return self.exchange.reason or ("spooled" if self.prepared.spools else None)


async def load(exchange: ChatExchange, services: Services) -> Loaded:
    """Look at the session; at what is known of its person, and at what is asked, meanwhile.

    Raises ProxyError 403 for another user's session, StoreError.
    """
    request, context = exchange.request, exchange.context
    asked, count = request.last_user_text, exchange.counter.count_lines
    looking = services.knowledge.begin(context, asked, count, wanted=exchange.enriched)
    rewriting = services.rewrite.begin(context, request) if exchange.enriched else None
    try:
        ask = ask_of(context, exchange.rules)
        prepared = await services.recorder.prepare(
            context.key, ask, request.messages, exchange.intent, exchange.rules
        )
        check_owner(prepared.snapshot.owner, context.identity.user)
        stale = _is_stale(prepared.snapshot)
        exchange = _as_planned(exchange, prepared.planned.said)
        return Loaded(exchange, prepared, await looking, stale, rewriting)
    finally:
        looking.cancel()


def _as_planned(exchange: ChatExchange, said: Sequence[ChatMessage]) -> ChatExchange:
    """The exchange with its request's messages as the session has them."""
    request = exchange.request
    if said is request.messages:
        return exchange
    return replace(exchange, request=replace(request, messages=tuple(said)))


def check_owner(owner: str | None, user: str | None) -> None:
    """Raise ProxyError 403 for another user's session; a request that names nobody may have any."""
    if owner and user is not None and owner != user:
        raise session_owner_mismatch()


def _is_stale(snapshot: Snapshot) -> bool:
    attempt, last = snapshot.attempt, snapshot.last
    return attempt is not None and last is not None and attempt.id != last.id
