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
from proxy.chat.request import ChatRequest
from proxy.gateway.reminder import NOTHING, Reminder, last_user
from proxy.learning.known import Block, Known
from proxy.memory.compose import Prompt, render
from proxy.memory.model import NOTHING_RECALLED, Recalled


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

    def sources(self) -> msgspec.Raw:
        """Where it is all from, for the exchange's record."""
        sources = [*self._learned, *self.reminder.sources()]
        return msgspec.Raw(msgspec.json.encode(sources)) if sources else NOTHING_RECALLED

    def body(self, request: ChatRequest, bodies: Mapping[str, bytes], placement: str) -> bytes:
        """The request with all of it.  ``bodies``: the JSON of stored messages by id."""
        stored = self.prompt.system
        system = jsontext.items(stored) if stored else request.system
        said = [message.raw for message in request.messages]
        messages = render(self.prompt, said, bodies)
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
