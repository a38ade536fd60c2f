"""The instructions as they go into the system message."""

from __future__ import annotations

import msgspec

from proxy.learning.fitting import fitted
from proxy.learning.instructions import FEATURE, Instructions, current_place
from proxy.learning.knowledge import Where
from proxy.learning.known import Block, CountText
from proxy.learning.likeness import Asked
from proxy.memory.items import Shelf
from proxy.memory.model import Recalled
from proxy.settings import ProfileSettings

NOTE = "How to answer in this application, from its operator. The system message above comes first."

_current = msgspec.json.Decoder(Instructions)


class InstructionCards:
    """See :class:`proxy.learning.knowledge.Part`.  The card is the current text itself."""

    kind = FEATURE

    def wants(self, settings: ProfileSettings) -> bool:
        return settings.instructions.enabled

    def where(self, tenant: str, user: str | None, settings: ProfileSettings) -> Where | None:
        return Where(Shelf(tenant), current_place(settings.instructions.name))

    def choose(
        self,
        card: bytes,
        settings: ProfileSettings,
        question: Asked,
        budget: int,
        count: CountText,
    ) -> Block | None:
        """All of it, or as many of its first lines as fit."""
        most = min(budget, settings.instructions.max_tokens)
        lines = _current.decode(card).text.splitlines()
        found = fitted(FEATURE, NOTE, lines, "\n", most, count)
        if found is None:
            return None
        source = Recalled(kind=FEATURE, message="", session="", seq=0, tokens=found.tokens)
        return Block(FEATURE, NOTE, found.lines, found.tokens, (source,))
