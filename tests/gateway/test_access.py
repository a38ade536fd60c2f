"""Named clients, required users and places to wait in, as the callers meet them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from proxy.gateway.identity import sign
from proxy.memory.model import SessionKey
from tests.support.rig import CHAT, Rig, rig
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw
from tests.support.upstream.answers import Script

pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = json.dumps({"model": "m", "messages": messages("u1")}).encode()
UPSTREAM_KEY = "sk-the-upstreams-own"


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


CLIENTS = [
    {"name": "web", "key_sha256": [sha256("old"), sha256("new")], "profiles": ["brief"]},
    {"name": "batch", "key_sha256": [sha256("batch")], "allowed_paths": ["embeddings"]},
    {"name": "pages", "key_sha256": [sha256("pages")], "signing_secret": "a-long-random-string"},
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with rig(
        tmp_path_factory.mktemp("clients"),
        tenancy__mode="clients",
        clients=CLIENTS,
        upstream__api_key=UPSTREAM_KEY,
        profiles={"brief": {}, "other": {}},
    ) as ready:
        yield ready


@pytest.fixture
def one(shared: Rig) -> Rig:
    shared.reset()
    return shared


async def ask(one: Rig, key: str | None, path: str = CHAT, **more: str) -> raw.Answer:
    headers = [("Authorization", f"Bearer {key}")] if key else []
    headers += [(name.replace("_", "-"), value) for name, value in more.items()]
    return await raw.ask(one.port, "POST", path, headers, BODY)


def code(answered: raw.Answer) -> tuple[int, str]:
    assert answered.get("content-type") == b"application/json"
    return answered.status, json.loads(answered.body)["error"]["code"]


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/v1/files"])
@pytest.mark.parametrize("key", [None, "unknown", UPSTREAM_KEY, "web"])
async def test_an_unknown_key_reaches_no_upstream(one: Rig, key: str | None, path: str) -> None:
    answered = await ask(one, key, path)
    assert code(answered) == (401, "invalid_api_key")
    assert answered.get("www-authenticate") == b"Bearer"
    assert one.up.requests == []


@pytest.mark.parametrize(
    "path", ["/v1/files", "/v1/fine_tuning/jobs", "/v1/models/../files", "/v1/models/%2e%2e/files"]
)
async def test_a_path_that_is_not_open_reaches_no_upstream(one: Rig, path: str) -> None:
    assert code(await ask(one, "new", path)) == (403, "path_not_allowed")
    assert code(await ask(one, "batch")) == (403, "path_not_allowed")
    assert one.up.requests == []


async def test_a_profile_that_is_not_open_reaches_no_upstream(one: Rig) -> None:
    answered = await ask(one, "new", x_session_id="s", x_memory_profile="other")
    assert code(answered) == (403, "profile_not_allowed")
    assert one.up.requests == []


@pytest.mark.parametrize("header", ["Authorization", "Api-Key", "X-Api-Key"])
async def test_the_upstream_gets_its_own_key_and_never_the_clients(one: Rig, header: str) -> None:
    value = "Bearer new" if header == "Authorization" else "new"
    answered = await raw.ask(one.port, "POST", CHAT, [(header, value)], BODY)
    assert answered.status == 200
    asked = one.up.requests[-1]
    keys = [v for n in ("authorization", "api-key", "x-api-key") for v in asked.header_list(n)]
    assert keys in ([f"Bearer {UPSTREAM_KEY}"], [UPSTREAM_KEY])


async def test_memory_stays_when_a_clients_key_is_rotated(one: Rig) -> None:
    talk = one.talk(authorization="Bearer old")
    await talk.say("u1", "a1")
    talk.headers["authorization"] = "Bearer new"
    assert await talk.say("u2", "a2") == "u1 a1 u2"
    assert await one.store.real.session(SessionKey("web", talk.session)) is not None


async def test_ids_of_a_client_that_signs_count_only_if_signed(one: Rig) -> None:
    now = int(time.time())
    proof = f"t={now},v1={sign(b'a-long-random-string', now, 's', 'kai')}"
    ids = {"X_Session_Id": "s", "X_User_Id": "kai"}
    assert (await ask(one, "pages", **ids, X_Memory_Signature=proof)).status == 200
    assert one.up.requests[-1].header("x-memory-signature") is None
    assert (await ask(one, "pages")).status == 200, "nothing is claimed, nothing to prove"
    for claim in (ids, {**ids, "X_User_Id": "eve", "X_Memory_Signature": proof}):
        assert code(await ask(one, "pages", **claim)) == (403, "invalid_signature")
    path = CHAT.replace("/v1", "/s/other/v1")
    refused = await ask(one, "pages", path, X_User_Id="kai", X_Memory_Signature=proof)
    assert code(refused) == (403, "invalid_signature")
    assert len(one.up.requests) == 2


async def test_a_refusal_tells_no_more_of_the_session_than_its_name(one: Rig) -> None:
    """Nobody hears whether it is there, and whoever has no key that is known hears nothing."""
    talk = one.talk(authorization="Bearer old")
    await talk.say("u1", "a1")
    for key, refused in (("new", "profile_not_allowed"), ("pages", "invalid_signature")):
        for session in (talk.session, "none-such"):
            answered = await ask(one, key, x_session_id=session, x_memory_profile="other")
            assert code(answered)[1] == refused
            assert answered.get("x-memory-session-id") == session.encode()
            assert answered.get("x-memory-status") == b"off"
            assert answered.get("x-memory-messages") == b"0"
    unknown = await ask(one, "unknown", x_session_id=talk.session)
    assert unknown.get("x-memory-session-id") is None


async def test_where_a_user_is_required_nobody_else_is_served(tmp_path: Path) -> None:
    async with rig(tmp_path, tenancy__require_user=True) as strict:
        for path in (CHAT, "/v1/models"):
            answered = await ask(strict, "k", path, x_session_id="s")
            assert code(answered) == (403, "user_required")
            assert answered.get("x-memory-session-id") == b"s"
        assert strict.up.requests == []
        for header in ("x_user_id", "helicone_user_id"):
            assert (await ask(strict, "k", x_session_id=header, **{header: "ann"})).status == 200


async def test_one_tenant_too_many_requests_waits_and_others_do_not(tmp_path: Path) -> None:
    async with rig(tmp_path, server__max_concurrent_requests=1) as narrow:
        release = asyncio.Event()
        held = answer("a1")
        narrow.up.reply(Script(headers=held.headers, pieces=held.pieces, before=release))
        first = asyncio.create_task(ask(narrow, "k"))
        await narrow.up.wait_for(1)
        answered = await ask(narrow, "k")
        assert code(answered) == (503, "overloaded")
        assert int(answered.get("retry-after") or b"0") > 0
        assert (await ask(narrow, "another")).status == 200
        release.set()
        assert (await first).status == 200
        assert (await ask(narrow, "k")).status == 200


async def test_one_tenant_is_one_memory_whatever_the_key(tmp_path: Path) -> None:
    async with rig(tmp_path, tenancy__mode="single") as single:
        await single.talk(authorization="Bearer a").say("u1", "a1", x_session_id="s")
        talk = single.talk(authorization="Bearer b")
        assert await talk.say("u2", "a2", x_session_id="s") == "u1 a1 u2"
        assert single.up.requests[-1].header("authorization") == "Bearer b"


@pytest.mark.parametrize("session", [None, "s"], ids=["no-session", "session"])
async def test_an_upstream_that_is_silent_for_too_long_is_a_timeout(
    tmp_path: Path, session: str | None
) -> None:
    async with rig(tmp_path, upstream__read_timeout=0.1) as hasty:
        hasty.up.always(Script(hang="headers"))
        more = {"x_session_id": session} if session else {}
        assert code(await ask(hasty, "k", **more)) == (504, "upstream_timeout")


@pytest.mark.parametrize("session", [None, "s"], ids=["no-session", "session"])
async def test_an_upstream_that_is_not_there_is_unreachable(
    tmp_path: Path, session: str | None
) -> None:
    async with rig(tmp_path) as alone:
        await alone.up.__aexit__(None, None, None)
        more = {"x_session_id": session} if session else {}
        assert code(await ask(alone, "k", **more)) == (502, "upstream_unreachable")
        await alone.up.__aenter__()
