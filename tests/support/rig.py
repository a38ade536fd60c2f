"""A proxy, its upstream, its store and a client, all real; and sessions to talk in."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.memory.archive import Message
from proxy.memory.model import Amendment, Commit, Exchange, LoadOptions, Outcome, SessionKey
from proxy.memory.store import Store, StoreTimeout
from proxy.stores.open import open_store as open_real_store
from proxy.tenancy import digest_of
from tests.support.client import client_of
from tests.support.processes.running import PATIENT, Running, running, settings_for
from tests.support.talk.words import answer, messages, names
from tests.support.upstream.answers import Script
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import PATIENCE

CHAT = "/v1/chat/completions"
KEY = "sk-test"


class WatchedStore:
    """A real store whose commits can be held back and are noted, in order."""

    def __init__(self, store: Store) -> None:
        self.real = store
        self.gate: asyncio.Event | None = None
        """While there is one, commits wait for it before they begin."""
        self.held_back = asyncio.Event()
        """Set when a commit waits."""
        self.commits: list[Commit] = []
        self.amendments: list[Amendment] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def with_long_timeout(self, seconds: float) -> WatchedStore:
        """Tests wait long in any case, and watch everything that is written."""
        return self

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        await self._wait()
        outcome = await self.real.commit(key, commit)
        self.commits.append(commit)
        return outcome

    async def amend(self, key: SessionKey, amendment: Amendment) -> int | None:
        await self._wait()
        edited = await self.real.amend(key, amendment)
        self.amendments.append(amendment)
        return edited

    async def _wait(self) -> None:
        gate = self.gate
        if gate is not None:
            self.held_back.set()
            await gate.wait()

    def hold(self) -> asyncio.Event:
        """Hold back writes until the returned event is set."""
        self.held_back.clear()
        self.gate = asyncio.Event()
        return self.gate


class Upstream(ScriptedUpstream):
    """One that several tests use in turn."""

    def forget(self) -> None:
        self.requests.clear()
        self._queue.clear()
        self.always(None)
        self.strict, self.merges = True, False


@dataclass
class Rig:
    up: Upstream
    proxy: Running
    store: WatchedStore
    client: httpx.AsyncClient

    @property
    def port(self) -> int:
        return int(self.proxy.url.rpartition(":")[2])

    def talk(self, **headers: str) -> Talk:
        """A session that nobody has used."""
        return Talk(self, f"session-{uuid.uuid4().hex}", headers)

    @contextmanager
    def store_away(self) -> Iterator[None]:
        """No session is found while the block runs; what is said is written down afterwards."""

        async def load(*_: object) -> None:
            raise StoreTimeout("no answer in time")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.store, "load", load, raising=False)
            yield

    def reset(self) -> None:
        """Forget what other tests asked and scripted."""
        self.up.forget()
        self.store.gate = None
        self.store.commits.clear()
        self.store.amendments.clear()


@asynccontextmanager
async def rig(folder: Path, **overrides: object) -> AsyncIterator[Rig]:
    """A running proxy; overrides are settings, dotted with ``__``."""
    opened: list[WatchedStore] = []

    def open_store(url: str, **options: Any) -> WatchedStore:
        opened.append(WatchedStore(open_real_store(url, **options)))
        return opened[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("proxy.assembly.resources.open_store", open_store)
        async with (up := Upstream()):
            settings = settings_for(folder, up.url, **PATIENT | overrides)
            async with (
                running(settings) as proxy,
                client_of(proxy.url, timeout=2 * PATIENCE) as client,
            ):
                yield Rig(up, proxy, opened[0], client)


@dataclass
class Talk:
    """One session.  ``headers`` go with every request."""

    rig: Rig
    session: str
    headers: dict[str, str] = field(default_factory=dict)
    path: str = CHAT

    @property
    def key(self) -> SessionKey:
        return SessionKey(digest_of(KEY.encode()), self.session)

    @property
    def all_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {KEY}", "x-session-id": self.session, **self.headers}

    async def post(self, body: bytes | Mapping[str, Any], **headers: str) -> httpx.Response:
        """Send any body; header names with ``_`` for ``-``."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"content-type": "application/json", **self.all_headers, **more}
        return await self.rig.client.post(self.path, content=content, headers=sent)

    async def ask(
        self, sent: Sequence[Mapping[str, Any]], script: Script | None = None, **more: Any
    ) -> httpx.Response:
        """Send messages.  ``more`` are headers by their names, and other fields of the body."""
        if script is not None:
            self.rig.up.reply(script)
        headers = {name: more.pop(name) for name in list(more) if name.startswith(_HEADERS)}
        return await self.post({"model": "scripted-1", "messages": sent, **more}, **headers)

    async def say(self, sent: str, said: str, *, stream: bool = False, **more: Any) -> str:
        """Send messages in shorthand, be answered ``said``; what the upstream got, in shorthand."""
        if stream:
            more |= {"stream": True, "stream_options": {"include_usage": True}}
        script = answer(said, stream=stream, n=more.get("n", 1))
        response = await self.ask(messages(sent), script, **more)
        assert response.status_code == 200, response.text
        assert not self.rig.up.refused
        return self.sent

    @property
    def sent(self) -> str:
        """What the upstream got last."""
        return names(self.rig.up.requests[-1].messages)

    async def log(self) -> str:
        """The active log, in shorthand and in its own order."""
        return names(await self.bodies())

    async def bodies(self) -> list[dict[str, Any]]:
        """The active log as later requests carry it."""
        snapshot = await self.rig.store.real.load(self.key, LoadOptions(profile="", whole=True))
        ids = [entry.card.id for entry in snapshot.log]
        found = await self.rig.store.real.bodies(self.key, ids)
        return [json.loads(found[id]) for id in ids]

    async def ends_with(self, *contents: str) -> bool:
        """Are these the last messages of the active log?"""
        found = [each["content"] for each in await self.bodies()]
        return found[-len(contents) :] == [*contents]

    async def history(self, *states: str) -> list[Message]:
        """Messages by seq, of all states unless some are named."""
        wanted: Collection[Any] = states or ("active", "superseded")
        page = await self.rig.store.real.messages(self.key, wanted, 0, 1000)
        return list(page.items)

    async def gone(self) -> str:
        """The superseded messages, in shorthand."""
        return names(json.loads(m.wire) for m in await self.history("superseded"))

    async def exchange(self, id: str) -> Exchange:
        found = await self.rig.store.real.exchange(self.key, id)
        assert found is not None
        return found[0]


_HEADERS = ("x_", "idempotency_key", "authorization", "accept")
