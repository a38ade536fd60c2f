"""Resolves the ids that a request sends instead of content, in the session's own log.

Clients that rely on an upstream's stored conversation send ids of an earlier answer's items, or of
the answer that they continue.  Requests with injected memory are not stored upstream, so that their
ids can be resolved only here.  If the answer was stored upstream, its id still shows which branch
the request is on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

import msgspec
from msgspec.structs import replace

from proxy.formats.format import ReferringFormat
from proxy.formats.native import AnswerId, answer_id_of, native_of, substitutes_in
from proxy.gateway.exchange import ChatExchange, ContinuedAnswer, Services
from proxy.gateway.state.emulation import emulate_state, without_state_ids
from proxy.memory.model import Snapshot
from proxy.memory.store import StoreError

logger = logging.getLogger(__name__)


class ResolvedReferences(msgspec.Struct, frozen=True):
    """``parts`` (JSON) by their ids; ``previous``, the answer that the request continues, and
    the id of its ``message``; ``superseded``, that answer if it is in history and not in the log.
    """

    parts: Mapping[str, bytes]
    previous: AnswerId | None = None
    message: str = ""
    superseded: ContinuedAnswer | None = None


async def resolve_references(exchange: ChatExchange, services: Services) -> ChatExchange:
    """The exchange with its request's ids replaced by content; unknown ids stay.

    Raises ProxyError for ids of state that the proxy keeps: see ``emulate_state``,
    ``without_state_ids``.
    """
    exchange = await _look_up_references(await emulate_state(exchange, services), services)
    return await without_state_ids(exchange, services)


async def _look_up_references(exchange: ChatExchange, services: Services) -> ChatExchange:
    format, state = exchange.format, exchange.request.state
    if not (state.references or state.previous) or not isinstance(format, ReferringFormat):
        return exchange
    search = _ReferenceSearch(format, frozenset(state.references), state.previous)
    key, size = exchange.context.key, len(exchange.body)
    try:
        snapshot = await services.recorder.load_answers_until(key, search.is_complete)
        references = await services.threads.run(key.tenant, size, partial(search.result, snapshot))
        if state.previous and references.previous is None:
            references = await _superseded(exchange, services, search, references)
    except StoreError as failure:
        logger.warning("what a request names is not looked up: %s", failure)
        return exchange
    size += sum(map(len, references.parts.values()))
    with_references = partial(_with_references, exchange, format, references)
    return await services.threads.run(key.tenant, size, with_references)


async def _superseded(
    exchange: ChatExchange,
    services: Services,
    search: _ReferenceSearch,
    references: ResolvedReferences,
) -> ResolvedReferences:
    """``references`` with the answer that is continued, looked for among superseded messages.
    Raises StoreError."""
    key = exchange.context.key
    answer = await services.state.superseded(key, lambda raw: search.previous_in(raw) is not None)
    if answer is None:
        return references
    previous, continued = search.previous_in(answer.raw), ContinuedAnswer.of(answer)
    message = continued.message_id
    return replace(references, previous=previous, message=message, superseded=continued)


def _with_references(
    exchange: ChatExchange, format: ReferringFormat, references: ResolvedReferences
) -> ChatExchange:
    """The exchange with references in its body replaced; a rewind in its headers has precedence."""
    intent = exchange.intent
    if not intent.rewind:
        intent = replace(intent, continued_answer=references.message)
    continued = references.superseded or exchange.continued
    exchange = replace(exchange, intent=intent, continued=continued)
    detach = _must_inline(exchange, references.previous)
    if not references.parts and not detach:
        return exchange
    body = format.expand(exchange.body, references.parts, detach=detach)
    return exchange.with_body(body) or exchange  # it may be too much, with all that it names


def _must_inline(exchange: ChatExchange, previous: AnswerId | None) -> bool:
    """Whether ``previous`` must be sent as messages: the upstream has not stored it, or the proxy
    emulates state.  Background requests always continue on the upstream."""
    if previous is None or exchange.request.state.background:
        return False
    return not previous.stored or exchange.context.profile.emulate_response_state


class _ReferenceSearch:
    """Looks for parts and for the continued answer in a snapshot that grows into the past."""

    def __init__(self, format: ReferringFormat, ids: frozenset[str], previous: str | None) -> None:
        self._format, self._ids, self._previous = format, ids, previous
        self._searched: set[str] = set()
        self._parts: dict[str, bytes] = {}
        self._found_answer: tuple[str, AnswerId] | None = None

    def is_complete(self, snapshot: Snapshot) -> bool:
        for id, body in snapshot.bodies.items():
            if id not in self._searched:
                self._searched.add(id)
                self._search_message(id, body)
        is_answer_known = self._previous is None or self._found_answer is not None
        return is_answer_known and self._ids <= self._parts.keys()

    def result(self, snapshot: Snapshot) -> ResolvedReferences:
        self.is_complete(snapshot)
        if self._found_answer is None:
            return ResolvedReferences(self._parts)
        id, answer = self._found_answer
        return ResolvedReferences(self._parts, answer, id)

    def previous_in(self, body: bytes) -> AnswerId | None:
        """The answer in a stored message (JSON), if it is the one that is continued."""
        answer = answer_id_of(body, self._format.api) if self._previous else None
        return answer if answer is not None and answer.id == self._previous else None

    def _search_message(self, id: str, body: bytes) -> None:
        answer = self.previous_in(body)
        if answer is not None:
            self._found_answer = id, answer
        if self._ids:
            self._collect_parts(body)

    def _collect_parts(self, body: bytes) -> None:
        for part in native_of(body, self._format.api) or ():
            id = self._format.part_id(part)
            if id in self._ids:
                self._parts[id] = part
        for id, part in substitutes_in(body, self._format.api).items():
            if id in self._ids:
                self._parts.setdefault(id, part)
