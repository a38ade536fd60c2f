"""The JSON objects of the memory API.  Pure: domain values in, plain values out.

Messages are put in as they are stored, byte for byte.  Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict
from starlette.responses import Response

from proxy.chat.jsontext import items
from proxy.gateway.preview import PreviewResult
from proxy.learning.evidence import Source
from proxy.learning.prompt_cards import Block
from proxy.memory.archive import Message, Session, StoredMessage
from proxy.memory.model import Card, Exchange, Injection, Recalled, State, Status, Summary
from proxy.memory.prompt.compose import Reason
from proxy.memory.prompt.trace import PromptTrace, TracePiece, pieces_of, readable_trace
from proxy.memory_api.shapes import messages, people
from proxy.memory_api.shapes import sessions as shapes
from proxy.recall.results import Kind, RecallHit

Object = dict[str, object]


encoded = msgspec.json.encode
"""The bytes of an answer."""

HEADERS = {"content-type": "application/json", "cache-control": "no-store"}
"""Headers of a JSON response, which must not be cached."""


def reply(body: object, status: int = 200) -> Response:
    """A JSON response with this object."""
    return Response(encoded(body), status, HEADERS)


def raw_value(raw: bytes | msgspec.Raw) -> Any:
    """JSON to be embedded in an object, byte for byte."""
    return msgspec.Raw(raw)


def session_object(session: Session) -> shapes.Session:
    """``system`` is the first of ``system_messages``: nearly always there is one at most."""
    details = session.details
    system = [raw_value(raw) for raw in items(details.system or b"[]")]
    return shapes.Session(
        id=session.id,
        user_id=session.user,
        messages=session.messages,
        tokens=session.tokens,
        system=system[0] if system else None,
        system_messages=system,
        summary=summary_object(session.summary) if session.summary else None,
        window_start=session.window_start,
        windows={profile: start.seq for profile, start in session.windows.items()},
        end=session.end,
        title=details.title,
        metadata=raw_value(details.metadata),
        ttl=details.ttl,
        created_at=session.created_at,
        last_active_at=session.last_active_at,
    )


def summary_object(summary: Summary) -> shapes.Summary:
    """The summary in force, as a part of its session."""
    return shapes.Summary(
        text=summary.text,
        version=summary.version,
        covers_until=summary.covers_until,
        edited=summary.edited,
        tokens=summary.tokens,
        created_at=summary.created_at,
    )


def summary_version(summary: Summary) -> shapes.SummaryVersion:
    """A version in a list; ``model`` is the one that wrote it."""
    inner = asdict(summary_object(summary))
    return shapes.SummaryVersion(**inner, model=summary.model)


def message_object(message: Message) -> messages.Message:
    return recorded_object(message.seq, message.card, message.state, message.wire)


def line_object(line: StoredMessage) -> messages.Message:
    return recorded_object(line.position.seq, line.card, line.state, line.original)


def recorded_object(seq: int, card: Card, state: State, wire: bytes) -> messages.Message:
    return messages.Message(
        id=card.id,
        seq=seq,
        exchange_id=card.exchange,
        message=raw_value(wire),
        tokens=card.tokens,
        state=state,
        origin=card.origin,
        incomplete=card.incomplete,
        created_at=card.created_at,
    )


def exchange_object(session: str, exchange: Exchange, ids: Sequence[str]) -> messages.Exchange:
    return messages.Exchange(
        id=exchange.id,
        model=exchange.model,
        profile=exchange.profile,
        status=exchange.status,
        incomplete=exchange.incomplete,
        finish_reason=exchange.finish_reason,
        usage=raw_value(exchange.usage) if exchange.usage is not None else None,
        memory=memory_object(session, exchange.memory),
        message_ids=list(ids),
        follows=exchange.follows,
        created_at=exchange.created_at,
    )


def memory_object(session: str, injection: Injection) -> messages.MemoryEffect:
    """What memory did for an exchange: what it injected, and what was evicted."""
    return messages.MemoryEffect(
        status=cast(Status, injection.status),
        reason=injection.reason,
        messages=injection.messages,
        tokens=injection.tokens,
        recalled=[recalled_object(one) for one in injection.all_recalled()],
        tools=raw_value(injection.tools),
        evicted=evicted_object(injection),
        duration_ms=injection.duration_ms,
        **prompt_fields(session, injection),
    )


def evicted_object(injection: Injection) -> messages.Evicted:
    return messages.Evicted(
        messages=injection.evicted_messages,
        tokens=injection.evicted_tokens,
        reason=cast(Reason | None, injection.evicted_reason),
    )


def prompt_fields(session: str, injection: Injection) -> dict[str, Any]:
    """Fields for the contents of a prompt: its pieces, and the injected tokens by kind."""
    trace = readable_trace(injection)
    pieces = pieces_of(trace, injection.all_recalled()) if trace else []
    return {
        "breakdown": _breakdown(injection.tokens, trace) if trace else None,
        "shown": [piece_object(session, piece) for piece in pieces],
        "shown_cut": trace.unlisted if trace else 0,
        "resent": [messages.Stretch(*stretch) for stretch in trace.resent] if trace else [],
        "rewriting": (trace.rewriting or UNSET) if trace else UNSET,
    }


def _breakdown(tokens: int, trace: PromptTrace) -> messages.Breakdown:
    """The injected tokens by kind; those of a block's delimiters count to its kind."""
    beside = trace.system_tokens + trace.summary_tokens + trace.learned_tokens + trace.recall_tokens
    return messages.Breakdown(
        system=trace.system_tokens,
        summary=trace.summary_tokens,
        messages=tokens - beside,
        known=trace.learned_tokens,
        recalled=trace.recall_tokens,
    )


def piece_object(session: str, piece: TracePiece) -> messages.Shown:
    """A piece of a prompt by its id; messages are those of ``session``."""
    is_own = piece.kind == "message"
    return messages.Shown(
        kind=piece.kind,
        id=piece.id,
        session_id=session if is_own else piece.session,
        tokens=piece.tokens,
        score=UNSET if piece.score is None else piece.score,
        version=UNSET if piece.version is None else piece.version,
    )


def context_object(session: str, preview: PreviewResult) -> messages.Context:
    """A preview; what memory would do is described as in an exchange."""
    injection = preview.injection
    return messages.Context(
        messages=[raw_value(raw) for raw in preview.messages],
        tokens=preview.tokens,
        injected=messages.Injected(
            messages=injection.messages, tokens=injection.tokens, recalled=preview.count
        ),
        evicted=evicted_object(injection),
        recalled=[passage_object(hit) for hit in preview.recalled],
        known=[known_object(block) for block in preview.known],
        summary=preview.summary,
        rewritten=preview.rewritten or UNSET,
        **prompt_fields(session, injection),
    )


def known_object(block: Block) -> messages.Known:
    """The learned memory of one kind as it stands in the prompt, with the ids of the memories."""
    return messages.Known(
        kind=block.kind,
        text=block.lines,
        tokens=block.tokens,
        memory_ids=[source.message for source in block.sources if source.message],
    )


def passage_object(hit: RecallHit) -> messages.Passage:
    return messages.Passage(
        id=hit.id,
        kind=hit.kind,
        text=hit.text,
        score=hit.score,
        parts=hit.parts,
        tokens=hit.tokens,
        role=hit.role,
        message_id=hit.message,
        session_id=hit.session,
        created_at=hit.created_at,
    )


def source_object(source: Source) -> people.Source:
    """The message that something was learned from."""
    return people.Source(
        session_id=source.session,
        message_id=source.message,
        exchange_id=source.exchange,
        created_at=source.at,
    )


MESSAGE_KINDS = get_args(Kind)
"""Kinds of recalled pieces that are messages; all others were learned."""


def recalled_object(recalled: Recalled) -> messages.Recalled:
    """A recalled message or memory by its id, without its text, which may be deleted later."""
    is_message = recalled.kind in MESSAGE_KINDS
    return messages.Recalled(
        kind=recalled.kind,
        score=recalled.score,
        parts=recalled.parts,
        tokens=recalled.tokens,
        message_id=recalled.message if is_message else None,
        session_id=recalled.session if is_message else None,
        memory_id=None if is_message else recalled.message or None,
    )
