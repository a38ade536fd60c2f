"""All that memory adds to one request, and the request with it.  Pure.

``[system, instructions, summary] [window] [the client's messages]``, the blocks about the user and
what is recalled before the last user message's own text: what changes from turn to turn stands at
the tail, so that all before it stays as it was in the request before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from proxy.chat import jsontext
from proxy.chat.blocks import (
    block,
    block_message,
    summary_block,
    with_block,
    with_block_behind,
)
from proxy.chat.cachemarks import without_marks
from proxy.chat.calltext import sent_again
from proxy.chat.request import ChatRequest
from proxy.gateway.account import Account, Noted
from proxy.gateway.reminder import NOTHING, Reminder, last_user
from proxy.learning.known import Block, Known
from proxy.memory.compose import Prompt, render
from proxy.memory.model import NOTHING_RECALLED, Entry, Recalled
from proxy.memory.shown import Shown, stretches_of


@dataclass(frozen=True, slots=True)
class Additions:
    """The prompt with the stored messages, what is known, and what is recalled."""

    prompt: Prompt
    known: Known = Known()
    reminder: Reminder = NOTHING

    def __bool__(self) -> bool:
        return not self.prompt.empty or bool(self.known) or bool(self.reminder)

    @property
    def beside(self) -> int:
        """Tokens beside those of the prompt."""
        return self.known.tokens + self.reminder.tokens

    @property
    def tokens(self) -> int:
        return self.prompt.injected.tokens + self.beside

    @property
    def recalled(self) -> int:
        """How many passages, wishes, facts and examples."""
        return self.reminder.recalled + len(self._learned)

    @property
    def _learned(self) -> tuple[Recalled, ...]:
        return tuple(source for part in self.known.blocks for source in part.sources)

    def tell(self, account: Account) -> None:
        """What the answer's headers say of it."""
        account.status = "applied" if self else "empty"
        account.messages, account.tokens = self.prompt.injected.messages, self.tokens
        account.recalled, account.evicted_reason = self.recalled, self.prompt.reason
        account.evicted_messages, account.evicted_tokens = self.prompt.evicted

    def noted(
        self, request: ChatRequest, bodies: Mapping[str, bytes], most: int, *, placed: bool = True
    ) -> Noted:
        """Where it all is from, and at most so many pieces of what stands where.

        ``placed``: the places of stored messages are those that they will have.
        """
        sources = [*self._learned, *self.reminder.sources()]
        recalled = msgspec.Raw(msgspec.json.encode(sources)) if sources else NOTHING_RECALLED
        stored = [card for card in self.prompt.cards if card.id in bodies]
        before = len(stored) - self._behind_question(request, bodies)
        resent = self.prompt.resent if placed else ()
        shown = self._shown(before, resent).limited(stored, most)
        return Noted(recalled, msgspec.Raw(msgspec.json.encode(shown)))

    def _shown(self, before: int, resent: Sequence[Entry]) -> Shown:
        """Without the stored messages; so many of them stand before what is known and recalled."""
        prompt, known, learned = self.prompt, self.known, len(self._learned)
        return Shown(
            system=prompt.system_tokens,
            summary=prompt.summary_tokens,
            version=prompt.summary.version if prompt.summary else 0,
            known=known.tokens,
            recall=self.reminder.tokens,
            before=before,
            order=(*range(learned), *(learned + n for n in self.reminder.order())),
            ahead=len(known.instructions.sources) if known.instructions else 0,
            resent=stretches_of(entry.position.seq for entry in resent),
        )

    def _behind_question(self, request: ChatRequest, bodies: Mapping[str, bytes]) -> int:
        """How many stored messages stand behind the beginning of the last user message."""
        behind = 0
        for piece in reversed(self.prompt.pieces):
            if isinstance(piece, int):
                role = request.messages[piece].role
            elif piece.card.id in bodies:
                role = piece.card.role
                behind += 1
            else:
                continue
            if role == "user":
                return behind
        return 0

    def messages(self, request: ChatRequest, bodies: Mapping[str, bytes]) -> list[bytes]:
        """The JSON of what stands behind the system messages, without blocks."""
        own = [message.raw for message in request.messages]
        return render(self.prompt, own, bodies, sent_again)

    def body(self, request: ChatRequest, bodies: Mapping[str, bytes], placement: str) -> bytes:
        """The request with all of it.  ``bodies``: the JSON of stored messages by id."""
        stored = self.prompt.system
        system = jsontext.items(without_marks(stored)) if stored else request.system
        messages = self.messages(request, bodies)
        separate = placement == "separate"
        head = _behind(system, list(self._head()), separate=separate)
        tail = _before_last_user(messages, list(self._tail()), separate=separate)
        return request.with_messages((*head, *tail))

    def _head(self) -> Iterable[str]:
        if self.known.instructions is not None:
            yield _written(self.known.instructions)
        if self.prompt.summary is not None:
            yield summary_block(self.prompt.summary.text)

    def _tail(self) -> Iterable[str]:
        yield from map(_written, self.known.tail)
        yield from self.reminder.blocks


def _written(part: Block) -> str:
    return block(part.kind, part.note, part.lines)


def _behind(system: Sequence[bytes], blocks: Sequence[str], *, separate: bool) -> list[bytes]:
    """The leading system messages with blocks behind them; one is made where there is none."""
    if not blocks:
        return list(system)
    text = "\n".join(blocks)
    if separate or not system:
        return [*system, block_message(text)]
    return [*system[:-1], with_block_behind(system[-1], text)]


def _before_last_user(
    messages: Sequence[bytes], blocks: Sequence[str], *, separate: bool
) -> list[bytes]:
    """The messages with blocks at the last user message; without one there is no place."""
    at = last_user(messages)
    if at is None or not blocks:
        return list(messages)
    text = "\n".join(blocks)
    if separate:
        return [*messages[:at], block_message(text), *messages[at:]]
    return [*messages[:at], with_block(messages[at], text), *messages[at + 1 :]]
