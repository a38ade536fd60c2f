"""Trailer fields of a request name nobody, and end at the proxy."""

from __future__ import annotations

import json

import pytest

from proxy.memory.model import SessionKey
from proxy.tenancy import digest_of
from tests.support.rig import CHAT, Rig
from tests.support.talk.harm import began, nothing_was_lost
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw

pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = json.dumps({"model": "m", "messages": messages("u2")}).encode()
OTHERS = digest_of(b"of-another")
DROPPED = {b"x-evil", b"trailer", b"te", b"x-user-id", b"x-session-id"}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize("late", [False, True], ids=["in-one-piece", "late"])
@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
async def test_trailers_name_nobody_and_are_not_passed_on(one: Rig, path: str, late: bool) -> None:
    talk, other = await began(one), one.talk(authorization="Bearer of-another")
    one.up.reply(answer("a2"))
    fields = {**talk.all_headers, "Transfer-Encoding": "chunked", "Trailer": "X-Evil", "TE": "x"}
    trailers = {**other.all_headers, "X-User-Id": "eve", "Host": "127.0.0.1", "X-Evil": "1"}
    expected = {"Expect": "100-continue"} if late else {}
    head = raw.request("POST", path, {**fields, **expected}.items())
    rest = raw.chunked([BODY])[:-2] + b"".join(
        f"{name}: {value}\r\n".encode() for name, value in trailers.items()
    )
    async with raw.line(one.port) as line:
        await line.send(head if late else head + rest + b"\r\n")
        if late:  # the proxy has read the head, and asks for the body
            assert await line.reader.readexactly(len(CONTINUE)) == CONTINUE
            await line.send(rest + b"\r\n")
        answered = await line.answer()
    assert answered.status == 200
    asked = one.up.requests[-1]
    assert asked.header_list("authorization") == [talk.all_headers["authorization"]]
    assert {name.lower() for name, _ in asked.headers}.isdisjoint(DROPPED)
    for session in (talk.session, other.session):
        assert await one.store.real.session(SessionKey(OTHERS, session)) is None
    assert await one.store.real.session(other.key) is None
    await nothing_was_lost(talk, "u1 a1 u2 a2" if path == CHAT else "u1 a1")
    found = await one.store.real.session(talk.key)
    assert found is not None
    assert found.user is None
