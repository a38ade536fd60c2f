"""What earlier answers thought, where an upstream wants it back: see ``proxy.chat.thoughts``."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from proxy.chat.thoughts import NONE, thoughts_in
from proxy.gateway.exchange import Services
from proxy.gateway.outgoing import Degraded, OutgoingRequest
from proxy.memory.model import Card, Entry, SessionKey
from proxy.memory.planner import Planned
from proxy.memory.store import StoreError

logger = logging.getLogger(__name__)

MOST = 256
"""Answers with calls that are looked up, the newest."""

LOOK_AT = 32
"""Answers that are looked up together."""

MAX_BYTES = 1024 * 1024
"""Of all thoughts in a request: the newest that fit."""


def has_calls(outgoing: OutgoingRequest) -> bool:
    """Are there calls among its messages?"""
    said = any(message.calls for message in outgoing.exchange.request.messages)
    return said or any(card.calls for card in _stored(outgoing))


async def with_stored_thoughts(outgoing: OutgoingRequest, services: Services) -> OutgoingRequest:
    """The request with the thoughts that memory has of its calls, whoever sends these.

    An id that several calls have tells nothing of whose they are.
    """
    cards = _calling(outgoing)
    times = Counter(call for card in cards for call in card.calls)
    known: dict[str, bytes] = {}
    left = MAX_BYTES
    async for card, thoughts in _thoughts(cards, outgoing.exchange.context.key, services):
        left -= len(thoughts)
        if left < 0:
            break
        known |= {call: thoughts for call in card.calls if times[call] == 1}
    return replace(outgoing, thoughts=known)


async def _thoughts(
    cards: Sequence[Card], key: SessionKey, services: Services
) -> AsyncIterator[tuple[Card, bytes]]:
    """Those of each of the cards that has some, as far as the store can say."""
    for at in range(0, len(cards), LOOK_AT):
        some = cards[at : at + LOOK_AT]
        try:
            came = await services.recorder.as_came(key, [card.id for card in some])
        except StoreError as failure:
            logger.warning("what was thought is not looked up: %s", failure)
            return
        read = partial(_read, some, came)
        for each in await services.aside.run(sum(map(len, came.values())), read):
            yield each


def _read(cards: Sequence[Card], came: Mapping[str, bytes]) -> list[tuple[Card, bytes]]:
    told = [(card, thoughts_in(came[card.id])) for card in cards if card.id in came]
    return [(card, thoughts) for card, thoughts in told if thoughts != NONE]


def _calling(outgoing: OutgoingRequest) -> list[Card]:
    """The stored answers whose calls are sent, the newest first."""
    if isinstance(outgoing.prompt, Degraded):
        return []
    stored = {card.id for card in _stored(outgoing)}
    said = {call for message in outgoing.exchange.request.messages for call in message.calls}
    log = _with_chosen(outgoing.prompt.loaded.prepared.planned)
    cards = (entry.card for entry in reversed(log) if entry.card.calls)
    sent = (card for card in cards if card.id in stored or not said.isdisjoint(card.calls))
    return list(islice(sent, MOST))


def _with_chosen(planned: Planned) -> Sequence[Entry]:
    """The log, with the choices that the client goes on from instead of those that it had."""
    snapshot, back = planned.snapshot, {*planned.plan.activated}
    chosen = {entry.card.exchange: entry for entry in snapshot.idle if entry.card.id in back}
    return [
        chosen.get(e.card.exchange, e) if e.card.origin == "response" else e for e in snapshot.log
    ]


def _stored(outgoing: OutgoingRequest) -> Sequence[Card]:
    return () if isinstance(outgoing.prompt, Degraded) else outgoing.prompt.prompt.cards
