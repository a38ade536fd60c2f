"""How the upstream is reached: TLS, proxies, and options that can never work."""

from __future__ import annotations

import pytest

from proxy.wire.failures import UpstreamTimeout, UpstreamUnreachable
from proxy.wire.origin import UpstreamOptions
from proxy.wire.upstream import Upstream
from tests.support.processes.certificate import CA_FILE, server_context
from tests.support.processes.egress import EgressProxy
from tests.support.talk.asking import CHAT
from tests.support.upstream.scripted import ScriptedUpstream
from tests.wire.conftest import Connect


async def tls_answer(upstream: Upstream) -> int:
    reply = await upstream.send("GET", b"/models", [], None)
    await reply.read()
    await reply.close()
    return reply.status


async def test_tls_with_an_authority_of_one_s_own(connect: Connect) -> None:
    async with ScriptedUpstream(ssl_context=server_context()) as up:
        async with connect(up.url, ca_file=CA_FILE) as upstream:
            assert await tls_answer(upstream) == 200
            assert await tls_answer(upstream) == 200
        assert up.total_connections == 1


async def test_a_certificate_of_unknown_origin_is_unreachable(connect: Connect) -> None:
    async with ScriptedUpstream(ssl_context=server_context()) as up, connect(up.url) as upstream:
        with pytest.raises(UpstreamUnreachable):
            await upstream.send("GET", b"/models", [], None)
        assert up.requests == []


async def test_tls_to_a_server_without_it_is_unreachable(
    connect: Connect, up: ScriptedUpstream
) -> None:
    async with connect(up.url.replace("http:", "https:"), connect_timeout=0.5) as upstream:
        with pytest.raises((UpstreamUnreachable, UpstreamTimeout)):
            await upstream.send("GET", b"/models", [], None)


async def test_http_goes_through_an_egress_proxy_by_absolute_uri(
    connect: Connect, up: ScriptedUpstream
) -> None:
    async with EgressProxy() as egress, connect(up.url, proxy=egress.url) as upstream:
        reply = await upstream.send("GET", b"/a%2Fb?c=%2F", [(b"x-a", b"1")], None)
        await reply.read()
        await reply.close()
        assert egress.heads[0].startswith(f"GET {up.url}/a%2Fb?c=%2F HTTP/1.1\r\n".encode())
    assert up.requests[0].header("x-a") == "1"


async def test_https_goes_through_an_egress_proxy_by_a_tunnel(connect: Connect) -> None:
    async with ScriptedUpstream(ssl_context=server_context()) as up, EgressProxy() as egress:
        proxy = egress.url.replace("//", "//user:secret@")
        async with connect(up.url, proxy=proxy, ca_file=CA_FILE) as upstream:
            reply = await upstream.send("GET", b"/models", [(b"authorization", b"Bearer k")], None)
            await reply.read()
            await reply.close()
        assert egress.heads[0].startswith(f"CONNECT 127.0.0.1:{up.port} HTTP/1.1\r\n".encode())
        assert b"basic dxnlcjpzzwnyzxq=" in egress.heads[0].lower()
        assert b"Bearer k" not in egress.heads[0]
        assert up.requests[0].header("authorization") == "Bearer k"
        assert up.requests[0].header("proxy-authorization") is None


async def test_a_proxy_that_is_not_there_is_unreachable(
    connect: Connect, up: ScriptedUpstream, unused_port: int
) -> None:
    async with connect(up.url, proxy=f"http://127.0.0.1:{unused_port}") as upstream:
        with pytest.raises(UpstreamUnreachable):
            await upstream.send("POST", CHAT, [], b"{}")


@pytest.mark.parametrize(
    ("trust", "bypass", "through"),
    [
        pytest.param(True, "", True, id="trusted"),
        pytest.param(True, "127.0.0.1", False, id="bypassed"),
        pytest.param(False, "", False, id="not-trusted"),
    ],
)
async def test_the_environment_s_proxy_counts_only_if_trusted(
    connect: Connect,
    up: ScriptedUpstream,
    monkeypatch: pytest.MonkeyPatch,
    trust: bool,
    bypass: str,
    through: bool,
) -> None:
    async with EgressProxy() as egress:
        for name in ("HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "no_proxy", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", egress.url)
        monkeypatch.setenv("no_proxy", bypass)
        async with connect(up.url, trust_env=trust) as upstream:
            assert await tls_answer(upstream) == 200
        assert bool(egress.heads) == through


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://x/v1"},
        {"url": "127.0.0.1:80"},
        {"url": "http://"},
        {"url": "http://x/ y"},
        {"url": "http://x/#y"},
        {"url": "http://x:port/"},
        {"url": "http://user:key@x/"},
        {"url": "http://x", "proxy": "socks5://y"},
        {"url": "http://x", "read_timeout": 0},
        {"url": "http://x", "connect_timeout": -1},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_options_that_can_never_work_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        UpstreamOptions(**options)  # type: ignore[arg-type]
