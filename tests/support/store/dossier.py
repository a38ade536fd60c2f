"""A person who has left something to be found in every place that there is."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec

from proxy.logs import JsonFormatter
from proxy.memory.model import SessionKey
from proxy.memory.recording.spool import Spool
from tests.support.rig import Rig, Talk
from tests.support.store.inside import TENANT, recorder_of
from tests.support.store.recording import deferred, said
from tests.support.upstream.answers import chat_completion, chat_stream, json_answer, sse, tool_call
from tests.support.upstream.tooling import SAVE
from tests.support.waiting import eventually

API = "/memory/v1"

SETTINGS: dict[str, object] = {
    "memory__episodes": {"enabled": True},
    "memory__tools": {"enabled": True},
    "memory__instructions": {"enabled": True, "after_feedback": 1000},
}
"""What has to be switched on for all places."""

PLACES = (
    "asked",
    "answered",
    "system",
    "tool-arguments",
    "tool-result",
    "superseded",
    "other-choice",
    "wish",
    "saved",
    "title",
    "metadata",
    "summary",
    "fact",
    "profile",
    "comment",
    "proposal",
    "item",
    "deferred",
    "quarantined",
    "in-anothers",
)

PASSAGES = 13
"""Of the person's messages all that recall can find: with text, and not a tool's."""


@dataclass
class Dossier:
    """What a person says is marked: a marker for each place, unlike those of anybody else."""

    rig: Rig
    user: str = field(default_factory=lambda: f"user-{uuid.uuid4().hex[:12]}")
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.talks = [self.rig.talk(**{"x-user-id": self.user}) for _ in range(3)]

    @property
    def markers(self) -> list[str]:
        return [self.marker(place) for place in PLACES]

    def marker(self, place: str) -> str:
        """What comes first tells it from all others."""
        return f"{self.token}-of-{place}"

    def text(self, place: str) -> str:
        return f"I say {self.marker(place)} here."

    async def fill(self) -> None:
        await self._chats()
        await self._edits()
        await self._learns()
        await self._spools()
        await eventually(self._indexed)

    async def _indexed(self) -> bool:
        counts = (await self.erase(dry_run="true"))["counts"]
        return bool(counts["index_passages"] == PASSAGES)

    async def _chats(self) -> None:
        one, two, three = self.talks
        user, system = self._said("asked"), self._said("system", "system")
        await self._ask(one, [system, user], sse(chat_stream([self.text("answered")])), stream=True)
        call = tool_call("look", json.dumps({"at": self.text("tool-arguments")}), "call_1")
        calling = json_answer(chat_completion(None, tool_calls=[call]))
        tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
        await self._ask(two, [self._said("asked")], calling, tools=tools)
        result = {"role": "tool", "tool_call_id": "call_1", "content": self.text("tool-result")}
        await self._ask(two, [result], self._answer("Seen."), tools=tools)
        await self._ask(three, [self._said("superseded")], self._answer("No."))
        choices = json_answer(chat_completion(self.text("other-choice"), n=2))
        await self._ask(three, [self._said("asked")], choices, x_memory_rewind="1", n=2)
        wish = {"role": "user", "content": f"Always call me {self.marker('wish')}, please."}
        await self._ask(three, [wish], self._answer("I will."))
        saving = tool_call(SAVE, json.dumps({"text": f"The user has {self.marker('saved')}."}))
        self.rig.up.reply(json_answer(chat_completion(None, tool_calls=[saving])))
        await self._ask(three, [self._said("asked")], self._answer("Saved."))

    async def _edits(self) -> None:
        session = f"{API}/sessions/{self.talks[0].session}"
        await self.call(
            "PATCH",
            session,
            {
                "title": self.marker("title"),
                "metadata": {"note": self.text("metadata")},
                "summary": {"text": self.text("summary")},
            },
        )

    async def _learns(self) -> None:
        person = f"{API}/users/{self.user}"
        await self.call("POST", f"{person}/memories", {"text": self.text("fact")})
        await self.call("PATCH", f"{person}/profile", {"likes": self.text("profile")})
        answer = next(m for m in await self.talks[0].history() if m.card.role == "assistant")
        path = f"{API}/sessions/{self.talks[0].session}/messages/{answer.card.id}/feedback"
        await self.call("POST", path, {"score": 1, "comment": self.text("comment")})
        await self._improves()
        place = {"namespace": ["users", self.user, "notes"], "key": "k"}
        await self.call("PUT", f"{API}/store/items", {**place, "value": {"n": self.text("item")}})

    async def _improves(self) -> None:
        """What a model makes of the comment, which waits for somebody's approval."""
        instructions = f"{API}/instructions/default"
        improved = {"instructions": self.text("proposal"), "why": self.text("proposal")}
        self.rig.up.reply(self._answer(json.dumps(improved)))
        await self.call("POST", f"{instructions}/reflect")

        async def proposed() -> bool:
            found = await self.call("GET", f"{instructions}/proposals?limit=1000")
            return any(each["text"] == improved["instructions"] for each in found["data"])

        await eventually(proposed)

    async def _spools(self) -> None:
        """What is quarantined: of a session that only the spool knows, theirs, and another's."""
        spool = recorder_of(self.rig.proxy)._backlog._spool
        for place, session, user in [
            ("deferred", f"s-{self.token}", self.user),
            ("quarantined", self.talks[0].session, f"other-than-{self.user}"),
            ("in-anothers", f"of-another-than-{self.token}", self.user),
        ]:
            id = f"ex-{place}-{self.token}"
            made = deferred(id, said(self.text(place)), user=user)
            key = SessionKey(TENANT, session)
            await asyncio.to_thread(_quarantine, spool, key, id, msgspec.json.encode(made))

    def _said(self, place: str, role: str = "user") -> dict[str, str]:
        return {"role": role, "content": self.text(place)}

    def _answer(self, text: str) -> Any:
        return json_answer(chat_completion(text))

    async def _ask(self, talk: Talk, sent: Any, script: Any, **more: Any) -> None:
        response = await talk.ask(sent, script, **more)
        assert response.status_code == 200, response.text
        assert response.headers["x-memory-status"] in ("applied", "empty")

    async def call(self, method: str, path: str, body: Any = None, status: int = 0) -> Any:
        """Ask the memory API; what it answers."""
        response = await self.answer(method, path, body)
        assert response.status_code == status or (not status and response.is_success), response.text
        return response.json()

    async def answer(self, method: str, path: str, body: Any = None) -> httpx.Response:
        headers = {"authorization": self.talks[0].all_headers["authorization"]}
        return await self.rig.client.request(method, path, json=body, headers=headers)

    async def erase(self, **query: str) -> dict[str, Any]:
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        path = f"{API}/users/{self.user}" + (f"?{asked}" if asked else "")
        told: dict[str, Any] = await self.call("DELETE", path)
        return told

    async def seen(self) -> dict[str, bytes]:
        """Everything that the memory API shows of this person, byte for byte."""
        person = f"{API}/users/{self.user}"
        item = f"namespace=users&namespace={self.user}&namespace=notes&key=k"
        paths = [f"{API}/sessions?user={self.user}", f"{API}/store/items?{item}"]
        paths += [f"{person}/profile", f"{person}/profile/versions"]
        paths.append(f"{person}/memories?kind=fact,episode,instruction,preference")
        for talk in self.talks:
            session = f"{API}/sessions/{talk.session}"
            paths += [session, f"{session}/messages?state=active,superseded"]
            paths += [f"{session}/exchanges", f"{session}/summaries"]
        return {path: (await self.answer("GET", path)).content for path in paths}


def _quarantine(spool: Spool, key: SessionKey, id: str, payload: bytes) -> None:
    """From the first on: what is put into the spool before might be replayed meanwhile."""
    with spool._writing() as db:
        db.execute(
            "INSERT INTO entries"
            " (store, tenant, session, exchange, kind, payload, created_at, quarantined)"
            " VALUES (?, ?, ?, ?, 'deferred', ?, ?, 'foreign')",
            (spool._store, *key, id, payload, time.time()),
        )


def _is_ours(record: logging.LogRecord) -> bool:
    """Not the test's own client."""
    return record.name.startswith(("proxy", "uvicorn")) or record.levelno >= logging.WARNING


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """All that is logged meanwhile, down to the least, as the program writes it."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(_is_ours)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield written
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
