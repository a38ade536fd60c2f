"""Everything that memory adds to one request, and the request's body with it.  Pure.

``[system, instructions, summary] [window] [the client's messages]``.  The blocks about the user and
recalled passages are put before the text of the last user message: what changes from turn to turn
is at the end, so that the prefix stays the same for the upstream's prompt cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from proxy.chat.blocks import block, summary_block
from proxy.chat.media.words import with_text_only
from proxy.chat.message import Piece
from proxy.formats.format import Addition
from proxy.gateway.exchange import ChatExchange, LoadedExchange
from proxy.gateway.prompt.recall_step import NO_RECALL, RecallBlock
from proxy.gateway.report import MemoryReport, Reason, RecordDetails
from proxy.learning.prompt_cards import Block, KnownBlocks
from proxy.memory.model import NOTHING_RECALLED, Card, Entry, Recalled
from proxy.memory.prompt.compose import Prompt, render
from proxy.memory.prompt.trace import KnownRuns, PromptTrace, seq_ranges
from proxy.rewrite.rewriter import Rewritten


class TextOnly(NamedTuple):
    """A stored message (JSON) as text alone, and its tokens."""

    body: bytes
    tokens: int


class AssembledPrompt(msgspec.Struct, frozen=True, gc=False):
    """The composed prompt with learned memory and recalled passages.

    ``messages``: those after the system messages, without blocks.  ``trimmed``: it was narrowed to
    fit into the model's context.  ``rewritten``: the rewrite of the question, if there was one.
    ``text_only``: the stored messages, by their ids, that are sent as text alone.
    """

    loaded: LoadedExchange
    prompt: Prompt
    messages: list[Piece]
    known: KnownBlocks = KnownBlocks()
    recall: RecallBlock = NO_RECALL
    trimmed: bool = False
    rewritten: Rewritten | None = None
    text_only: Mapping[str, TextOnly] = {}

    @classmethod
    def of(cls, loaded: LoadedExchange, prompt: Prompt) -> AssembledPrompt:
        """The prompt with stored messages only."""
        return cls(loaded, prompt, render_messages(loaded, prompt))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to put into the request."""
        return self.prompt.is_empty and not self.known and not self.recall

    @property
    def tokens(self) -> int:
        window = self.prompt.injected.tokens - self._saved_tokens
        return window + self.known.tokens + self.recall.tokens

    @property
    def _cards(self) -> list[Card]:
        """The stored messages, with their tokens as they are sent."""
        cards = self.prompt.cards
        if not self.text_only:
            return cards
        ids = self.text_only.keys() - self.prompt.sent_as_text
        return [
            replace(card, tokens=self.text_only[card.id].tokens) if card.id in ids else card
            for card in cards
        ]

    @property
    def _saved_tokens(self) -> int:
        """Tokens that the window has less because of what is sent as text alone."""
        if not self.text_only:
            return 0
        return sum(card.tokens for card in self.prompt.cards) - sum(c.tokens for c in self._cards)

    @property
    def extra_tokens(self) -> int:
        """Tokens injected beside the stored messages."""
        system, summary = self.prompt.system_tokens, self.prompt.summary_tokens
        return system + summary + self.known.tokens + self.recall.tokens

    @property
    def recalled(self) -> int:
        """The number of passages, standing instructions, facts and examples."""
        known = len(self._learned) if self.known else 0
        return self.recall.recalled + known

    @property
    def exchange(self) -> ChatExchange:
        return self.loaded.exchange

    @property
    def recorded(self) -> bool:
        return self.loaded.recorded

    @property
    def reason(self) -> Reason | None:
        if self.trimmed:
            return "context_trimmed"
        return self.loaded.reason or self.recall.reason

    @property
    def _learned(self) -> tuple[Recalled, ...]:
        return tuple(source for part in self.known.blocks for source in part.sources)

    def add_to_report(self, report: MemoryReport) -> MemoryReport:
        messages, tokens = self.prompt.evicted
        return replace(
            report,
            status="empty" if self.empty else "applied",
            messages=self.prompt.injected.messages,
            tokens=self.tokens,
            recalled=self.recalled,
            recall_duration=self.recall.seconds,
            evicted_messages=messages,
            evicted_tokens=tokens,
            evicted_reason=self.prompt.evicted_reason,
        )

    def record_details(self, known_runs: KnownRuns) -> RecordDetails:
        """For the record: the sources of what was injected, and a trace of the prompt's layout, as
        long as the profile's ``why`` allows."""
        sources = [*self._learned, *self.recall.sources()]
        recalled = msgspec.Raw(msgspec.json.encode(sources)) if sources else NOTHING_RECALLED
        stored = self._cards
        if len(self.messages) < len(self.prompt.pieces):  # the JSON of some is gone
            stored = [card for card in stored if card.id in self.loaded.bodies]
        # Messages in the spool get their positions when they are replayed.
        resent = () if self.loaded.prepared.will_spool else self.prompt.resent
        trace = self._trace(len(stored) - self._stored_after_question(), resent)
        context = self.exchange.context
        runs = partial(known_runs.of, context.key)
        trace = trace.limited(stored, context.profile.why, runs)
        return RecordDetails(recalled, msgspec.Raw(msgspec.json.encode(trace)))

    def _trace(self, before: int, resent: Sequence[Entry]) -> PromptTrace:
        """The trace without stored messages, ``before`` of which precede the blocks."""
        prompt, known, learned = self.prompt, self.known, len(self._learned)
        return PromptTrace(
            system_tokens=prompt.system_tokens,
            summary_tokens=prompt.summary_tokens,
            summary_version=prompt.summary.version if prompt.summary else 0,
            learned_tokens=known.tokens,
            recall_tokens=self.recall.tokens,
            messages_before_memories=before,
            order=(*range(learned), *(learned + n for n in self.recall.order())),
            memories_before_summary=sum(len(part.sources) for part in known.head),
            resent=seq_ranges(entry.position.seq for entry in resent),
            rewriting=self.rewritten.outcome if self.rewritten else "",
        )

    def _stored_after_question(self) -> int:
        """The number of stored messages after the beginning of the last user message."""
        count, request = 0, self.exchange.request
        for piece in reversed(self.prompt.pieces):
            if isinstance(piece, int):
                role = request.messages[piece].role
            elif piece.card.id in self.loaded.bodies:
                role = piece.card.role
                count += 1
            else:
                continue
            if role == "user":
                return count
        return 0

    def body(self) -> bytes:
        """The request's body with everything that is added."""
        exchange = self.exchange
        addition = Addition(
            system=self.prompt.system,
            messages=self.messages,
            head="\n".join(self._head()),
            tail="\n".join(self._tail()),
            separate=exchange.context.profile.block_placement == "separate",
        )
        return exchange.format.write(exchange.request, addition)

    def _head(self) -> Iterable[str]:
        yield from map(_block_text, self.known.head)
        if self.prompt.summary is not None:
            yield summary_block(self.prompt.summary.text)

    def _tail(self) -> Iterable[str]:
        yield from map(_block_text, self.known.tail)
        yield from self.recall.blocks


def render_messages(
    loaded: LoadedExchange, prompt: Prompt, text_only: Mapping[str, TextOnly] | None = None
) -> list[Piece]:
    """A prompt's messages, stored ones as JSON; ``text_only``: see AssembledPrompt."""
    bodies = loaded.bodies
    if text_only:
        bodies = {**bodies, **{id: message.body for id, message in text_only.items()}}
    return render(prompt, loaded.exchange.request.messages, bodies)


def _block_text(part: Block) -> str:
    return block(part.kind, part.note, part.lines)


def stored_as_text(prompt: AssembledPrompt, ids: Collection[str] | None = None) -> AssembledPrompt:
    """The prompt with its stored messages, or only those with these ids, without media; the same
    object if they have none.  Slow for large ones: use a thread."""
    texts = dict(_text_only_messages(prompt, ids))
    if not texts:
        return prompt
    texts = {**prompt.text_only, **texts}
    messages = render_messages(prompt.loaded, prompt.prompt, texts)
    return replace(prompt, text_only=texts, messages=messages)


def _text_only_messages(
    prompt: AssembledPrompt, ids: Collection[str] | None
) -> Iterator[tuple[str, TextOnly]]:
    """The text-only form of each message, by id; not for messages that are sent as text already."""
    count, bodies = prompt.exchange.counter.count, prompt.loaded.bodies
    text_ids = prompt.prompt.sent_as_text.union(prompt.text_only)
    for entry in prompt.prompt.stored:
        id = entry.card.id
        if id in text_ids or (ids is not None and id not in ids) or id not in bodies:
            continue
        text = with_text_only(bodies[id])
        if text is not bodies[id]:
            yield id, TextOnly(text, count(text))
