"""Web pages and the memory of those who have no key: a page from elsewhere gets none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from proxy.memory.model import SessionKey
from tests.support.rig import CHAT, Rig, rig
from tests.support.talk.words import answer, messages, names
from tests.support.upstream import raw

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPEN = {"anonymous": "key", "single": "single"}
EVIL = {"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}
FOREIGN = {
    "rebound": EVIL,
    "cross-site": {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
    "an-old-browser": {"Origin": "http://evil.example"},
    "sandboxed": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "no-origin": {"Sec-Fetch-Site": "cross-site"},
    "rebound-without-origin": {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"},
}
TRUSTED = {
    "a-program": {},
    "a-program-elsewhere": {"Host": "proxy.lan"},
    "the-console": {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-origin"},
    "a-page-here": {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"},
    "cors": {"Origin": "https://chat.example", "Sec-Fetch-Site": "cross-site"},
    "trusted": {"Host": "proxy.lan", "Origin": "http://proxy.lan"},
}


@pytest_asyncio.fixture(loop_scope="session", scope="module", params=OPEN)
async def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Rig, str]]:
    folder: Path = tmp_path_factory.mktemp("pages")
    settings = {
        "tenancy__mode": OPEN[request.param],
        "tenancy__trusted_hosts": ["proxy.lan"],
        "server__cors_origins": ["https://chat.example"],
    }
    async with rig(folder, **settings) as ready:
        yield ready, request.param


@pytest.fixture
def nobodys(both: tuple[Rig, str]) -> tuple[Rig, str]:
    both[0].reset()
    return both


async def say(one: Rig, session: str, said: str, headers: dict[str, str]) -> raw.Answer:
    one.up.reply(answer("a" + said[1:]))
    body = json.dumps({"model": "m", "messages": messages(said)}).encode()
    fields = {"Host": "127.0.0.1", "X-Session-Id": session, "Content-Type": "text/plain", **headers}
    head = f"POST {CHAT} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items())
    async with raw.line(one.port) as line:
        await line.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return await line.answer()


@pytest.mark.parametrize("page", FOREIGN.values(), ids=FOREIGN)
async def test_a_page_from_elsewhere_reads_and_plants_nothing(
    nobodys: tuple[Rig, str], page: dict[str, str]
) -> None:
    one, tenant = nobodys
    session = one.talk().session
    await say(one, session, "u1", {})
    answered = await say(one, session, "u2", page)
    assert answered.status == 200
    assert answered.get("x-memory-status") == b"off"
    assert answered.get("x-memory-reason") == b"cross_site"
    assert names(one.up.requests[-1].messages) == "u2"
    await say(one, session, "u3", {})
    assert names(one.up.requests[-1].messages) == "u1 a1 u3"
    assert await one.store.real.session(SessionKey(tenant, session)) is not None


@pytest.mark.parametrize("page", TRUSTED.values(), ids=TRUSTED)
async def test_a_program_and_a_trusted_page_have_memory(
    nobodys: tuple[Rig, str], page: dict[str, str]
) -> None:
    one, _ = nobodys
    session = one.talk().session
    await say(one, session, "u1", {})
    answered = await say(one, session, "u2", page)
    assert answered.get("x-memory-status") == b"applied"
    assert names(one.up.requests[-1].messages) == "u1 a1 u2"


async def test_with_a_key_of_its_own_a_page_may_come_from_anywhere(one: Rig) -> None:
    talk = one.talk(origin="http://anywhere.example", sec_fetch_site="cross-site")
    await talk.say("u1", "a1")
    assert await talk.say("u2", "a2") == "u1 a1 u2"
