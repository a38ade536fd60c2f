"""A tenant's belongings of every kind, and requests that ask for them by their ids.

The requests are made from the operations of the memory API.  An operation with a parameter or a
body that nothing is known of here cannot be asked: ``requests_for`` says what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import httpx

from proxy.learning.instructions.document import Proposal
from proxy.learning.instructions.store import InstructionStore
from proxy.mcp.tools import TOOLS as TOOLS_OFFERED
from proxy.memory.items import ItemOwner, Items
from proxy.memory_api.openapi.operation import Operation
from proxy.memory_api.operations import OPERATIONS
from tests.support.jsonrpc import calling, message
from tests.support.memory_api import said

SESSION, USER, APPLICATION = "s", "kai", "support"
ROOT = "/memory/v1"
ONE = f"{ROOT}/sessions/{SESSION}"
PERSON = f"{ROOT}/users/{USER}"
NOTES = ["notes", "own"]
MEMORY_KEY, FORK_KEY, MESSAGES_KEY = "key-of-a-memory", "key-of-a-fork", "key-of-messages"

LAST = ("deleteItem", "deleteMemory", "deleteMessage", "deleteSession", "deleteUser")
"""What ends most of the others, in this order."""

MOVING = ("getStats", "listTenants")
"""Operations whose answers go with the clock, or with what others do."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One, to be sent with anybody's key."""

    operation: Operation
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    def __str__(self) -> str:
        told = [self.operation.id, self.operation.method, self.path]
        parts = (self.query, self.headers, self.body)
        return " ".join([*told, *(str(part) for part in parts if part)])

    async def send(self, client: httpx.AsyncClient, **query: str) -> httpx.Response:
        content = self.body if isinstance(self.body, bytes) else None
        return await client.request(
            self.operation.method,
            self.path,
            params={**self.query, **query},
            headers=dict(self.headers),
            content=content,
            json=self.body if content is None else None,
        )


@dataclass
class Belongings:
    """What somebody has: ``ids`` by the names of parameters in paths, ``cursors`` and ``tags`` by
    path."""

    client: httpx.AsyncClient
    tenant: str
    marker: str
    ids: dict[str, str] = field(default_factory=dict)
    cursors: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Json:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.client.request(method, path, json=body, headers=names)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        found: Json = answer.json()
        return found

    def known(self) -> dict[str, str]:
        return {"session": SESSION, "user": USER, "application": APPLICATION, **self.ids}

    async def export(self) -> bytes:
        """Everything, without the first line, which has the time."""
        answer = await self.client.get(f"{ROOT}/export")
        assert answer.status_code == 200
        return answer.content.partition(b"\n")[2]

    async def answers(self) -> dict[str, bytes]:
        """What all operations that only read answer the owner."""
        asked = [
            request
            for operation in OPERATIONS
            if operation.tagged and operation.id not in MOVING
            for request in self.requests(operation)[:1]
        ]
        return {each.path: (await each.send(self.client)).content for each in asked}

    def requests(self, operation: Operation) -> list[Request]:
        return list(requests_for(operation, self))


async def owning(client: httpx.AsyncClient, tenant: str, marker: str, items: Items) -> Belongings:
    """Somebody with something of every kind, all of it with ``marker`` in it."""
    mine = Belongings(client, tenant, marker)
    await _talk(mine)
    await _learn(mine)
    await _instruct(mine, items)
    for key in ("n", "o"):
        note = {"namespace": NOTES, "key": key, "value": {"note": marker}}
        await mine.call("PUT", f"{ROOT}/store/items", note)
    for operation in OPERATIONS:
        if operation.tagged and operation.id not in MOVING:
            await _look(mine, operation)
    return mine


async def _talk(mine: Belongings) -> None:
    text = f"about {mine.marker}"
    talk = [said("system", text)]
    for turn in range(3):
        talk += [said("user", f"{turn} {text}"), said("assistant", f"{turn}: {text}")]
    body = {"user": USER, "messages": talk}
    sent = await mine.call("POST", f"{ONE}/messages", body, idempotency_key=MESSAGES_KEY)
    answer = sent["data"][1]
    mine.ids |= {"message": answer["id"], "exchange": answer["exchange_id"]}
    change = {"title": text, "metadata": {"m": text}, "summary": {"text": text}}
    await mine.call("PATCH", ONE, change)
    await mine.call("POST", f"{ONE}/rewind", {"turns": 1})
    praise = {"score": 1, "comment": text}
    await mine.call("POST", f"{ONE}/messages/{answer['id']}/feedback", praise)
    fork = {"id": f"{SESSION}-2", "title": text}
    await mine.call("POST", f"{ONE}/fork", fork, idempotency_key=FORK_KEY)
    other = {"user": "eve", "messages": [said("user", text)]}
    await mine.call("POST", f"{ROOT}/sessions/of-eve/messages", other)


async def _learn(mine: Belongings) -> None:
    text = f"Likes {mine.marker}."
    fact = await mine.call("POST", f"{PERSON}/memories", {"text": text}, idempotency_key=MEMORY_KEY)
    mine.ids["memory"] = fact["id"]
    await mine.call("POST", f"{PERSON}/memories", {"text": f"Still likes {mine.marker}."})
    for number in range(2):
        await mine.call("PATCH", f"{PERSON}/profile", {"likes": f"{mine.marker} {number}"})


async def _instruct(mine: Belongings, items: Items) -> None:
    path = f"{ROOT}/instructions/{APPLICATION}"
    for number in range(2):
        await mine.call("PUT", path, {"text": f"{mine.marker} {number}"})
    item_owner = ItemOwner(mine.tenant)
    instructions = InstructionStore(items, len, time.time)
    mine.ids["proposal"] = f"of-{mine.marker}"
    for id in (mine.ids["proposal"], f"z-{mine.marker}"):
        proposal = Proposal(id=id, text=mine.marker, why=mine.marker, base=2, feedback=1)
        changes = await instructions.propose_changes(item_owner, APPLICATION, proposal)
        assert await items.change_items(item_owner, changes)


async def _look(mine: Belongings, operation: Operation) -> None:
    """Remember the tag of a resource, and of a list the cursor of its second part."""
    request = mine.requests(operation)[0]
    answer = await request.send(mine.client)
    if answer.status_code == 200:
        mine.tags[request.path] = answer.headers["etag"]
    if any(each.name == "after" for each in operation.parameters):
        short = await replace(request, query={**request.query, "limit": 1}).send(mine.client)
        if short.json().get("next"):
            mine.cursors[request.path] = short.json()["next"]


def ordered(operations: Sequence[Operation]) -> list[Operation]:
    """With what deletes at the end."""
    return sorted(operations, key=lambda x: LAST.index(x.id) + 1 if x.id in LAST else 0)


def requests_for(operation: Operation, owner: Belongings) -> Iterator[Request]:
    """Requests with an owner's ids: plain, with a cursor, with conditions, with a key of theirs."""
    path = operation.path
    for name, value in owner.known().items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    if "{" in path:
        raise KeyError(f"{operation.id}: {path} has ids that are not among Belongings.ids here")
    query = _query(operation)
    if operation.body and operation.id not in BODIES:
        raise KeyError(f"{operation.id}: what it is sent is not in BODIES here")
    for body in BODIES[operation.id](owner) if operation.body else [None]:
        request = Request(operation, path, query, body=body)
        yield request
        if operation.idempotent:
            for key in (MEMORY_KEY, FORK_KEY, MESSAGES_KEY):
                yield replace(request, headers={"idempotency-key": key})
        if (operation.tagged or operation.conditional) and path in owner.tags:
            yield replace(request, headers={"if-match": owner.tags[path]})
            yield replace(request, headers={"if-none-match": owner.tags[path]})
        if path in owner.cursors and operation.reads:
            yield replace(request, query={**query, "after": owner.cursors[path]})


def _query(operation: Operation) -> Json:
    names = [each.name for each in operation.parameters if each.place == "query"]
    found = {name: QUERIES.get((operation.id, name), QUERIES.get(("", name))) for name in names}
    unknown = [name for name in names if not {(operation.id, name), ("", name)} & set(QUERIES)]
    if unknown:
        raise KeyError(f"{operation.id}: {unknown} are not in QUERIES here")
    return {name: value for name, value in found.items() if value is not None}


QUERIES: dict[tuple[str, str], Any] = {
    ("", "limit"): 1000,
    ("", "after"): None,
    ("", "user"): USER,
    ("exportAll", "user"): None,
    ("", "dry_run"): None,
    ("", "profile"): None,
    ("", "query"): None,
    ("", "preview"): "true",
    ("listMessages", "state"): "active,superseded",
    ("listMemories", "state"): "current,expired,superseded,quarantined",
    ("", "kind"): None,
    ("", "stale_days"): None,
    ("", "days"): None,
    ("", "bucket"): None,
    ("", "from"): None,
    ("", "to"): None,
    ("", "namespace"): NOTES,
    ("", "key"): "n",
    ("", "format"): None,
    ("", "session"): SESSION,
    ("", "conflict"): None,
}
"""What is asked for by the names of parameters, None for nothing."""

HELLO = [{"role": "user", "content": "What do I like?"}]

BODIES: dict[str, Any] = {
    "updateSession": lambda of: [{"title": "mine now"}, {"summary": None}, {"system": None}],
    "forkSession": lambda of: [
        {"id": SESSION},
        {"id": "stolen"},
        {"id": "stolen-too", "until": of.ids["message"]},
    ],
    "rewindSession": lambda of: [{"turns": 1}, {"to": of.ids["message"]}],
    "previewContext": lambda of: [{"messages": HELLO}],
    "forgetLearned": lambda of: [{"dry_run": True}, {}, {"exchange_id": of.ids["exchange"]}],
    "importMessages": lambda of: [{"messages": HELLO, "user": USER}],
    "updateMessage": lambda of: [{"content": "overwritten"}],
    "sendFeedback": lambda of: [{"score": -1, "comment": "overwritten"}],
    "createMemory": lambda of: [{"text": "Overwritten."}],
    "searchMemories": lambda of: [
        {"query": "likes about"},
        {"query": "likes", "filter": {"id": of.ids["memory"]}},
    ],
    "updateMemory": lambda of: [{"text": "Overwritten."}],
    "updateProfile": lambda of: [{"likes": "overwritten"}],
    "rollBackProfile": lambda of: [{"version": 1}],
    "setInstructions": lambda of: [{"text": "overwritten"}],
    "rollBackInstructions": lambda of: [{"version": 1}],
    "putItem": lambda of: [
        {"namespace": NOTES, "key": "n", "value": {"note": "overwritten"}},
        {"namespace": NOTES, "key": "n", "value": {}, "if_version": 1},
    ],
    "searchItems": lambda of: [
        {"namespace_prefix": []},
        {"namespace_prefix": NOTES, "query": "note"},
        {"namespace_prefix": ["people", USER]},
    ],
    "listNamespaces": lambda of: [{}, {"prefix": ["people", USER]}],
    "importFile": lambda of: [{"messages": HELLO}, b'{"role": "user", "content": "hello"}\n'],
}
"""Bodies with an owner's ids, by operation."""

TOOLS: dict[str, Any] = {
    "search_memories": lambda of: [{"query": "likes about", "user": USER}],
    "save_memory": lambda of: [{"text": "Overwritten.", "user": USER}],
    "forget_memory": lambda of: [{"memory_id": of.ids["memory"], "user": USER}],
    "list_sessions": lambda of: [{}, {"user": USER}, {"query": SESSION}],
    "read_session": lambda of: [{"session_id": SESSION}, {"session_id": SESSION, "after": 0}],
}
"""Arguments with an owner's ids, by tool; a tool that is not here cannot be tried."""


def calls_for(owner: Belongings) -> Iterator[Json]:
    """MCP messages with an owner's ids: every tool, and the resources."""
    for tool in TOOLS_OFFERED:
        for arguments in TOOLS[tool.name](owner):
            yield calling(tool.name, **arguments)
    yield message("resources/list")
    yield message("resources/read", uri=f"memory://sessions/{SESSION}")
