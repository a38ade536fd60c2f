"""The memory API behind the real server, on a real socket."""

from __future__ import annotations

import httpx

from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, seed, talk
from tests.support.processes.server import raw_exchange, serving


def head(line: str, *fields: str) -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", *fields, "connection: close", "", ""]).encode()


async def test_a_session_is_seeded_read_and_deleted_over_the_network(site: Site) -> None:
    async with serving(site) as port, httpx.AsyncClient(base_url=f"http://localhost:{port}") as own:
        assert (await own.get("/healthz")).json() == {"status": "ok"}
        assert (await own.get("/readyz")).status_code == 200
        await seed(own, "a%2Fb", *talk("hello", "hi"))
        assert (await own.get(f"{SESSIONS}/a%2Fb")).json()["id"] == "a/b"
        listed = (await own.get(f"{SESSIONS}/a%2Fb/messages")).json()["data"]
        assert [item["message"] for item in listed] == talk("hello", "hi")
        preview = await own.post(f"{SESSIONS}/a%2Fb/context", json={"messages": talk("more")})
        assert preview.json()["messages"] == talk("hello", "hi", "more")
        assert (await own.delete(f"{SESSIONS}/a%2Fb")).status_code == 200
        assert (await own.get(f"{SESSIONS}/a%2Fb")).status_code == 404


async def test_a_head_has_the_headers_and_no_body(site: Site) -> None:
    async with serving(site) as port:
        answer = await raw_exchange(port, head("HEAD /readyz", "host: localhost"))
    fields, _, body = answer.partition(b"\r\n\r\n")
    assert fields.startswith(b"HTTP/1.1 200")
    assert b"content-length: " in fields
    assert body == b""


async def test_the_peer_of_the_socket_decides_who_is_local(site: Site) -> None:
    """A page that has rebound its name, and a request that a proxy on this machine has passed."""
    own = head(f"GET {SESSIONS}", "host: 127.0.0.1")
    rebound = head(f"GET {SESSIONS}", "host: evil.example")
    passed = head(f"GET {SESSIONS}", "host: localhost", "x-forwarded-for: 127.0.0.1")
    admin = head(
        f"GET {SESSIONS}?tenant=anonymous", "host: x.example", f"authorization: Bearer {ADMIN_KEY}"
    )
    async with serving(site) as port:
        answers = [await raw_exchange(port, asked) for asked in (own, rebound, passed, admin)]
    statuses = [int(answer.split(b" ", 2)[1]) for answer in answers]
    assert statuses == [200, 401, 401, 200]
