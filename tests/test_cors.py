"""Web pages of other origins: those that the configuration names, and nobody else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.rig import CHAT, KEY, Rig, rig
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw
from tests.support.upstream.answers import json_answer

pytestmark = pytest.mark.asyncio(loop_scope="module")

APP, EVIL = "https://app.example.com", "https://evil.example.com"
GRANTS = (
    ("access-control-allow-origin", "*"),
    ("access-control-allow-credentials", "true"),
    ("Access-Control-Expose-Headers", "x-request-id"),
)
STRANGERS = [
    EVIL,
    "null",
    "http://app.example.com",
    "https://app.example.com.evil.example",
    "https://app.example.com:444",
    "https://APP.example.com",
    "",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sites(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Rig]]:
    """A proxy that lets some pages in, and one that lets none."""
    folder: Path = tmp_path_factory.mktemp("cors")
    origins = [APP, "http://localhost:3000"]
    async with (
        rig(folder / "open", server__cors_origins=origins) as opened,
        rig(folder / "closed") as closed,
    ):
        yield {"open": opened, "closed": closed}


@pytest.fixture
def app(sites: dict[str, Rig]) -> Rig:
    """The one that lets some pages in."""
    sites["open"].reset()
    return sites["open"]


@pytest.fixture(params=["open", "closed"])
def any_site(sites: dict[str, Rig], request: pytest.FixtureRequest) -> Rig:
    """Each of them."""
    site = sites[str(request.param)]
    site.reset()
    return site


async def preflight(rig: Rig, origin: str, path: str = CHAT) -> raw.Answer:
    asked = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,content-type,x-session-id"),
    ]
    return await raw.ask(rig.port, "OPTIONS", path, asked)


def grants(answered: raw.Answer) -> dict[bytes, bytes]:
    return {k: v for k, v in answered.headers if k.lower().startswith(b"access-control-")}


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/s/x/v1/chat/completions", "/memory/v1/x"])
@pytest.mark.parametrize("origin", [APP, "http://localhost:3000"])
async def test_a_preflight_of_an_allowed_origin_is_answered_by_the_proxy(
    app: Rig, origin: str, path: str
) -> None:
    answered = await preflight(app, origin, path)
    assert (answered.status, answered.body) == (204, b"")
    told = grants(answered)
    assert told[b"access-control-allow-origin"] == origin.encode()
    assert told[b"access-control-allow-headers"] == b"authorization,content-type,x-session-id"
    assert b"POST" in told[b"access-control-allow-methods"]
    assert int(told[b"access-control-max-age"]) > 0
    assert b"Origin" in answered.get_all("vary")
    assert app.up.requests == []


@pytest.mark.parametrize("origin", STRANGERS)
async def test_a_preflight_of_anyone_else_gets_no_grant_and_goes_nowhere(
    any_site: Rig, origin: str
) -> None:
    any_site.up.always(json_answer({}, headers=GRANTS))
    answered = await preflight(any_site, origin)
    assert grants(answered) == {}
    assert any_site.up.requests == []


async def test_an_allowed_page_can_read_the_answer_and_its_headers(app: Rig) -> None:
    talk = app.talk(origin=APP)
    response = await talk.ask(messages("u1"), answer("a1", stream=True), stream=True)
    assert response.headers["access-control-allow-origin"] == APP
    assert response.headers["access-control-expose-headers"] == "*"
    assert "Origin" in response.headers.get_list("vary")
    assert response.headers["x-memory-status"] == "empty"
    assert "access-control-allow-credentials" not in response.headers


async def test_an_allowed_page_can_read_an_error(app: Rig) -> None:
    headers = [("Origin", APP), ("X-Session-Id", "..")]
    answered = await raw.ask(app.port, "POST", CHAT, headers, b"{}")
    assert (answered.status, answered.get("access-control-allow-origin")) == (400, APP.encode())


async def test_the_upstreams_grants_are_replaced_by_ours(app: Rig) -> None:
    app.up.always(json_answer({}, headers=(*GRANTS, ("vary", "Accept-Encoding"))))
    answered = await raw.ask(app.port, "GET", "/v1/models", [("Origin", APP)])
    assert answered.get("access-control-allow-origin") == APP.encode()
    assert answered.get("access-control-expose-headers") == b"*"
    assert answered.get("access-control-allow-credentials") is None
    assert answered.get_all("vary") == [b"Accept-Encoding", b"Origin"]


@pytest.mark.parametrize("origin", STRANGERS)
async def test_the_upstreams_grants_do_not_let_strangers_in(any_site: Rig, origin: str) -> None:
    any_site.up.always(json_answer({}, headers=GRANTS))
    answered = await raw.ask(any_site.port, "GET", "/v1/models", [("Origin", origin)])
    assert (answered.status, grants(answered)) == (200, {})


async def test_programs_that_are_no_browsers_see_the_upstreams_headers_unchanged(
    any_site: Rig,
) -> None:
    any_site.up.always(json_answer({}, headers=GRANTS))
    answered = await raw.ask(any_site.port, "GET", "/v1/models")
    assert grants(answered) == {k.lower().encode(): v.encode() for k, v in GRANTS}


async def test_options_that_are_no_preflight_are_relayed(any_site: Rig) -> None:
    assert (await raw.ask(any_site.port, "OPTIONS", "/v1/models")).status == 200
    assert any_site.up.requests[-1].method == "OPTIONS"


async def test_a_star_lets_everyone_in_without_credentials(tmp_path: Path) -> None:
    async with rig(tmp_path, server__cors_origins=["*"]) as open_to_all:
        told = grants(await preflight(open_to_all, EVIL))
        assert told[b"access-control-allow-origin"] in (EVIL.encode(), b"*")
        assert b"access-control-allow-credentials" not in told


async def test_a_stranger_reads_no_memory(any_site: Rig) -> None:
    body = json.dumps({"model": "m", "messages": messages("u1")}).encode()
    headers = [("Origin", EVIL), ("Authorization", f"Bearer {KEY}"), ("X-Session-Id", "s")]
    assert grants(await raw.ask(any_site.port, "POST", CHAT, headers, body)) == {}
