"""What the proxy keeps for an upstream without state: over restarts, workers, and many turns."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import cycle
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from proxy.stores.redis.base import PARTS
from tests.support.processes.redis import Server, standalone
from tests.support.processes.worker import Served, served
from tests.support.rig import KEY, rig
from tests.support.store.inside import AUTHORIZATION
from tests.support.talk.chatting import chatting_with_each
from tests.support.talk.keeping import PROFILE, Keeping, asks
from tests.support.talk.words import names
from tests.support.upstream.items import as_messages
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.upstream.stateless import StatelessResponder

TURNS = 60


def client_of(program: Served, **headers: str) -> AsyncOpenAI:
    """One that has a connection of its own, to any worker."""
    sent = {"connection": "close", **headers}
    return AsyncOpenAI(
        base_url=f"{program.url}/v1", api_key=KEY, default_headers=sent, max_retries=0
    )


async def restart(program: Served) -> None:
    program.kill()
    await asyncio.to_thread(program.bury)
    await asyncio.to_thread(program.start)


def sent(up: ScriptedUpstream) -> str:
    listed = up.requests[-1].json["input"]
    said = listed if isinstance(listed, list) else [{"role": "user", "content": listed}]
    return names(as_messages(said))


@pytest.mark.parametrize(
    ("store", "session"), [("sqlite", "a-session-of-the-clients"), ("redis", None)]
)
async def test_a_kill_between_turns_is_not_noticed(
    up: ScriptedUpstream, server: Server, tmp_path: Path, store: str, session: str | None
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db" if store == "sqlite" else server.url
    upstream = StatelessResponder()
    up.always(upstream)
    on = {"memory__emulate_response_state": "true"}
    with served(tmp_path / "proxy", up.url, url, 1, **on) as program:
        headers = {"X-Session-Id": session} if session else {}
        async with client_of(program, **headers) as client:
            conversation = (await client.conversations.create(metadata={"a": "b"})).id
            first = await asks(client, "u1", conversation=conversation)
        await restart(program)
        async with client_of(program) as client:
            assert (await client.responses.retrieve(first.id)) == first
            assert (await client.conversations.retrieve(conversation)).metadata == {"a": "b"}
            second = await asks(client, "u2", first)
        assert sent(up) == "u1 reply 1: u1 u2"
        await restart(program)
        async with client_of(program) as client:
            await client.responses.delete(second.id)
            await asks(client, "u3", conversation=conversation)
        assert sent(up) == "u1 reply 1: u1 u2 reply 2: u2 u3"
    assert not upstream.refused


async def test_workers_know_what_the_others_keep(up: ScriptedUpstream, tmp_path: Path) -> None:
    upstream = StatelessResponder()
    up.always(upstream)
    url = f"sqlite:///{tmp_path}/memory.db"
    with served(tmp_path / "proxy", up.url, url, memory__emulate_response_state="true") as program:
        async with chatting_with_each(program) as chats:
            asked: dict[str, str] = {"model": "scripted-1"}
            for n, chat in zip(range(20), cycle(chats)):
                asked["input"] = f"u{n}"
                answer = await chat.client.post(
                    "/v1/responses", json=asked, headers={"authorization": AUTHORIZATION}
                )
                asked["previous_response_id"] = answer.json()["id"]
    assert [word for word in sent(up).split() if word.startswith("u")][-1] == "u19"
    assert len(json.loads(up.requests[-1].body)["input"]) == 39


INDEX = {"owners", "marks", "passages", "postings", "vectors", "waste"}
"""What recall has of a conversation beside it, in blocks of many passages."""


def sqlite_size(path: Path) -> tuple[int, bytes]:
    """Bytes in all rows of a file but the index, and those of the messages."""
    with closing(sqlite3.connect(path)) as file:
        size = 0
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for table in {name for (name,) in tables} - INDEX:
            columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
            total = " + ".join(f"coalesce(sum(length({name})), 0)" for name in columns)
            size += file.execute(f"SELECT {total} FROM {table}").fetchone()[0]
        bodies = file.execute("SELECT body, wire FROM messages").fetchall()
    return size, b"".join(part or b"" for row in bodies for part in row)


def redis_size(server: Server) -> tuple[int, bytes]:
    """The same; the values of a session's keys."""
    with server.client() as asked:
        keys = [key for key in asked.keys("*") if key.rpartition(b":")[2] in PARTS]
        hashes = [asked.hgetall(key) for key in keys if asked.type(key) == b"hash"]
        others = [asked.dump(key) for key in keys if asked.type(key) != b"hash"]
    texts = [part for each in hashes for pair in each.items() for part in pair]
    return sum(map(len, [*others, *texts])), b"".join(texts)


@pytest.mark.parametrize("store", ["sqlite", "redis"])
@pytest.mark.parametrize("by", ["response", "conversation"])
async def test_each_item_is_stored_once_and_a_turn_costs_what_a_turn_costs(
    tmp_path: Path, store: str, by: str
) -> None:
    with standalone() as server:
        url = f"sqlite:///{tmp_path}/memory.db" if store == "sqlite" else server.url
        size: Callable[[], tuple[int, bytes]] = (
            (lambda: sqlite_size(tmp_path / "memory.db"))
            if store == "sqlite"
            else (lambda: redis_size(server))
        )
        # What explains a prompt, and what finds passages, have bounds of their own.
        kept = {"emulate_response_state": True, "recall": {"enabled": False}, "why": 0}
        async with rig(tmp_path, store__url=url, profiles={PROFILE: kept}) as one:
            sizes, stored = await grown(Keeping(one), by, size)
    first, second = sizes[40] - sizes[20], sizes[60] - sizes[40]
    assert abs(second - first) < first / 20, sizes
    for turn in range(TURNS):
        # The question, and the answer that repeats it, as each of the two APIs has it.
        assert stored.count(question(turn).encode()) == 3


def question(turn: int) -> str:
    """Of the same length each time."""
    return f"question-{turn:03}-{turn * 7919:032}"


async def grown(
    keeping: Keeping, by: str, size: Callable[[], tuple[int, bytes]]
) -> tuple[dict[int, int], bytes]:
    """The size of the store after so many turns, and what is in it at the end."""
    sizes: dict[int, int] = {}
    async with keeping.client() as client:
        begun = (await client.conversations.create()).id if by == "conversation" else None
        previous = None
        for turn in range(TURNS):
            named = {"conversation": begun} if begun else {}
            answered = await asks(client, question(turn), previous, **named)
            previous = None if begun else answered
            if (turn + 1) % 20 == 0:
                sizes[turn + 1] = (await asyncio.to_thread(size))[0]
    return sizes, (await asyncio.to_thread(size))[1]
