"""A thousand callers with colliding names, in three APIs: nobody is shown what is another's."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from proxy.memory.model import LoadOptions, SessionKey
from tests.support.client import client_of
from tests.support.processes.running import running, settings_for
from tests.support.store.commits import chat
from tests.support.store.inside import store_at
from tests.support.store.places import Places
from tests.support.talk.chatting import asked
from tests.support.upstream import anthropic, items
from tests.support.upstream.scripted import (
    Request,
    Script,
    ScriptedUpstream,
    chat_completion,
    json_answer,
)
from tests.support.waiting import PATIENCE

REQUESTS = 1000

ODD = ["s", "{s}", "s}", "{", "}", "{}", ":", "s:s", "*", "?", "[s]", "%", "%2F", "%00", "a/b"]
ODD += ["...", "';--", '"', "\\", "~", "|", "\\u0000", "lists", "log", "x" * 256]
"""Session ids; every tenant uses all of them."""

TOKENS = ["k", "k:s", "{s}", "}:{", "*", "k%", "'", "other"]
USERS = [None, None, "kai", "eve", "{}", "kai:eve", "*", "k%"]
CREDENTIALS = ["authorization", "api-key", "x-api-key"]


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> str:
    return places.of(request.param, tmp_path).url


@dataclass
class Truth:
    """What was said in a session that belongs to a token, and by whom."""

    owner: str | None = None
    said: list[str] = field(default_factory=list)


Sessions = dict[tuple[str | None, str], Truth]


DOORS: dict[str, Callable[[str], dict[str, Any]]] = {
    "/v1/chat/completions": asked,
    "/v1/messages": lambda text: {**asked(text), "max_tokens": 100},
    "/v1/responses": lambda text: {"model": "scripted-1", "input": text},
}
"""What is asked in each API."""


def answered(request: Request) -> Script:
    """The same answer in each of them."""
    if request.path.endswith("/messages"):
        return anthropic.answered(anthropic.text("I see."))
    if request.path.endswith("/responses"):
        return json_answer(items.response([items.said("I see.")]))
    return json_answer(chat_completion("I see."))


def said_in(request: Request) -> list[str]:
    """The user messages that an upstream is shown, oldest first."""
    messages = request.path.endswith("/messages")
    shown = anthropic.as_chat(request.json)["messages"] if messages else request.messages
    return [each["content"] for each in shown if each["role"] == "user"]


def credential(rng: random.Random, token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    name = rng.choice(CREDENTIALS)
    return {name: f"Bearer {token}" if name == "authorization" else token}


@dataclass
class Crowd:
    """Callers at random, the truth beside them."""

    client: httpx.AsyncClient
    up: ScriptedUpstream
    rng: random.Random
    sessions: Sessions = field(default_factory=lambda: defaultdict(Truth))
    refused: int = 0
    recalled: int = 0
    doors: Counter[str] = field(default_factory=Counter)

    async def one(self, number: int) -> None:
        """Somebody says something unique; the upstream is shown that conversation alone."""
        token, session = self.rng.choice([*TOKENS, None]), self.rng.choice(ODD)
        user, truth = self.rng.choice(USERS), self.sessions[(token, session)]
        text = f"{number} of {token} in {session}"
        headers = {"x-session-id": session, **credential(self.rng, token)}
        headers |= {"x-user-id": user} if user else {}
        headers |= {"anthropic-version": "2023-06-01"}
        calls = len(self.up.requests)
        path = self.rng.choice(list(DOORS))
        answer = await self.client.post(path, json=DOORS[path](text), headers=headers)
        self.doors[path] += 1
        if user and truth.owner and user != truth.owner:
            assert "belongs to another user" in answer.json()["error"]["message"]
            assert (answer.status_code, len(self.up.requests)) == (403, calls)
            self.refused += 1
            return
        assert answer.status_code == 200, answer.text
        truth.owner = truth.owner or user
        *before, asked_last = said_in(self.up.requests[-1])
        recalled, _, said = asked_last.rpartition("</memory>")
        assert [*before, said.lstrip()] == [*truth.said, text]
        lines = [line for line in recalled.splitlines() if line.startswith("user: ")]
        own = self.own(token, user) if lines else set()
        foreign = [line for line in lines if line.removeprefix("user: ") not in own]
        assert (foreign, user) == ([], user)
        self.recalled += len(lines)
        truth.said.append(text)

    def own(self, token: str | None, user: str | None) -> set[str]:
        """What was said in the sessions of a user."""
        mine = [t for (who, _), t in self.sessions.items() if who == token and t.owner == user]
        return {text for truth in mine if user for text in truth.said}

    # The memory API

    async def get(self, token: str | None, path: str, **query: str | int) -> httpx.Response:
        headers = credential(self.rng, token)
        return await self.client.get(f"/memory/v1{path}", params=query, headers=headers)

    async def listed(self, token: str | None, **query: str) -> list[dict[str, Any]]:
        """All pages of a tenant's sessions."""
        found: list[dict[str, Any]] = []
        after: dict[str, str] = {}
        while True:
            page = (await self.get(token, "/sessions", limit=7, **query, **after)).json()
            found += page["data"]
            if not page["has_more"]:
                return found
            after = {"after": page["next"]}

    async def texts(self, token: str | None, session: str) -> list[str] | None:
        """The questions of a session, None if it is not found."""
        path = f"/sessions/{quote(session, safe='')}/messages"
        answer = await self.get(token, path, limit=1000)
        if answer.status_code == 404:
            return None
        messages = [item["message"] for item in answer.json()["data"]]
        return [m["content"] for m in messages if m["role"] == "user"]


@pytest.fixture
async def crowd(url: str, up: ScriptedUpstream, tmp_path: Path) -> AsyncIterator[Crowd]:
    settings = settings_for(tmp_path, up.url, store__url=url, store__timeout=PATIENCE)
    async with (
        running(settings) as proxy,
        client_of(proxy.url) as client,
    ):
        up.always(answered)
        yield Crowd(client, up, random.Random(7))


@pytest.mark.slow
async def test_nobody_is_shown_what_is_somebody_else_s(
    crowd: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(REQUESTS):
        await crowd.one(number)
    talked = {key: truth for key, truth in crowd.sessions.items() if truth.said}
    assert min(crowd.doors[path] for path in DOORS) > REQUESTS / 5
    assert crowd.refused > REQUESTS / 20 and len(talked) > 200 and crowd.recalled > 20
    for token in [*TOKENS, None]:
        mine = {session: truth for (who, session), truth in talked.items() if who == token}
        listed = await crowd.listed(token)
        assert {row["id"]: row["user_id"] for row in listed} == {
            session: truth.owner for session, truth in mine.items()
        }
        for user in {u for u in USERS if u}:
            theirs = [row["id"] for row in await crowd.listed(token, user=user)]
            assert sorted(theirs) == sorted(s for s, t in mine.items() if t.owner == user)
        for session in ODD:
            expected = mine[session].said if session in mine else None
            assert await crowd.texts(token, session) == expected
    with capsys.disabled():
        print(
            f"\n{REQUESTS} requests of {len(TOKENS) + 1} tenants in {len(talked)} sessions,"
            f" {crowd.refused} refused, {crowd.recalled} passages recalled:"
            " nothing foreign injected or listed"
        )


async def test_an_exchange_is_found_by_its_own_tenant_and_session_alone(crowd: Crowd) -> None:
    exchanges = {}
    for token, session in [("k", "s"), ("k", "{s}"), ("other", "s")]:
        headers = {"x-session-id": session, "authorization": f"Bearer {token}"}
        answer = await crowd.client.post(
            "/v1/chat/completions", json=asked("hello"), headers=headers
        )
        exchanges[token, session] = answer.headers["x-memory-exchange-id"]
    for (token, session), exchange in exchanges.items():
        for who, where in exchanges:
            path = f"/sessions/{quote(where, safe='')}/exchanges/{exchange}"
            found = (await crowd.get(who, path)).status_code
            assert found == (200 if (who, where) == (token, session) else 404)


COLLIDING = [
    SessionKey("a", "b:c"),
    SessionKey("a:b", "c"),
    SessionKey("a", "{b}"),
    SessionKey("a", "b}"),
    SessionKey("{a", "b}"),
    SessionKey("{a}", "b"),
    SessionKey("a", "b"),
    SessionKey("a:{b", "}"),
    SessionKey("", "a:b"),
    SessionKey("a:b:c", ""),
    SessionKey("a", "*"),
    SessionKey("a*", "b"),
    SessionKey("a%3Ab", "c"),
]


async def test_no_two_pairs_of_tenant_and_session_are_one_to_a_store(url: str) -> None:
    """Names of tenants are hashes or plain words; a store must not count on it."""
    async with store_at(url) as store:
        for number, key in enumerate(COLLIDING):
            assert await store.commit(key, chat(f"x{number}", user=f"u{number}")) == "recorded"
        for number, key in enumerate(COLLIDING):
            snapshot = await store.load(key, LoadOptions(profile="default", whole=True))
            assert [e.card.exchange for e in snapshot.log] == [f"x{number}"] * 2
            assert snapshot.owner == f"u{number}"
        for tenant in {key.tenant for key in COLLIDING}:
            page = await store.sessions(tenant, None, None, 100)
            mine = [key.session for key in COLLIDING if key.tenant == tenant]
            assert sorted(row.id for row in page.items) == sorted(mine)
        assert await store.delete(COLLIDING[0])
        left = [await store.session(key) is not None for key in COLLIDING]
        assert left == [False, *[True] * (len(COLLIDING) - 1)]
