"""A request that goes on from what the proxy keeps, for an upstream that keeps nothing.

The upstream gets the conversation and no names.  Where a client goes on from a response, the log
becomes the way to that response, with the answer: several may go on from one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.chat.request import State
from proxy.errors import (
    conversation_not_found,
    invalid_value,
    memory_unavailable,
    not_in_background,
    response_not_found,
)
from proxy.formats.responses.api import Responses
from proxy.formats.responses.names import AnswerName, read_answer_name
from proxy.formats.responses.reading import CONVERSATION, PREVIOUS
from proxy.formats.responses.writing import STORE, stateless
from proxy.gateway.exchange import ChatExchange, GoingOn, Services
from proxy.gateway.state.log import StateLog
from proxy.memory.model import Entry, SessionKey, exchange_of
from proxy.memory.naming import reference_in, reference_of
from proxy.memory.store import StoreError

METADATA = "metadata"
"""What clients say of a response, and find in what they retrieve; upstreams need not repeat it."""


def check_state(state: State) -> None:
    """Raise ProxyError 400 for what nobody can do where the upstream keeps nothing."""
    if state.previous is not None and state.conversation is not None:
        said = "previous_response_id and conversation cannot both be said: leave one out."
        raise invalid_value(said, PREVIOUS)
    if state.background:
        said = "Nothing is made in the background here: leave background out, and wait."
        raise not_in_background(said, "background")


async def emulated(exchange: ChatExchange, services: Services) -> ChatExchange:
    """The exchange of a request that asks the upstream for no state, with the names that its answer
    will have.

    Raises ProxyError 400 and 404 for what it asks for, 503 where that cannot be looked up.
    """
    if not emulates(exchange):
        return exchange
    state = exchange.request.state
    check_state(state)
    try:
        on = await _going_on(exchange, services)
    except StoreError as failure:
        raise memory_unavailable() from failure
    names = _names(exchange) if exchange.recorded and state.stores else None
    exchange = replace(exchange, going_on=on, names=names)
    ours = on is not None or state.previous is None
    return await without_names(exchange, services) if ours else exchange


async def without_names(exchange: ChatExchange, services: Services) -> ChatExchange:
    """The exchange without any names of state, where the upstream keeps none.

    Raises ProxyError 404 for a response that is not known.
    """
    if not emulates(exchange):
        return exchange
    previous = exchange.request.state.previous
    if previous is not None and exchange.going_on is None:
        raise response_not_found(previous, PREVIOUS)
    return await services.aside.run(len(exchange.body), partial(_stateless, exchange))


def emulates(exchange: ChatExchange) -> bool:
    keeps = exchange.context.profile.emulate_response_state
    return keeps and isinstance(exchange.format, Responses)


def stands(log: Sequence[Entry], on: GoingOn) -> bool:
    """Does the log end with the answer that is gone on from, behind the message that its exchange
    followed?"""
    if not log or max(log, key=_seq).card.id != on.message:
        return False
    exchange = exchange_of(on.message)
    before = [entry.card.id for entry in log if entry.card.exchange != exchange]
    return on.follows is None or not before or before[-1] == on.follows


def _seq(entry: Entry) -> int:
    return entry.position.seq


async def _going_on(exchange: ChatExchange, services: Services) -> GoingOn | None:
    """What the request goes on from; None where that is a conversation, or nothing.

    Raises ProxyError, StoreError.
    """
    state, key, log = exchange.request.state, exchange.context.key, services.state
    if state.conversation is not None:
        await _must_be(state.conversation, key, log)
        return None
    name = read_answer_name(state.previous)
    if name is None:
        return None
    answer = await log.answer(key, name)
    if answer is None and services.recorder.spools(key) and name.reference == reference_of(key[1]):
        raise memory_unavailable()  # it may be on its way
    if answer is None:
        raise response_not_found(state.previous or "", PREVIOUS)
    return GoingOn.of(answer)


async def _must_be(conversation: str, key: SessionKey, log: StateLog) -> None:
    """Raise ProxyError 404 for another conversation than the session's, StoreError.

    It is named by its reference, or, where bodies may name sessions, by the session's own id.
    """
    reference = reference_in(conversation)
    if reference is None and conversation == key.session:
        return
    if reference != reference_of(key.session) or await log.session(key) is None:
        raise conversation_not_found(conversation, CONVERSATION)


def _names(exchange: ChatExchange) -> Mapping[str, bytes]:
    """What the answer says of itself instead of what the upstream says."""
    state, session = exchange.request.state, exchange.context.key.session
    names: dict[str, object] = {
        "id": str(AnswerName(reference_of(session), exchange.id)),
        STORE: True,
    }
    if state.previous is not None:
        names[PREVIOUS] = state.previous
    if state.conversation is not None:
        names[CONVERSATION] = {"id": state.conversation}
    told = {field: jsontext.encode(said) for field, said in names.items()}
    metadata = exchange.request.fields.get(METADATA)
    return told if metadata is None else {**told, METADATA: metadata}


def _stateless(exchange: ChatExchange) -> ChatExchange:
    body = stateless(exchange.body)
    if body is exchange.body:
        return exchange
    other = exchange.with_body(body)
    assert other is not None  # it could be read with more in it
    return other
