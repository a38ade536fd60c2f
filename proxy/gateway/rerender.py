"""Whether a client's answer is a stored one in another dress.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat.message import is_prefix, similar, text_of
from proxy.memory.model import Card
from proxy.memory.request import Incoming, Rerendered


def rerender(bodies: Mapping[str, bytes]) -> Rerendered:
    """Is an answer of the request the stored one, re-rendered, or the rest of a broken one?"""

    def same(message: Incoming, card: Card) -> bool:
        body = bodies.get(card.id)
        if body is None:
            return False
        stored = text_of(body)
        if card.incomplete and (is_prefix(stored, message.text) or is_prefix(message.text, stored)):
            return True
        return similar(message.text, stored)

    return same
