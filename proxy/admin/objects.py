"""The JSON objects of the memory API.  Pure: domain values in, plain values out.

Messages are put in as they are stored, byte for byte.  Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from proxy.admin.parts import Preview
from proxy.chat.jsontext import items
from proxy.learning.known import Block
from proxy.learning.source import Source
from proxy.memory.archive import Line, Message, Session
from proxy.memory.model import Card, Exchange, Injection, Recalled, State
from proxy.memory.shown import Piece, Shown, pieces_of, shown_in
from proxy.memory.summary import Summary
from proxy.recall.found import Found

Object = dict[str, object]


encoded = msgspec.json.encode
"""The bytes of an answer."""


def reply(body: object, status: int = 200) -> Response:
    """A JSON answer that nobody may cache."""
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return Response(encoded(body), status, headers)


def listed(data: Sequence[Object], after: str | None = None) -> Object:
    """A part of a list; ``next`` is the cursor of the next part."""
    return {"object": "list", "data": data, "has_more": after is not None, "next": after}


def session_object(session: Session) -> Object:
    """``system`` is the first of ``system_messages``: nearly always there is one at most."""
    details = session.details
    system = [msgspec.Raw(raw) for raw in items(details.system or b"[]")]
    return {
        "object": "session",
        "id": session.id,
        "user_id": session.user,
        "messages": session.messages,
        "tokens": session.tokens,
        "system": system[0] if system else None,
        "system_messages": system,
        "summary": summary_object(session.summary) if session.summary else None,
        "window_start": session.window_start,
        "windows": {profile: start.seq for profile, start in session.windows.items()},
        "end": session.end,
        "title": details.title,
        "metadata": msgspec.Raw(details.metadata),
        "ttl": details.ttl,
        "created_at": session.created_at,
        "last_active_at": session.last_active_at,
    }


def summary_object(summary: Summary) -> Object:
    """The summary in force, as a part of its session."""
    return {
        "text": summary.text,
        "version": summary.version,
        "covers_until": summary.covers_until,
        "edited": summary.edited,
        "tokens": summary.tokens,
        "created_at": summary.created_at,
    }


def summary_version(summary: Summary) -> Object:
    """One of a list; ``model`` wrote it."""
    return {"object": "session.summary", **summary_object(summary), "model": summary.model}


def message_object(message: Message) -> Object:
    return recorded_object(message.seq, message.card, message.state, message.wire)


def line_object(line: Line) -> Object:
    wire = line.body if line.wire is None else line.wire
    return recorded_object(line.position.seq, line.card, line.state, wire)


def recorded_object(seq: int, card: Card, state: State, wire: bytes) -> Object:
    return {
        "object": "session.message",
        "id": card.id,
        "seq": seq,
        "exchange_id": card.exchange,
        "message": msgspec.Raw(wire),
        "tokens": card.tokens,
        "state": state,
        "origin": card.origin,
        "incomplete": card.incomplete,
        "created_at": card.created_at,
    }


def exchange_object(session: str, exchange: Exchange, messages: Sequence[str]) -> Object:
    """An exchange of a session, with the ids of its messages."""
    return {
        "object": "session.exchange",
        "id": exchange.id,
        "model": exchange.model,
        "profile": exchange.profile,
        "status": exchange.status,
        "incomplete": exchange.incomplete,
        "finish_reason": exchange.finish_reason,
        "usage": msgspec.Raw(exchange.usage) if exchange.usage is not None else None,
        "memory": memory_object(session, exchange.memory),
        "message_ids": messages,
        "follows": exchange.follows,
        "created_at": exchange.created_at,
    }


def memory_object(session: str, did: Injection) -> Object:
    """What memory did for an exchange of a session, and what it put into the prompt."""
    return {
        "status": did.status,
        "reason": did.reason,
        "messages": did.messages,
        "tokens": did.tokens,
        "recalled": [recalled_object(one) for one in did.all_recalled()],
        "tools": did.tools,
        "evicted": evicted_object(did),
        "duration_ms": did.duration_ms,
        **shown_objects(session, did),
    }


def evicted_object(did: Injection) -> Object:
    return {
        "messages": did.evicted_messages,
        "tokens": did.evicted_tokens,
        "reason": did.evicted_reason,
    }


def shown_objects(session: str, did: Injection) -> Object:
    """What stands in a prompt, and what the injected tokens were spent on."""
    shown = shown_in(did)
    pieces = pieces_of(shown, did.all_recalled()) if shown else []
    return {
        "breakdown": _breakdown(did.tokens, shown) if shown else None,
        "shown": [piece_object(session, piece) for piece in pieces],
        "shown_cut": shown.cut if shown else 0,
        "resent": [stretch_object(*stretch) for stretch in shown.resent] if shown else [],
    }


def stretch_object(first: int, last: int) -> Object:
    return {"first": first, "last": last}


def _breakdown(tokens: int, shown: Shown) -> Object:
    """The injected tokens by what they were spent on; the frames of blocks belong to these."""
    beside = shown.system + shown.summary + shown.known + shown.recall
    return {
        "system": shown.system,
        "summary": shown.summary,
        "messages": tokens - beside,
        "known": shown.known,
        "recalled": shown.recall,
    }


def piece_object(session: str, piece: Piece) -> Object:
    """Something in a prompt, by its id; a message is of this session if it says no other."""
    own = piece.kind == "message"
    found: Object = {
        "kind": piece.kind,
        "id": piece.id,
        "session_id": session if own else piece.session,
        "tokens": piece.tokens,
    }
    if piece.score is not None:
        found["score"] = piece.score
    if piece.version is not None:
        found["version"] = piece.version
    return found


def context_object(session: str, preview: Preview) -> Object:
    """A preview in a session; what memory would do is said as in an exchange."""
    did = preview.did
    return {
        "object": "context",
        "messages": [msgspec.Raw(raw) for raw in preview.messages],
        "tokens": preview.tokens,
        "injected": {
            "messages": did.messages,
            "tokens": did.tokens,
            "recalled": preview.count,
        },
        "evicted": evicted_object(did),
        "recalled": [found_object(found) for found in preview.recalled],
        "known": [known_object(block) for block in preview.known],
        "summary": preview.summary,
        **shown_objects(session, did),
    }


def known_object(block: Block) -> Object:
    """What is known of a kind, as the prompt has it, and which memories it is from."""
    return {
        "kind": block.kind,
        "text": block.lines,
        "tokens": block.tokens,
        "memory_ids": [source.message for source in block.sources if source.message],
    }


def found_object(found: Found) -> Object:
    """A passage with its text."""
    return {
        "object": "memory",
        "id": found.id,
        "kind": found.kind,
        "text": found.text,
        "score": found.score,
        "parts": found.parts,
        "tokens": found.tokens,
        "role": found.role,
        "message_id": found.message,
        "session_id": found.session,
        "created_at": found.created_at,
    }


def source_object(source: Source) -> Object:
    """Where something learned is from."""
    return {
        "session_id": source.session,
        "message_id": source.message,
        "exchange_id": source.exchange,
        "created_at": source.at,
    }


SAID = ("passage", "instruction", "preference")
"""What is recalled as it was said in a message; all else was learned."""


def recalled_object(recalled: Recalled) -> Object:
    """A passage without its text: that is in history, as long as it is there; or what is known."""
    said = recalled.kind in SAID
    return {
        "kind": recalled.kind,
        "score": recalled.score,
        "parts": recalled.parts,
        "tokens": recalled.tokens,
        "message_id": recalled.message if said else None,
        "session_id": recalled.session if said else None,
        "memory_id": None if said else recalled.message or None,
    }
