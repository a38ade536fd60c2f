"""What repeats a message goes with it: what was made of its turn."""

from __future__ import annotations

from typing import Protocol

from proxy.learning.episode_shelf import EpisodeShelf
from proxy.learning.instructions_forgetting import InstructionsForgetting
from proxy.memory.archive import Line
from proxy.memory.items import Shelf
from proxy.memory.model import SessionKey


class History(Protocol):
    """Implemented by every store.  Raises StoreError."""

    async def message(self, key: SessionKey, message: str) -> Line | None: ...


async def forget_examples(
    episodes: EpisodeShelf, history: History, key: SessionKey, user: str, turn: int
) -> None:
    """Drop the episodes of a session that are made of a turn: their question or their answer is
    there, in whichever exchange.

    Raises StoreError, and Busy.
    """
    shelf = Shelf(key.tenant, user)
    for episode in (await episodes.held(shelf)).episodes:
        answers = [x.message for x in episode.sources if x.session == key.session]
        found = [await history.message(key, answer) for answer in answers]
        if any(line is not None and line.position.turn == turn for line in found):
            await episodes.drop(shelf, episode.id)


async def forget_proposals(
    remarks: InstructionsForgetting, history: History, key: SessionKey, turn: int
) -> None:
    """Drop what was proposed because of feedback on a turn's answers: it may repeat the turn.

    Raises StoreError, and Busy.
    """
    lines = [await history.message(key, message) for message in await remarks.judged(key)]
    messages = {line.card.id for line in lines if line and line.position.turn == turn}
    if messages:
        await remarks.proposed(key, messages)
