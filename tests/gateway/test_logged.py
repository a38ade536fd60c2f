"""What is logged and counted of relayed requests, and what never is."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.gateway.routes import route
from proxy.logs import hashed
from proxy.tenancy import digest_of
from tests.support.processes.running import running, settings_for
from tests.support.rig import KEY, Rig
from tests.support.talk.words import messages
from tests.support.upstream.answers import Script, chat_completion, error_answer, json_answer
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "proxy.access")


def line_of(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    (line,) = (vars(r)["fields"] for r in caplog.records if r.name == "proxy.access")
    found: dict[str, Any] = line
    return found


async def test_a_chat_is_logged_by_model_and_hashes_with_the_upstreams_part_of_the_time(
    one: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    talk = one.talk()
    answer = await talk.ask(messages("u1"), json_answer(chat_completion("a1")))
    line = line_of(caplog)
    assert (line["path"], line["model"]) == ("/v1/chat/completions", "scripted-1")
    assert (line["tenant"], line["session"]) == (
        hashed(digest_of(KEY.encode())),
        hashed(talk.session),
    )
    assert line["request"] == answer.headers["x-memory-exchange-id"]
    assert 0 < line["upstream_ms"] <= line["ms"]
    assert talk.session not in str(line)


@pytest.mark.parametrize("model", ["my name is Kai", "m\nERROR forged", "m" * 101, "modèle", 7])
async def test_a_model_that_is_no_name_is_not_logged(
    one: Rig, caplog: pytest.LogCaptureFixture, model: object
) -> None:
    await one.talk().post({"model": model, "messages": messages("u1")})
    assert "model" not in line_of(caplog)


async def test_an_upstream_that_breaks_off_is_logged_and_counted_by_its_kind(
    one: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    before = await failures(one)
    broken = Script(status=200, headers=(), pieces=(b"0123456789",), cut=4)
    with pytest.raises(Exception, match="peer closed|incomplete"):
        await one.talk().ask(messages("u1"), broken)
    assert line_of(caplog)["error"] == "broken"
    assert changed(before, await failures(one)) == {"broken": 1}


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
async def test_why_an_upstream_is_not_reached_is_in_the_one_line_of_the_request(
    level: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, "proxy.access")
    chosen = settings_for(tmp_path, "http://127.0.0.1:9/v1")
    async with running(chosen) as proxy, httpx.AsyncClient(timeout=PATIENCE) as client:
        assert (await client.get(f"{proxy.v1}/models")).status_code == 502
    (record,) = (each for each in caplog.records if each.name.startswith("proxy."))
    assert (record.name, record.levelname) == ("proxy.access", "WARNING")
    line = line_of(caplog)
    assert line["error"] == "unreachable"
    assert line["cause"] == "no connection: nothing listens there (connection refused)"


@pytest.mark.parametrize("client", ["direct", "aiohttp", "httpx"])
async def test_the_password_of_a_proxy_on_the_way_that_refuses_is_not_logged(
    client: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1") as server:
        place = "{}:{}".format(*server.sockets[0].getsockname())
        chosen = settings_for(
            tmp_path,
            "https://127.0.0.1:9/v1",
            upstream__client=client,
            upstream__proxy=f"http://u:hush@{place}",
        )
        async with running(chosen) as proxy, httpx.AsyncClient(timeout=PATIENCE) as asking:
            assert (await asking.get(f"{proxy.v1}/models")).status_code == 502
    cause = line_of(caplog)["cause"]
    assert "407" in cause and "hush" not in cause


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limited"), (500, "server_error")])
async def test_an_upstream_that_refuses_is_counted_by_its_kind(
    one: Rig, status: int, kind: str
) -> None:
    before = await failures(one)
    answer = await one.talk().ask(messages("u1"), error_answer(status, "not now"))
    assert answer.status_code == status
    assert changed(before, await failures(one)) == {kind: 1}


async def failures(rig: Rig) -> dict[str, float]:
    text = (await rig.client.get("/metrics")).text
    found = re.findall(r'^memory_upstream_errors_total\{kind="(\w+)"\} (\S+)', text, re.M)
    return {kind: float(count) for kind, count in found}


def changed(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {kind: after[kind] - before[kind] for kind in after if after[kind] != before[kind]}


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/chat/completions", "chat/completions"),
        ("/s/my-diary/v1/chat/completions", "chat/completions"),
        ("/openai/deployments/kim/chat/completions", "chat/completions"),
        ("/v1/files/file-kim/content", "files"),
        ("/v1/people/kim", "..."),
        ("/v1/kim", "..."),
    ],
)
async def test_no_id_in_a_path_is_logged(path: str, api: str) -> None:
    found = route(path.encode())
    assert found is not None
    assert found.api == api
