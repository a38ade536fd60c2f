"""From a session's new messages to what is added to an index.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.memory.archive import Message, Session
from proxy.recall.index import ROW_SIZE, Batch, Look, Mark
from proxy.recall.match import REACH
from proxy.recall.packing import SAID_BY_USER, STANDING, check_of
from proxy.recall.standing import is_standing
from proxy.recall.state import State, write_state
from proxy.recall.terms import Entry, analyse, pack

NO_ROW = bytes(ROW_SIZE)

ROLES = ("user", "assistant")
"""Whose messages are indexed: what tools and system messages say is nobody's memory."""


@dataclass(frozen=True, slots=True)
class Addition:
    """``found`` follow each other in history, behind the session's mark in ``look``.

    Or ``again`` they are messages before it that say something else now.  Those stand apart, with
    rows of no passages around: what has the next numbers is not next to them in the conversation,
    and what they said before must not find them there.
    """

    look: Look
    state: State
    session: Session
    found: Sequence[Message]
    text_of: Callable[[bytes], str]
    again: bool = False

    def batch(self) -> Batch:
        """The batch that indexes them; unless they are known, it moves the mark behind the last."""
        entries = self._entries()
        number, last = self._number, self.found[-1]
        gap = REACH if self.again and entries else 0
        first = self.state.passages + gap
        packed = pack(entries, first)
        state = self.state.extended(
            [*gap * [0], *(entry.analysis.length for entry in entries), *gap * [0]],
            [first + i for i, entry in enumerate(entries) if entry.flags & STANDING],
            max(number, self.state.sessions),
        )
        return Batch(
            revision=self.look.revision,
            state=write_state(state),
            session=self.session.id,
            mark=None if self.again else Mark(number, last.seq, check_of(last.card.id)),
            first=self.state.passages,
            rows=gap * NO_ROW + packed.rows + gap * NO_ROW,
            postings=packed.postings,
            ttl=self.session.details.ttl,
        )

    @property
    def _number(self) -> int:
        """Sessions are numbered from 1; 0 is the row of a passage that is not there."""
        return self.look.mark.number if self.look.mark else self.state.sessions + 1

    def _entries(self) -> list[Entry]:
        entries: list[Entry] = []
        language = ""
        for message in self.found:
            if message.card.role not in ROLES:
                continue
            text = self.text_of(message.wire)
            if text.strip():  # a message may consist of calls alone
                entries.append(self._entry(message, text, language))
                language = entries[-1].analysis.language
        return entries

    def _entry(self, message: Message, text: str, language: str) -> Entry:
        card = message.card
        flags = SAID_BY_USER if card.role == "user" else 0
        if flags and is_standing(text):
            flags |= STANDING
        return Entry(
            session=self._number,
            seq=message.seq,
            check=check_of(card.id, card.digest),
            time=card.created_at,
            tokens=card.tokens,
            flags=flags,
            analysis=analyse(text, card.created_at, language),
        )
