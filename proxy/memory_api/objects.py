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
from proxy.learning.evidence import Source
from proxy.learning.prompt_cards import Block
from proxy.memory.archive import Message, Session, StoredMessage
from proxy.memory.model import Card, Exchange, Injection, Recalled, State, Status, Summary
from proxy.memory.prompt.compose import Reason
from proxy.memory.prompt.trace import PromptTrace, TracePiece, pieces_of, readable_trace
from proxy.memory_api.api import Preview
from proxy.memory_api.shapes import messages, people
from proxy.memory_api.shapes import sessions as shapes
from proxy.recall.results import Kind, RecallHit

Object = dict[str, object]


encoded = msgspec.json.encode
"""The bytes of an answer."""

HEADERS = {"content-type": "application/json", "cache-control": "no-store"}
"""Of a JSON answer, which nobody may cache."""


def reply(body: object, status: int = 200) -> Response:
    """A JSON answer with this object."""
    return Response(encoded(body), status, HEADERS)


def listed(data: Sequence[object], after: str | None = None) -> Object:
    """A part of a list; ``next`` is the cursor of the next part."""
    return {"object": "list", "data": data, "has_more": after is not None, "next": after}


def as_is(raw: bytes | msgspec.Raw) -> Any:
    """JSON in the place of the object that it is, byte for byte."""
    return msgspec.Raw(raw)


def session_object(session: Session) -> shapes.Session:
    """``system`` is the first of ``system_messages``: nearly always there is one at most."""
    details = session.details
    system = [as_is(raw) for raw in items(details.system or b"[]")]
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
        metadata=as_is(details.metadata),
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
    """One of a list; ``model`` wrote it."""
    inner = asdict(summary_object(summary))
    return shapes.SummaryVersion(**inner, model=summary.model)


def message_object(message: Message) -> messages.Message:
    return recorded_object(message.seq, message.card, message.state, message.wire)


def line_object(line: StoredMessage) -> messages.Message:
    wire = line.body if line.wire is None else line.wire
    return recorded_object(line.position.seq, line.card, line.state, wire)


def recorded_object(seq: int, card: Card, state: State, wire: bytes) -> messages.Message:
    return messages.Message(
        id=card.id,
        seq=seq,
        exchange_id=card.exchange,
        message=as_is(wire),
        tokens=card.tokens,
        state=state,
        origin=card.origin,
        incomplete=card.incomplete,
        created_at=card.created_at,
    )


def exchange_object(session: str, exchange: Exchange, ids: Sequence[str]) -> messages.Exchange:
    """An exchange of a session, with the ids of its messages."""
    return messages.Exchange(
        id=exchange.id,
        model=exchange.model,
        profile=exchange.profile,
        status=exchange.status,
        incomplete=exchange.incomplete,
        finish_reason=exchange.finish_reason,
        usage=as_is(exchange.usage) if exchange.usage is not None else None,
        memory=memory_object(session, exchange.memory),
        message_ids=list(ids),
        follows=exchange.follows,
        created_at=exchange.created_at,
    )


def memory_object(session: str, did: Injection) -> messages.Did:
    """What memory did for an exchange of a session, and what it put into the prompt."""
    return messages.Did(
        status=cast(Status, did.status),
        reason=did.reason,
        messages=did.messages,
        tokens=did.tokens,
        recalled=[recalled_object(one) for one in did.all_recalled()],
        tools=as_is(did.tools),
        evicted=evicted_object(did),
        duration_ms=did.duration_ms,
        **shown_objects(session, did),
    )


def evicted_object(did: Injection) -> messages.Evicted:
    return messages.Evicted(
        messages=did.evicted_messages,
        tokens=did.evicted_tokens,
        reason=cast(Reason | None, did.evicted_reason),
    )


def shown_objects(session: str, did: Injection) -> dict[str, Any]:
    """What stands in a prompt, and what the injected tokens were spent on."""
    shown = readable_trace(did)
    pieces = pieces_of(shown, did.all_recalled()) if shown else []
    return {
        "breakdown": _breakdown(did.tokens, shown) if shown else None,
        "shown": [piece_object(session, piece) for piece in pieces],
        "shown_cut": shown.cut if shown else 0,
        "resent": [messages.Stretch(*stretch) for stretch in shown.resent] if shown else [],
        "rewriting": (shown.rewriting or UNSET) if shown else UNSET,
    }


def _breakdown(tokens: int, shown: PromptTrace) -> messages.Breakdown:
    """The injected tokens by what they were spent on; the frames of blocks belong to these."""
    beside = shown.system + shown.summary + shown.known + shown.recall
    return messages.Breakdown(
        system=shown.system,
        summary=shown.summary,
        messages=tokens - beside,
        known=shown.known,
        recalled=shown.recall,
    )


def piece_object(session: str, piece: TracePiece) -> messages.Shown:
    """Something in a prompt, by its id; a message is of this session if it says no other."""
    own = piece.kind == "message"
    return messages.Shown(
        kind=piece.kind,
        id=piece.id,
        session_id=session if own else piece.session,
        tokens=piece.tokens,
        score=UNSET if piece.score is None else piece.score,
        version=UNSET if piece.version is None else piece.version,
    )


def context_object(session: str, preview: Preview) -> messages.Context:
    """A preview in a session; what memory would do is said as in an exchange."""
    injection = preview.injection
    return messages.Context(
        messages=[as_is(raw) for raw in preview.messages],
        tokens=preview.tokens,
        injected=messages.Injected(
            messages=injection.messages, tokens=injection.tokens, recalled=preview.count
        ),
        evicted=evicted_object(injection),
        recalled=[found_object(found) for found in preview.recalled],
        known=[known_object(block) for block in preview.known],
        summary=preview.summary,
        rewritten=preview.rewritten or UNSET,
        **shown_objects(session, injection),
    )


def known_object(block: Block) -> messages.Known:
    """What is known of a kind, as the prompt has it, and which memories it is from."""
    return messages.Known(
        kind=block.kind,
        text=block.lines,
        tokens=block.tokens,
        memory_ids=[source.message for source in block.sources if source.message],
    )


def found_object(found: RecallHit) -> messages.Passage:
    """A passage with its text."""
    return messages.Passage(
        id=found.id,
        kind=found.kind,
        text=found.text,
        score=found.score,
        parts=found.parts,
        tokens=found.tokens,
        role=found.role,
        message_id=found.message,
        session_id=found.session,
        created_at=found.created_at,
    )


def source_object(source: Source) -> people.Source:
    """Where something learned is from."""
    return people.Source(
        session_id=source.session,
        message_id=source.message,
        exchange_id=source.exchange,
        created_at=source.at,
    )


SAID = get_args(Kind)
"""What is recalled as it was said in a message; all else was learned."""


def recalled_object(recalled: Recalled) -> messages.Recalled:
    """A passage without its text: that is in history, as long as it is there; or what is known."""
    said = recalled.kind in SAID
    return messages.Recalled(
        kind=recalled.kind,
        score=recalled.score,
        parts=recalled.parts,
        tokens=recalled.tokens,
        message_id=recalled.message if said else None,
        session_id=recalled.session if said else None,
        memory_id=None if said else recalled.message or None,
    )
