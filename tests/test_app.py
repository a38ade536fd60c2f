"""The application as a whole: what is at which path, how it starts, what it leaves behind."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import pickle
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import pytest_asyncio

from proxy import __version__, app, factory
from tests.support.processes.running import settings_for
from tests.support.rig import CHAT, KEY, Rig, rig
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw
from tests.support.upstream.answers import chat_stream, sse
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY = json.dumps({"model": "m", "messages": messages("u1")}).encode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("app")
    async with rig(folder, server__admin_key="root") as ready:
        yield ready


@pytest.fixture
def one(running: Rig) -> Rig:
    running.reset()
    return running


def error(answered: raw.Answer) -> dict[str, object]:
    """The error of an answer of the proxy's own, in OpenAI's shape."""
    assert answered.get("content-type") == b"application/json"
    said = json.loads(answered.body)
    assert said.keys() == {"error"}
    assert said["error"].keys() == {"message", "type", "param", "code"}
    found: dict[str, object] = said["error"]
    return found


# Paths


@pytest.mark.parametrize("path", ["/chat/completions", "/models", "/openai/chat/completions"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_base_url_without_v1_is_told_what_is_missing(
    one: Rig, method: str, path: str
) -> None:
    answered = await raw.ask(one.port, method, path, [], BODY)
    assert answered.status == 404
    said = error(answered)
    assert said["code"] == "not_found"
    assert "/v1" in str(said["message"])
    assert one.up.requests == []


async def test_what_is_asked_where_nothing_is_is_counted_and_logged_without_its_path(
    one: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "proxy.access")
    for path in ("/kai/chat/completions", "/kai"):
        assert (await raw.ask(one.port, "POST", path, [], BODY)).status == 404
    lines = [vars(each)["fields"] for each in caplog.records if each.name == "proxy.access"]
    assert [line["path"] for line in lines] == [".../chat/completions", "..."]
    assert {(line["route"], line["status"], line["error"]) for line in lines} == {
        ("other", 404, "not_found")
    }
    told = (await one.client.get("/metrics")).text
    assert 'memory_requests_total{memory="none",route="other",status="404"}' in told
    assert "kai" not in told


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/v2/models", "/s/x/y", "/%2e%2e", "/v1x", "/v1", "/v1?x=1", "/s/x/v1"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PROPFIND"])
async def test_other_paths_are_404_in_openais_shape(one: Rig, method: str, path: str) -> None:
    answered = await raw.ask(one.port, method, path, [], b"")
    assert (answered.status, error(answered)["code"]) == (404, "not_found")
    assert one.up.requests == []


async def test_who_opens_the_address_itself_is_led_to_the_console(one: Rig) -> None:
    browser = [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")]
    answered = await raw.ask(one.port, "GET", "/", browser)
    assert (answered.status, answered.get("location")) == (307, b"memory/")
    assert (await raw.ask(one.port, "GET", "/memory/")).status == 200
    assert (await raw.ask(one.port, "POST", "/")).status == 405


@pytest.mark.parametrize("accept", [[], [("Accept", "*/*")], [("Accept", "application/json")]])
async def test_a_program_that_asks_there_is_told_where_things_are(
    one: Rig, accept: list[tuple[str, str]]
) -> None:
    answered = await raw.ask(one.port, "GET", "/", accept)
    assert (answered.status, answered.get("vary")) == (200, b"accept")
    told = json.loads(answered.body)
    assert (told["name"], told["version"]) == ("memory-proxy", __version__)
    for place in (told["console"], told["openapi"], told["health"]):
        assert (await raw.ask(one.port, "GET", f"/{place}")).status == 200, place
    assert (await raw.ask(one.port, "GET", f"/{told['base_url']}/models")).status == 200


@pytest.mark.parametrize("path", ["/memory/none", "/memory/v1/nothing", "/memory/v1/sessions/none"])
async def test_unknown_paths_of_the_memory_api_are_404(one: Rig, path: str) -> None:
    answered = await raw.ask(one.port, "GET", path, [("Authorization", f"Bearer {KEY}")])
    assert answered.status == 404
    assert error(answered)["code"] in ("not_found", "session_not_found")


async def test_health_metrics_and_memory_are_beside_the_relay(one: Rig) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/memory/v1/sessions"):
        answered = await raw.ask(one.port, "GET", path, [("Authorization", f"Bearer {KEY}")])
        assert answered.status == 200, path
        assert answered.get("date") is not None
    assert one.up.requests == []


async def test_what_is_said_is_read_through_the_memory_api(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1", stream=True)
    answered = await raw.ask(
        one.port,
        "GET",
        f"/memory/v1/sessions/{talk.session}/messages",
        [("Authorization", f"Bearer {KEY}")],
    )
    assert [m["message"]["role"] for m in json.loads(answered.body)["data"]] == [
        "user",
        "assistant",
    ]


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/s/x/v1/chat/completions"])
async def test_the_admin_key_opens_no_relay_and_is_never_forwarded(one: Rig, path: str) -> None:
    headers = [("Authorization", "Bearer root"), ("X-Session-Id", "s")]
    answered = await raw.ask(one.port, "POST", path, headers, BODY)
    assert (answered.status, error(answered)["code"]) == (401, "invalid_api_key")
    assert one.up.requests == []


# The socket


async def test_answers_do_not_wait_for_the_clients_acknowledgement(one: Rig) -> None:
    """Without TCP_NODELAY each small piece of a stream may wait 40 ms for the one before it."""
    async with raw.line(one.port) as line:
        await line.send(raw.request("GET", "/healthz"))
        assert (await line.answer()).status == 200
        connections = list(one.proxy.server.server_state.connections)
        mine = [connection.transport.get_extra_info("socket") for connection in connections]
        assert mine
        assert all(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for s in mine)


async def test_a_connection_carries_one_request_after_another(one: Rig) -> None:
    async with raw.line(one.port) as line:
        for _ in range(3):
            for target in (CHAT, "/healthz", "/nothing"):
                await line.send(raw.request("POST", target, [("X-Session-Id", "k")], BODY))
                assert (await line.answer("POST")).whole


async def test_requests_that_come_at_once_are_answered_in_order(one: Rig) -> None:
    one.up.strict = False
    async with raw.line(one.port) as line:
        targets = [f"/v1/x?n={n}" for n in range(5)]
        await line.send(b"".join(raw.request("POST", target, [], b"{}") for target in targets))
        answers = [await line.answer() for _ in targets]
    assert [answered.status for answered in answers] == [200] * 5
    assert [r.target.decode() for r in one.up.requests] == targets


# Start and end


async def test_the_factory_travels_to_worker_processes(tmp_path: Path) -> None:
    made = partial(factory.application, settings_for(tmp_path, "http://127.0.0.1:1/v1"))
    assert callable(pickle.loads(pickle.dumps(made))())


@pytest.mark.parametrize(
    "store",
    [
        pytest.param("redis://127.0.0.1:1", id="redis"),
        pytest.param("redis+cluster://127.0.0.1:1", id="redis-cluster"),
        pytest.param("redis+sentinel://127.0.0.1:1/main", id="redis-sentinel"),
        pytest.param("sqlite:////proc/nowhere/memory.db", id="sqlite"),
    ],
)
async def test_it_starts_and_chats_without_its_store(tmp_path: Path, store: str) -> None:
    async with rig(tmp_path, store__url=store, store__timeout=0.25) as alone:
        assert (await raw.ask(alone.port, "GET", "/healthz")).status == 200
        assert (await raw.ask(alone.port, "GET", "/readyz")).status == 503
        for stream in (False, True):
            talk = alone.talk()
            response = await talk.ask(messages("u1"), answer("a1", stream=stream), stream=stream)
            assert response.status_code == 200
            assert response.headers["x-memory-status"] == "degraded"
            assert response.headers["x-memory-reason"] in ("store_error", "store_timeout")
            assert talk.sent == "u1"


async def test_no_request_is_taken_while_what_would_halt_them_all_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first to need it waits for whoever computes it, and the event loop with it."""
    taken, early = threading.Event(), list[bool]()
    warm = SimpleNamespace(warm=lambda: early.append(taken.wait(0.5)))
    monkeypatch.setattr(app, "CUES", warm)
    async with rig(tmp_path):
        taken.set()
    assert early == [False]


async def test_nothing_is_left_behind_after_the_end(tmp_path: Path) -> None:
    async with rig(tmp_path / "first") as first:  # libraries open what they keep for ever
        await first.talk().say("u1", "a1")
    gc.collect()
    # Of what others have left some may go meanwhile; nothing may be added.
    tasks, threads, files = asyncio.all_tasks(), set(threading.enumerate()), open_files()
    descriptors = psutil.Process().num_fds()
    async with rig(tmp_path / "second") as second:
        talk = second.talk()
        await talk.say("u1", "a1")
        await talk.say("u2", "a2", stream=True)
        second.up.reply(sse(chat_stream(["x"])[:2], hang="body"))
        async with raw.line(second.port) as line:
            sent = [*talk.all_headers.items()]
            await line.send(raw.request("POST", CHAT, sent, BODY.replace(b"u1", b"u3")))
            await line.head()
        await asyncio.wait_for(second.up.requests[-1].gone.wait(), PATIENCE)
    gc.collect()
    assert asyncio.all_tasks() - tasks == set()
    left = [thread for thread in threading.enumerate() if thread not in threads]
    assert [t.name for t in left if not t.name.startswith("asyncio_")] == []  # the loop's own pool
    assert open_files() - files == Counter()
    assert psutil.Process().num_fds() <= descriptors


def open_files() -> Counter[str]:
    """Files and listening sockets of this process, by path and address."""
    process = psutil.Process()
    sockets = [f"{c.laddr}-{c.status}" for c in process.net_connections() if c.status == "LISTEN"]
    return Counter([*sockets, *(f.path for f in process.open_files())])
