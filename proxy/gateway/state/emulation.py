"""Emulates response state (``previous_response_id``, ``conversation``) for stateless upstreams.

The upstream gets the conversation as messages and no ids.  If a client continues a response that is
not the last one, the log becomes the branch that ends with it.
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
from proxy.formats.responses.names import ResponseId, parse_response_id
from proxy.formats.responses.reading import CONVERSATION, PREVIOUS
from proxy.formats.responses.writing import STORE, without_state
from proxy.gateway.exchange import ChatExchange, ContinuedAnswer, Services
from proxy.gateway.state.log import StateLog
from proxy.memory.model import Entry, SessionKey, exchange_of
from proxy.memory.naming import reference_in, reference_of
from proxy.memory.store import StoreError
from proxy.settings import Settings

METADATA = "metadata"
"""A field of the request that is part of the kept response, even if the upstream omits it."""


def check_state(state: State) -> None:
    """Raise ProxyError 400 for state that cannot be emulated."""
    if state.previous is not None and state.conversation is not None:
        message = "previous_response_id and conversation cannot both be said: leave one out."
        raise invalid_value(message, PREVIOUS)
    if state.background:
        message = "Nothing is made in the background here: leave background out, and wait."
        raise not_in_background(message, "background")


async def emulate_state(exchange: ChatExchange, services: Services) -> ChatExchange:
    """The exchange with a stateless request, the answer that it continues, and the fields that
    replace the upstream's in its own answer.

    An unknown ``previous_response_id`` is left in: it may be one of the upstream's.  Raises
    ProxyError 400 and 404 for invalid state, 503 if the store fails.
    """
    if not emulates(exchange):
        return exchange
    state = exchange.request.state
    check_state(state)
    try:
        continued = await _continued(exchange, services)
    except StoreError as failure:
        raise memory_unavailable() from failure
    response_fields = _response_fields(exchange) if exchange.recorded and state.stores else None
    exchange = replace(exchange, continued=continued, response_fields=response_fields)
    is_known = continued is not None or state.previous is None
    return await without_state_ids(exchange, services) if is_known else exchange


async def without_state_ids(exchange: ChatExchange, services: Services) -> ChatExchange:
    """The exchange without ids of stored state in its request, if state is emulated.  Raises
    ProxyError 404 for an unknown response."""
    if not emulates(exchange):
        return exchange
    previous = exchange.request.state.previous
    if previous is not None and exchange.continued is None:
        raise response_not_found(previous, PREVIOUS)
    tenant, work = exchange.context.key.tenant, partial(_without_state, exchange)
    return await services.threads.run(tenant, len(exchange.body), work)


def is_emulating(settings: Settings, profile: str) -> bool:
    """Whether state is emulated under the profile with this name, which may not exist."""
    found = settings.profile(profile)
    return found is not None and found.emulate_response_state


def emulates(exchange: ChatExchange) -> bool:
    keeps = exchange.context.profile.emulate_response_state
    return keeps and isinstance(exchange.format, Responses)


def log_ends_with(log: Sequence[Entry], continued: ContinuedAnswer) -> bool:
    """Whether the log ends with this answer, and its exchange directly follows the message that it
    followed when it was recorded."""
    if not log or max(log, key=lambda entry: entry.position.seq).card.id != continued.message_id:
        return False
    exchange = exchange_of(continued.message_id)
    before = [entry.card.id for entry in log if entry.card.exchange != exchange]
    return continued.follows_id is None or not before or before[-1] == continued.follows_id


async def _continued(exchange: ChatExchange, services: Services) -> ContinuedAnswer | None:
    """The answer that the request continues; None if it names a conversation, or nothing.  Raises
    ProxyError, StoreError."""
    state, key, log = exchange.request.state, exchange.context.key, services.state
    if state.conversation is not None:
        await _check_conversation(state.conversation, key, log)
        return None
    name = parse_response_id(state.previous)
    if name is None:
        return None
    answer = await log.answer(key, name)
    if (
        answer is None
        and services.recorder.is_spooling(key)
        and name.reference == reference_of(key[1])
    ):
        raise memory_unavailable()  # it may be on its way
    if answer is None:
        raise response_not_found(state.previous or "", PREVIOUS)
    return ContinuedAnswer.of(answer)


async def _check_conversation(conversation: str, key: SessionKey, log: StateLog) -> None:
    """Raise ProxyError 404 unless ``conversation`` is the session, StoreError.

    It may be an id with the session's reference, or the session's own id.
    """
    reference = reference_in(conversation)
    if reference is None and conversation == key.session:
        return
    if reference != reference_of(key.session) or await log.session(key) is None:
        raise conversation_not_found(conversation, CONVERSATION)


def _response_fields(exchange: ChatExchange) -> Mapping[str, bytes]:
    """The fields (JSON) that replace those of the upstream in the answer."""
    state, session = exchange.request.state, exchange.context.key.session
    values: dict[str, object] = {
        "id": str(ResponseId(reference_of(session), exchange.id)),
        STORE: True,
    }
    if state.previous is not None:
        values[PREVIOUS] = state.previous
    if state.conversation is not None:
        values[CONVERSATION] = {"id": state.conversation}
    fields = {name: jsontext.encode(value) for name, value in values.items()}
    metadata = exchange.request.fields.get(METADATA)
    return fields if metadata is None else {**fields, METADATA: metadata}


def _without_state(exchange: ChatExchange) -> ChatExchange:
    body = without_state(exchange.body)
    if body is exchange.body:
        return exchange
    changed = exchange.with_body(body)
    assert changed is not None  # the body was readable, and fields were only removed
    return changed
