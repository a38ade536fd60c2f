"""What was asked and answered, as history has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from proxy.memory.archive import Session
from proxy.memory.model import Ask, Entry, Exchange, SessionKey, Snapshot
from proxy.memory.reading import WHOLE_LOG


class History(Protocol):
    """Implemented by every store.  All methods raise StoreError."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot: ...

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]: ...

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None: ...


@dataclass(frozen=True, slots=True)
class Answered:
    """A question of the user's and the answer to it; times are Unix seconds."""

    session: str
    exchange: str
    message: str
    """The answer's id."""
    question: str
    answer: str
    at: float


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Reads history; ``text_of`` gives the text of a message's JSON, without media."""

    history: History
    text_of: Callable[[bytes], str]

    async def answered(self, key: SessionKey, message: str) -> Answered | None:
        """What this answer answers; None unless both are text and in the active history.

        Raises StoreError.
        """
        log = (await self.history.load(key, WHOLE_LOG)).log
        found = next((entry for entry in log if entry.card.id == message), None)
        asked = question_of(log, found) if found and found.card.role == "assistant" else None
        if found is None or asked is None:
            return None
        texts = await self.texts(key, [asked.card.id, message])
        question, answer = texts.get(asked.card.id, ""), texts.get(message, "")
        if not question or not answer:
            return None
        card = found.card
        return Answered(key.session, card.exchange, card.id, question, answer, card.created_at)

    async def texts(self, key: SessionKey, ids: Collection[str]) -> dict[str, str]:
        """The texts of messages that are there.  Raises StoreError."""
        bodies = await self.history.bodies(key, ids)
        return {id: self.text_of(body).strip() for id, body in bodies.items()}


def question_of(log: Sequence[Entry], answer: Entry) -> Entry | None:
    """The user's message that a turn began with."""
    turn = answer.position.turn
    entries = (entry for entry in log if entry.position.turn == turn)
    return next((entry for entry in entries if entry.card.role == "user"), None)
