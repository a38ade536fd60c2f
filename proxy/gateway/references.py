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

from proxy.formats.format import Referring
from proxy.formats.native import AnswerId, answer_id_of, native_of, substitutes_in
from proxy.gateway.exchange import ChatExchange, Continued, Services
from proxy.gateway.state.emulation import emulate_state, without_names
from proxy.memory.model import Snapshot
from proxy.memory.store import StoreError

logger = logging.getLogger(__name__)


class ResolvedReferences(msgspec.Struct, frozen=True):
    """What was found: ``parts`` (JSON) by their ids; ``previous``, the answer that is continued,
    and the id of its ``message``; ``superseded``, if that is in history and not in the log."""

    parts: Mapping[str, bytes]
    previous: AnswerId | None = None
    message: str = ""
    superseded: Continued | None = None


async def resolve_references(exchange: ChatExchange, services: Services) -> ChatExchange:
    """The exchange with its request's ids replaced by content; unknown ids stay.

    Raises ProxyError for ids of state that the proxy keeps: see ``emulate_state``,
    ``without_names``.
    """
    exchange = await _look_up_references(await emulate_state(exchange, services), services)
    return await without_names(exchange, services)


async def _look_up_references(exchange: ChatExchange, services: Services) -> ChatExchange:
    format, state = exchange.format, exchange.request.state
    if not (state.references or state.previous) or not isinstance(format, Referring):
        return exchange
    search = _Search(format, frozenset(state.references), state.previous)
    try:
        snapshot = await services.recorder.load_answers_until(exchange.context.key, search.is_over)
        found = await services.threads.run(len(exchange.body), partial(search.found, snapshot))
        if state.previous and found.previous is None:
            found = await _superseded(exchange, services, search, found)
    except StoreError as failure:
        logger.warning("what a request names is not looked up: %s", failure)
        return exchange
    size = len(exchange.body) + sum(map(len, found.parts.values()))
    return await services.threads.run(size, partial(_with_references, exchange, format, found))


async def _superseded(
    exchange: ChatExchange, services: Services, search: _Search, found: ResolvedReferences
) -> ResolvedReferences:
    """``found`` with the answer that is continued, looked for among superseded messages.

    Raises StoreError.
    """
    key = exchange.context.key
    answer = await services.state.superseded(key, lambda raw: search.previous_in(raw) is not None)
    if answer is None:
        return found
    previous, continued = search.previous_in(answer.raw), Continued.of(answer)
    return replace(found, previous=previous, message=continued.message_id, superseded=continued)


def _with_references(
    exchange: ChatExchange, format: Referring, found: ResolvedReferences
) -> ChatExchange:
    """The exchange with ``found`` put into its body; a rewind in its headers has precedence."""
    intent = exchange.intent
    if not intent.rewind:
        intent = replace(intent, on=found.message)
    exchange = replace(exchange, intent=intent, continued=found.superseded or exchange.continued)
    begins = _must_inline(exchange, found.previous)
    if not found.parts and not begins:
        return exchange
    body = format.expand(exchange.body, found.parts, detach=begins)
    return exchange.with_body(body) or exchange  # it may be too much, with all that it names


def _must_inline(exchange: ChatExchange, previous: AnswerId | None) -> bool:
    """Whether ``previous`` must be sent as messages: the upstream has not stored it, or the proxy
    emulates state.  Background requests always continue on the upstream."""
    if previous is None or exchange.request.state.background:
        return False
    return not previous.stored or exchange.context.profile.emulate_response_state


class _Search:
    """Looks for parts and for the continued answer in a snapshot that grows into the past."""

    def __init__(self, format: Referring, names: frozenset[str], previous: str | None) -> None:
        self._format, self._names, self._previous = format, names, previous
        self._looked_at: set[str] = set()
        self._parts: dict[str, bytes] = {}
        self._answer: tuple[str, AnswerId] | None = None

    def is_over(self, snapshot: Snapshot) -> bool:
        for id, body in snapshot.bodies.items():
            if id not in self._looked_at:
                self._looked_at.add(id)
                self._look_at(id, body)
        known = self._previous is None or self._answer is not None
        return known and self._names <= self._parts.keys()

    def found(self, snapshot: Snapshot) -> ResolvedReferences:
        self.is_over(snapshot)
        if self._answer is None:
            return ResolvedReferences(self._parts)
        id, answer = self._answer
        return ResolvedReferences(self._parts, answer, id)

    def previous_in(self, body: bytes) -> AnswerId | None:
        """The answer in a stored message (JSON), if it is the one that is continued."""
        answer = answer_id_of(body, self._format.api) if self._previous else None
        return answer if answer is not None and answer.id == self._previous else None

    def _look_at(self, id: str, body: bytes) -> None:
        answer = self.previous_in(body)
        if answer is not None:
            self._answer = id, answer
        if self._names:
            self._look_for_names(body)

    def _look_for_names(self, body: bytes) -> None:
        for part in native_of(body, self._format.api) or ():
            name = self._format.named_part(part)
            if name in self._names:
                self._parts[name] = part
        for name, part in substitutes_in(body, self._format.api).items():
            if name in self._names:
                self._parts.setdefault(name, part)
