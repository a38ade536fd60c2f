"""Builds recall's query for a chat request.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from proxy.chat.message import ChatMessage, Piece, last_user_index, typed_string_of
from proxy.gateway.prompt.prompt import AssembledPrompt
from proxy.memory.model import Recalled, Snapshot
from proxy.memory.recording.recorder import PreparedRequest
from proxy.recall.query.query import RecallQuery

MAX_PRECEDING = 4
"""Messages before the question that are searched with it if it is short."""

MAX_READ_BYTES = 1_000_000
"""Larger messages (bytes) before the question are not read."""


def query_for(prompt: AssembledPrompt, budget: int) -> RecallQuery | None:
    """The query for the last user message; None without one, or without a ``budget`` (tokens)."""
    at = last_user_index(prompt.messages)
    if at is None or budget <= 0:
        return None
    exchange, prepared = prompt.exchange, prompt.loaded.prepared
    context, question = exchange.context, exchange.request.last_user
    request_digests = frozenset([message.digest for message in exchange.request.messages])
    superseded = prepared.planned.plan.superseded
    if exchange.request.state.kept_upstream:  # the model sees the whole conversation
        newest = max((entry.position.seq for entry in prepared.snapshot.log), default=0)
        shown, hidden = frozenset(range(1, newest + 1)), 0
    else:
        stored = [entry.position.seq for entry in prompt.prompt.stored]
        shown = frozenset(stored + _seqs_in_request(prepared.snapshot, request_digests))
        hidden = _newest_hidden_seq(prepared.snapshot, shown, superseded)
    query = RecallQuery(
        key=context.key,
        user=context.identity.user,
        session_owner=prepared.snapshot.owner,
        text="",
        shown_seqs=shown,
        shown_digests=request_digests,
        superseded_ids=superseded,
        newest_hidden_seq=hidden,
        budget=budget,
        count=exchange.counter.count_lines,
        replayed=_recalled_in_loop(prepared),
        options=context.profile_rules.recall,
    )
    if query.has_nowhere_to_look:  # most requests: texts are read only for a search
        return query
    before = range(max(0, at - MAX_PRECEDING), at)
    texts = tuple([text_at(prompt.messages, n, question) for n in before])
    return replace(query, text=text_at(prompt.messages, at, question), previous_texts=texts)


def text_at(pieces: Sequence[Piece], at: int, question: ChatMessage | None) -> str:
    """The text of a message; "" for a large one, unless it is the ``question``."""
    piece = pieces[at]
    if isinstance(piece, ChatMessage):
        readable = piece is question or len(piece.raw) <= MAX_READ_BYTES
        return piece.typed_text if readable else ""
    return typed_string_of(piece) if len(piece) <= MAX_READ_BYTES else ""


def _seqs_in_request(snapshot: Snapshot, digests: frozenset[str]) -> list[int]:
    """Seqs of all messages in turns of which the client has sent a message again.

    So answers count as sent that the client renders differently.
    """
    turns = {e.position.turn for e in snapshot.log if e.card.digest in digests}
    if not turns:
        return []
    return [e.position.seq for e in snapshot.log if e.position.turn in turns]


def _newest_hidden_seq(
    snapshot: Snapshot, shown: frozenset[int], superseded: frozenset[str]
) -> int:
    """The seq of the newest message that is neither in the prompt nor superseded; 0 if none.

    Messages older than the loaded part of the log are never in the prompt.
    """
    seqs = {entry.position.seq for entry in snapshot.log}
    hidden = seqs - shown
    if hidden and superseded:
        hidden.difference_update([e.position.seq for e in snapshot.log if e.card.id in superseded])
    if hidden or snapshot.messages <= len(snapshot.log):
        return max(hidden, default=0)
    return max(1, min(seqs, default=1) - 1)


def _recalled_in_loop(prepared: PreparedRequest) -> tuple[Recalled, ...] | None:
    """What the earlier rounds of this tool loop recalled, which is reused; None outside a loop."""
    last, running = prepared.snapshot.last, prepared.planned.plan.running_turn
    if last is None or running is None:
        return None
    turns = {e.position.turn for e in prepared.snapshot.log if e.card.exchange == last.id}
    return last.memory.all_recalled() if running in turns else None
