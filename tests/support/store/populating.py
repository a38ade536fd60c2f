"""Memory as it is after months: many sessions, a long conversation, put straight into a store.

Everything is made from numbers: the same each time.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import time
import zlib
from collections.abc import Iterator
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from proxy.memory.archive import PlacedExchange, SessionArchive, StoredMessage
from proxy.memory.model import Injection, Recalled, SessionKey, Summary
from proxy.memory.prompt.trace import PromptTrace
from proxy.memory.store import Store
from proxy.portable.session_conversion import ImportOptions, to_session
from proxy.portable.source import Conversation, ImportedMessage
from tests.support.talk.filling import PEOPLE, TOPICS

AT_ONCE = 16
LONG = "the-long-one"
NEEDLE = "an unmistakable armadillo"
"""Said once, in the first hundred messages of the long conversation."""

WINDOW = 60
"""Messages that stood in each prompt of the long conversation."""

_WORDS = "a plan for the week, with all that was said about it before and what is left to do. "
_MINUTE = 60.0


async def populate(store: Store, tenant: str, sessions: int, now: float | None = None) -> None:
    """So many short sessions, named chat-00000 and on; the last is the newest, a minute ago."""
    last = time.time() if now is None else now
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            at = last - _MINUTE * (sessions - number)
            archived = await asyncio.to_thread(_short, number, at)
            assert await store.restore(SessionKey(tenant, archived.session.id), archived)

    await asyncio.gather(*(one(number) for number in range(sessions)))


def _short(number: int, at: float) -> SessionArchive:
    said = (
        _said("user", f"{TOPICS[number % len(TOPICS)]} ({number})", at - 5),
        _said("assistant", "Certainly. " * (1 + number % 30), at, 0),
    )
    title = f"Conversation number {number}" if number % 4 == 0 else None
    user = f"user-{number % PEOPLE}" if number % 3 else None
    return _session(f"chat-{number:05d}", said, title, user)


def long_conversation(
    messages: int, now: float | None = None, every: float = _MINUTE
) -> SessionArchive:
    """Of about so many messages: texts, calls with results, pictures, code and branches.  ``every``
    is in seconds, from one to the next.

    Every exchange says which ``WINDOW`` messages stood in its prompt; the last ones had the newest
    of three summaries in it too, and something that recall had found.
    """
    last = time.time() if now is None else now
    said = tuple(_talked(messages, last - messages * every, every))
    archived = _session(LONG, said, "A conversation of many months", "user-1")
    versions = _summaries(archived)
    recalled = _recalled(archived)
    exchanges = tuple(explained(archived, versions[0], WINDOW, recalled))
    start = archived.lines[-WINDOW].position
    session = replace(archived.session, summary=versions[0], windows={"": start})
    return replace(archived, session=session, exchanges=exchanges, summaries=versions)


def _session(
    id: str, said: tuple[ImportedMessage, ...], title: str | None = None, user: str | None = None
) -> SessionArchive:
    terms = ImportOptions(
        count=lambda raw: 1 + len(raw) // 4, now=time.time(), media=1 << 20, user=user, session=id
    )
    return to_session(Conversation(said, id=id, title=title), terms).archived


def _said(
    role: str, content: object, at: float, parent: int = -1, **more: object
) -> ImportedMessage:
    message = {"role": role, "content": content, **more}
    return ImportedMessage(json.dumps(message, ensure_ascii=False).encode(), at, parent)


def _talked(messages: int, began: float, every: float) -> Iterator[ImportedMessage]:
    """Turn by turn; every ninth calls a tool, every fourteenth was asked in another way before."""
    at, parent, turn = 0, -1, 0
    while at < messages:
        pieces = [*_abandoned(turn, began + at * every)] if turn % 14 == 5 else []
        for piece in pieces:
            yield replace(piece, parent=parent if piece.parent < 0 else at, active=False)
        at += len(pieces)
        base = at
        for n, piece in enumerate(_turn(turn, began + at * every)):
            yield replace(piece, parent=parent if n == 0 else base + n - 1)
            at += 1
        parent, turn = at - 1, turn + 1


def _abandoned(turn: int, at: float) -> tuple[ImportedMessage, ...]:
    return (
        _said("user", f"A first way to ask number {turn}", at),
        _said("assistant", f"A first answer to number {turn}. {_WORDS}", at, 0),
    )


def _turn(turn: int, at: float) -> Iterator[ImportedMessage]:
    yield _said("user", _question(turn), at)
    if turn % 9 == 4:
        yield from _called(turn, at)
    yield _said("assistant", _answer(turn), at + 20)


def _question(turn: int) -> object:
    text = f"Question number {turn}: {TOPICS[turn % len(TOPICS)]}"
    if turn == 30:
        return f"{text}, and {NEEDLE}"
    if turn % 25 != 7:
        return text
    picture = {"type": "image_url", "image_url": {"url": picture_of(turn)}}
    return [{"type": "text", "text": text}, picture]


def _answer(turn: int) -> str:
    text = f"Answer number {turn}: {_WORDS * (1 + turn * 7 % 12)}"
    return text + f"\n```python\nfor n in range({turn}):\n    print(n)\n```\n" * (turn % 10 == 3)


def _called(turn: int, at: float) -> Iterator[ImportedMessage]:
    arguments = json.dumps({"query": TOPICS[turn % len(TOPICS)], "limit": turn})
    function = {"name": "search_notes", "arguments": arguments}
    call = {"id": f"call_{turn}", "type": "function", "function": function}
    yield _said("assistant", None, at + 5, tool_calls=[call])
    found = json.dumps([{"note": n, "text": _WORDS} for n in range(turn % 6)])
    yield _said("tool", found, at + 10, tool_call_id=f"call_{turn}")


def picture_of(number: int) -> str:
    """A small PNG in one colour, as a data: URL."""
    size = 64
    colour = bytes((number * 37 % 256, number * 91 % 256, number * 53 % 256))
    rows = (b"\0" + colour * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    encoded = base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunks).decode()
    return f"data:image/png;base64,{encoded}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _summaries(archived: SessionArchive) -> tuple[Summary, ...]:
    """Three versions, newest first, the newest covering all but the last windows."""
    ends = [len(archived.lines) // 3, len(archived.lines) // 2, len(archived.lines) - 3 * WINDOW]
    made = [_summary(archived.lines, version, end) for version, end in enumerate(ends, 1)]
    return tuple(reversed(made))


def _summary(lines: tuple[StoredMessage, ...], version: int, end: int) -> Summary:
    """Of what stands before the first turn that begins at ``end`` or behind it."""
    begins = next(n for n in range(end, len(lines)) if _begins_turn(lines[n]))
    covered = [line for line in lines[:begins] if line.state == "active"]
    return Summary(
        text=f"They spoke of {begins} things. {_WORDS * 6}",
        version=version,
        until=lines[begins].position,
        seen=lines[begins - 1].position.seq,
        covers_until=covered[-1].position.seq,
        tokens=160,
        model="small",
        created_at=lines[begins].card.created_at,
    )


def _begins_turn(line: StoredMessage) -> bool:
    return line.state == "active" and line.position.turn == line.position.seq


def explained(
    archived: SessionArchive, summary: Summary, window: int, recalled: tuple[Recalled, ...]
) -> Iterator[PlacedExchange]:
    """The exchanges, each with what stood in its prompt: the newest messages before it, and, behind
    what the summary covers, that and what was recalled."""
    active = [line for line in archived.lines if line.state == "active"]
    tokens = [0, *accumulate(line.card.tokens for line in active)]
    before = 0
    for placed in archived.exchanges:
        while before < len(active) and active[before].position.seq < placed.first:
            before += 1
        evicted = max(0, before - window)
        stored = active[evicted:before]
        covered = placed.first > summary.seen
        found = recalled if covered else ()
        shown = PromptTrace(
            summary_tokens=summary.tokens if covered else 0,
            summary_version=summary.version if covered else 0,
            recall_tokens=sum(one.tokens for one in found),
            messages_before_memories=len(stored),
            order=tuple(range(len(found))),
        ).limited([line.card for line in stored], 500)
        did = Injection(
            status="applied" if stored else "empty",
            messages=len(stored),
            tokens=tokens[before] - tokens[evicted] + shown.summary_tokens + shown.recall_tokens,
            evicted_messages=evicted,
            evicted_tokens=tokens[evicted],
            evicted_reason=("summary" if covered else "window") if evicted else None,
            duration_ms=0.8 + 0.4 * (placed.first % 7),
            recalled=msgspec.Raw(msgspec.json.encode(found)),
            trace=msgspec.Raw(msgspec.json.encode(shown)),
        )
        usage = {"prompt_tokens": did.tokens + 20, "completion_tokens": 200}
        usage["total_tokens"] = sum(usage.values())
        exchange = replace(
            placed.exchange,
            memory=did,
            model="scripted-1",
            finish_reason="stop",
            usage=json.dumps(usage).encode(),
        )
        yield placed._replace(exchange=exchange)


def _recalled(archived: SessionArchive) -> tuple[Recalled, ...]:
    """Two messages of long ago."""
    active = [line for line in archived.lines if line.state == "active"]
    return (passage(active[10], LONG, 0.82), passage(active[101], LONG, 0.61))


def passage(line: StoredMessage, session: str, score: float) -> Recalled:
    """A message that recall has found."""
    return Recalled(
        kind="passage",
        message=line.card.id,
        session=session,
        seq=line.position.seq,
        tokens=line.card.tokens,
        score=score,
        parts={"lexical": score - 0.1, "time": 0.1},
    )
