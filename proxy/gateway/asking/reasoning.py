"""Loads the reasoning of earlier answers, which some upstreams demand back.

See ``proxy.chat.reasoning``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from proxy.chat.reasoning import NO_REASONING, reasoning_in
from proxy.gateway.exchange import Services
from proxy.gateway.outgoing import DegradedPrompt, OutgoingRequest
from proxy.memory.model import Card, Entry, SessionKey
from proxy.memory.planner import PlannedRequest
from proxy.memory.store import StoreError

logger = logging.getLogger(__name__)

MAX_ANSWERS = 256
"""Answers with calls whose reasoning is loaded, the newest first."""

BATCH = 32
"""Answers loaded from the store at a time."""

MAX_BYTES = 1024 * 1024
"""Limit on the reasoning in a request, filled from the newest answer."""


def sends_calls(outgoing: OutgoingRequest) -> bool:
    """Whether tool calls are among the messages to be sent."""
    sends_own = any(message.calls for message in outgoing.exchange.request.messages)
    return sends_own or any(card.calls for card in _stored_cards(outgoing))


async def with_stored_reasoning(outgoing: OutgoingRequest, services: Services) -> OutgoingRequest:
    """The request with the recorded reasoning of its tool calls, by their ids.

    Ids that several calls share are left out: the call could be any of them.
    """
    cards = _calling_cards(outgoing)
    occurrences = Counter(call for card in cards for call in card.calls)
    reasoning_by_call: dict[str, bytes] = {}
    bytes_left = MAX_BYTES
    async for card, reasoning in _stored_reasoning(cards, outgoing.exchange.context.key, services):
        bytes_left -= len(reasoning)
        if bytes_left < 0:
            break
        reasoning_by_call |= {call: reasoning for call in card.calls if occurrences[call] == 1}
    return replace(outgoing, reasoning=reasoning_by_call)


async def _stored_reasoning(
    cards: Sequence[Card], key: SessionKey, services: Services
) -> AsyncIterator[tuple[Card, bytes]]:
    """The cards that have reasoning, each with its JSON; ends early if the store fails."""
    for start in range(0, len(cards), BATCH):
        batch = cards[start : start + BATCH]
        try:
            bodies = await services.recorder.wires(key, [card.id for card in batch])
        except StoreError as failure:
            logger.warning("what was thought is not looked up: %s", failure)
            return
        read = partial(_reasoning_of_cards, batch, bodies)
        for pair in await services.threads.run(key.tenant, sum(map(len, bodies.values())), read):
            yield pair


def _reasoning_of_cards(
    cards: Sequence[Card], bodies: Mapping[str, bytes]
) -> list[tuple[Card, bytes]]:
    pairs = [(card, reasoning_in(bodies[card.id])) for card in cards if card.id in bodies]
    return [(card, reasoning) for card, reasoning in pairs if reasoning != NO_REASONING]


def _calling_cards(outgoing: OutgoingRequest) -> list[Card]:
    """The cards of recorded answers whose calls are sent, newest first."""
    if isinstance(outgoing.prompt, DegradedPrompt):
        return []
    stored = {card.id for card in _stored_cards(outgoing)}
    messages = outgoing.exchange.request.messages
    sent_calls = {call for message in messages for call in message.calls}
    log = _with_activated_choices(outgoing.prompt.loaded.prepared.planned)
    cards = (entry.card for entry in reversed(log) if entry.card.calls)
    sent = (card for card in cards if card.id in stored or not sent_calls.isdisjoint(card.calls))
    return list(islice(sent, MAX_ANSWERS))


def _with_activated_choices(planned: PlannedRequest) -> Sequence[Entry]:
    """The log with each answer replaced by the choice that the client continued, if another."""
    snapshot, activated = planned.snapshot, {*planned.plan.activated}
    chosen = {
        entry.card.exchange: entry
        for entry in snapshot.inactive_choices
        if entry.card.id in activated
    }
    return [
        chosen.get(e.card.exchange, e) if e.card.origin == "response" else e for e in snapshot.log
    ]


def _stored_cards(outgoing: OutgoingRequest) -> Sequence[Card]:
    return () if isinstance(outgoing.prompt, DegradedPrompt) else outgoing.prompt.prompt.cards
