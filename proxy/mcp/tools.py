"""The MCP tools: arguments, action and answer of each.  Knows operations, and no protocol."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, UnsetType
from msgspec.structs import replace

from proxy.chat.jsontext import value, well_formed
from proxy.chat.message import read_message
from proxy.chat.tools.display import DisplayedCall, displayed_calls
from proxy.errors import session_not_found
from proxy.learning.facts.fact import USER, one_line
from proxy.mcp import shapes
from proxy.mcp.shapes import MAX_ARGUMENTS, MAX_CALLS, Schema, clipped, schema_of
from proxy.mcp.visit import Visit
from proxy.memory_api.body import read
from proxy.memory_api.conversations.messages import list_messages
from proxy.memory_api.conversations.sessions import get_session, list_sessions
from proxy.memory_api.fields import MAX_LIMIT, invalid
from proxy.memory_api.people.saving import save_fact
from proxy.memory_api.people.users import delete_memory, search_memories

Run = Callable[[Visit, Any], Awaitable[Struct]]


class Tool(msgspec.Struct, frozen=True):
    """A tool.  ``reads``: it changes nothing; ``destroys``: its action is irreversible.
    ``description`` is for a model."""

    name: str
    title: str
    description: str
    takes: type[Struct]
    answers: type[Struct]
    run: Run
    reads: bool = True
    destroys: bool = False

    @property
    def input_schema(self) -> Schema:
        return schema_of(self.takes)

    @property
    def output_schema(self) -> Schema:
        return schema_of(self.answers)

    def is_open(self, visit: Visit) -> bool:
        """Whether the connection's X-Memory-Mode allows its use."""
        return visit.reads if self.reads else visit.writes

    async def use(self, visit: Visit, arguments: Mapping[str, object]) -> Struct:
        """Run it; returns its answer.  Raises ProxyError, and what operations raise."""
        if not self.is_open(visit):
            raise visit.refusal("read" if self.reads else "change")
        return await self.run(visit, await _read(self.takes, arguments))


async def _read(kind: type[Struct], arguments: Mapping[str, object]) -> Struct:
    """Validate arguments; null, which models often send, counts as missing."""
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        body = msgspec.json.encode(given)
    except (ValueError, RecursionError):  # lone surrogates, for example
        raise invalid("The arguments are not text that can be kept.") from None
    return await read(kind, body)


async def search(visit: Visit, asked: shapes.SearchMemories) -> Struct:
    found = await visit.ask(
        search_memories,
        shapes.FoundMemories,
        path={"user": visit.user(_or_none(asked.user))},
        body={"query": asked.query, "limit": asked.limit},
    )
    found.data = [replace(each, text=clipped(each.text)) for each in found.data]
    return found


async def save(visit: Visit, asked: shapes.SaveMemory) -> Struct:
    """Save a fact; one with the same words stays unchanged, since agents repeat themselves."""
    said = {
        "text": one_line(asked.text),
        "about": one_line(_or_none(asked.about) or "") or USER,
        "afresh": not visit.reads,
    }
    path = {"user": visit.user(_or_none(asked.user))}
    return await visit.ask(save_fact, shapes.SavedMemory, path=path, body=said)


async def forget(visit: Visit, asked: shapes.ForgetMemory) -> Struct:
    path = {"user": visit.user(_or_none(asked.user)), "memory": asked.memory_id}
    return await visit.ask(delete_memory, shapes.ForgottenMemory, path=path)


async def sessions(visit: Visit, asked: shapes.ListSessions) -> shapes.ListedSessions:
    query = {
        "user": visit.of_user(_or_none(asked.user)),
        "query": _or_none(asked.query),
        "limit": asked.limit,
        "after": _or_none(asked.after),
        "preview": "true",
    }
    return await visit.ask(list_sessions, shapes.ListedSessions, query=query)


async def session(visit: Visit, asked: shapes.ReadSession) -> shapes.SessionPart:
    path = {"session": asked.session_id}
    found = await visit.ask(get_session, shapes.SeenSession, path=path)
    if found.user_id != (visit.identity.user or found.user_id):
        raise session_not_found()
    if isinstance(asked.after, UnsetType):
        told, after = await _end(visit, found, asked.limit), None
    else:
        told, after = await _part(visit, found, asked.limit, asked.after)
    return shapes.SessionPart(
        session_id=found.id, title=found.title, messages=found.messages, data=told, next=after
    )


async def _end(visit: Visit, found: shapes.SeenSession, limit: int) -> list[shapes.SessionMessage]:
    """The last messages.  Superseded messages have seqs too, so the range of seqs is doubled until
    there are enough messages in it."""
    span = limit
    while True:
        first = max(0, found.end - span)
        last = await _last(visit, found, limit, first)
        if len(last) >= min(limit, found.messages) or not first:
            return last
        span *= 2


async def _last(
    visit: Visit, found: shapes.SeenSession, limit: int, after: int
) -> list[shapes.SessionMessage]:
    """The last messages after a seq, read page by page: pages of long messages are short."""
    last: deque[shapes.SessionMessage] = deque(maxlen=limit)
    more: int | None = after
    while more is not None and more < found.end:
        told, more = await _part(visit, found, MAX_LIMIT, more)
        last.extend(told)
    return list(last)


async def _part(
    visit: Visit, found: shapes.SeenSession, limit: int, after: int
) -> tuple[list[shapes.SessionMessage], int | None]:
    """Messages after a seq, and the seq to continue from, None at the end."""
    query = {"limit": limit, "after": after}
    part = await visit.ask(
        list_messages, shapes.SeenMessages, path={"session": found.id}, query=query
    )
    told = await asyncio.to_thread(_readable_messages, part)
    return told, int(part.next) if part.next else None


def _readable_messages(part: shapes.SeenMessages) -> list[shapes.SessionMessage]:
    """Messages as text; to be called in a thread, since they may be long."""
    return [_message(each) for each in part.data]


def _message(seen: shapes.SeenMessage) -> shapes.SessionMessage:
    raw = bytes(seen.message)
    message = read_message(raw, len(raw))
    text = well_formed(message.text) if message else ""
    made = list(displayed_calls(value(raw))) if message and message.calls else []
    told = shapes.SessionMessage(
        seq=seen.seq,
        role=message.role if message else "",
        text=clipped(text),
        created_at=seen.created_at,
        calls=[_call(each) for each in made[:MAX_CALLS]],
    )
    whole = [(each.name, each.arguments) for each in told.calls] == made
    return replace(told, cut=told.text != text or not whole)


def _call(made: DisplayedCall) -> shapes.SessionCall:
    arguments = clipped(made.arguments, MAX_ARGUMENTS)
    return shapes.SessionCall(name=clipped(made.name, MAX_ARGUMENTS), arguments=arguments)


def _or_none(value: str | UnsetType) -> str | None:
    return None if isinstance(value, UnsetType) else value


TOOLS = (
    Tool(
        "search_memories",
        "Search memories",
        "Search what is remembered of the user: facts, standing wishes, and what was said in"
        " earlier conversations, in this app or others. Use it before answering whenever something"
        " that the user told before may matter.",
        shapes.SearchMemories,
        shapes.FoundMemories,
        search,
    ),
    Tool(
        "save_memory",
        "Save a memory",
        "Remember a fact about the user for later conversations, in all apps. Use it when the user"
        " asks for something to be remembered, or tells what will matter for long. One fact for"
        " each call; no secrets. What tells an assistant what to do is quarantined: kept for a"
        " person to review, and not used.",
        shapes.SaveMemory,
        shapes.SavedMemory,
        save,
        reads=False,
    ),
    Tool(
        "forget_memory",
        "Forget a memory",
        "Forget a fact, a standing wish or an episode for good, by the id that search_memories"
        " answered. Use it when the user asks for it. What was said in a session (kind passage)"
        " stays in it and cannot be forgotten here.",
        shapes.ForgetMemory,
        shapes.ForgottenMemory,
        forget,
        reads=False,
        destroys=True,
    ),
    Tool(
        "list_sessions",
        "List sessions",
        "List recorded conversations, the newest first, with how each begins.",
        shapes.ListSessions,
        shapes.ListedSessions,
        sessions,
    ),
    Tool(
        "read_session",
        "Read a session",
        "Read a recorded conversation: its last messages, or those behind a place, with the calls"
        " of tools that they make. Long texts are cut.",
        shapes.ReadSession,
        shapes.SessionPart,
        session,
    ),
)

BY_NAME = {tool.name: tool for tool in TOOLS}
