"""Health, readiness and metrics."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from proxy.memory.model import SessionKey
from proxy.memory.recording.spool import Spool, SpoolError
from proxy.memory.store import StoreError, StoreTimeout
from proxy.settings import Settings
from proxy.stores.open import Backend
from tests.support.memory_api import SESSIONS, TOKENIZERS, Site, open_site
from tests.support.store.commits import chat
from tests.support.waiting import PATIENCE


async def test_a_process_that_is_up_says_so_to_everyone(site: Site) -> None:
    async with site.client(peer="203.0.113.7", host="memory.example") as client:
        response = await client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_readiness_says_how_each_part_is(client: httpx.AsyncClient, store: Backend) -> None:
    response = await client.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {
        "status": "ok",
        "store": {"ok": True, "name": store.name},
        "spool": {"ok": True, "waiting": 0, "quarantined": 0},
        "configuration": {"ok": True},
        "tokens": {
            "ok": True,
            "counter": "cl100k_base (offline)",
            "encodings": TOKENIZERS.in_use(),
        },
    }


@pytest.mark.parametrize("error", [None, StoreError("down")], ids=["up", "down"])
async def test_only_this_machine_is_told_where_the_store_is(
    site: Site, store: Backend, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    async def ping(_: object) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(type(store), "ping", ping)
    async with site.client() as near, site.client(peer="203.0.113.7") as far:
        through = {"x-forwarded-for": "203.0.113.7"}
        answers = [await far.get("/readyz"), await near.get("/readyz", headers=through)]
        here = await near.get("/readyz")
    assert here.json()["store"]["name"] == store.name
    for answer in answers:
        assert answer.status_code == here.status_code
        assert "name" not in answer.json()["store"]
        assert store.name not in answer.text


@pytest.mark.parametrize(
    ("error", "up"), [(None, 1), (StoreError(), 0), (RuntimeError(), 0)], ids=["up", "down", "bug"]
)
async def test_metrics_say_whether_the_store_is_up(
    client: httpx.AsyncClient,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception | None,
    up: int,
) -> None:
    async def ping(_: object) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(type(store), "ping", ping)
    assert f"\nmemory_store_up {up}.0\n" in (await client.get("/metrics")).text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StoreError("redis://:hunter2@host"), "the store cannot be used"),
        (StoreTimeout("redis://:hunter2@host"), "the store did not answer in time"),
        (RuntimeError("redis://:hunter2@host"), "the store cannot be used"),
    ],
    ids=["down", "slow", "a bug"],
)
async def test_a_store_that_fails_is_not_ready_and_keeps_its_secrets(
    client: httpx.AsyncClient,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    said: str,
) -> None:
    async def ping(_: object) -> None:
        raise error

    monkeypatch.setattr(type(store), "ping", ping)
    response = await client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert response.json()["store"] == {"ok": False, "name": store.name, "error": said}
    assert response.json()["spool"]["ok"] is True
    assert "hunter2" not in response.text


async def test_a_store_that_hangs_is_waited_for_briefly(
    store: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ping(_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(type(store), "ping", ping)
    settings = Settings.model_validate({"store": {"timeout": 0.05}})
    async with open_site(settings, store, tmp_path) as site, site.client() as client:
        async with asyncio.timeout(PATIENCE):
            response = await client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["store"]["error"] == "the store did not answer in time"


async def test_a_process_that_was_held_up_does_not_take_its_own_time_for_the_stores(
    store: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ping(_: object) -> None:
        asyncio.get_running_loop().call_soon(time.sleep, 1.0)
        await asyncio.sleep(0.01)

    monkeypatch.setattr(type(store), "ping", ping)
    settings = Settings.model_validate({"store": {"timeout": 0.5}})
    async with open_site(settings, store, tmp_path) as site, site.client() as client:
        response = await client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ok")


async def test_a_spool_that_cannot_be_written_is_not_ready(store: Backend, tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    settings = Settings.model_validate({"store": {"timeout": 5}})
    async with open_site(settings, store, blocked) as site, site.client() as client:
        response = await client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["store"]["ok"] is True
    assert response.json()["spool"] == {"ok": False, "error": "the spool cannot be used"}


async def test_a_spool_that_hangs_takes_one_thread_however_often_one_asks(
    store: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, looks = threading.Event(), []

    def check(_: Spool) -> None:
        looks.append(threading.get_ident())
        release.wait(10)

    monkeypatch.setattr(Spool, "check", check)
    settings = Settings.model_validate({"store": {"timeout": 0.05}})
    async with open_site(settings, store, tmp_path) as site, site.client() as client:
        answers = [await client.get("/readyz") for _ in range(3)]
        assert (await client.get("/metrics")).status_code == 200
        assert len(looks) == 1
        release.set()
    errors = {answer.json()["spool"]["error"] for answer in answers}
    assert errors == {"the spool did not answer in time"}


async def test_metrics_say_how_many_tasks_the_loop_has(client: httpx.AsyncClient) -> None:
    async def tasks() -> float:
        text = (await client.get("/metrics")).text
        return next(float(x.split()[1]) for x in text.splitlines() if x.startswith("memory_tasks "))

    before = await tasks()
    more = [asyncio.create_task(asyncio.Event().wait()) for _ in range(50)]
    assert await tasks() >= before + 40
    for task in more:
        task.cancel()


async def test_metrics_are_prometheus_text_with_the_spools_depth(
    client: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.recorder, "replay", _nothing)
    for exchange in ("one", "two"):
        site.spool.put(SessionKey("t", "s"), exchange, "commit", b"{}")

    response = await client.get("/metrics")

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "\nmemory_spool_depth 2.0\n" in response.text
    ready = (await client.get("/readyz")).json()
    assert ready["spool"] == {"ok": True, "waiting": 2, "quarantined": 0}


async def test_what_waits_for_another_store_is_told_and_its_place_to_this_machine_alone(
    site: Site,
) -> None:
    other = Spool(site.spool._path, "redis://elsewhere:6379/0", 1 << 20)
    other.open()
    for exchange in ("one", "two"):
        other.put(SessionKey("t", "s"), exchange, "commit", b"{}")
    other.close()
    async with site.client() as near, site.client(peer="203.0.113.7") as far:
        here, there = await near.get("/readyz"), await far.get("/readyz")
    told = {"ok": True, "waiting": 0, "quarantined": 0, "waiting_elsewhere": 2}
    assert there.json()["spool"] == told and here.status_code == 200
    assert here.json()["spool"] == told | {"elsewhere": {"redis://elsewhere:6379/0": 2}}


async def _nothing() -> None:
    pass


async def test_answers_of_the_memory_api_are_counted(client: httpx.AsyncClient) -> None:
    await client.get(f"{SESSIONS}/nobody")
    text = (await client.get("/metrics")).text
    assert 'memory_requests_total{memory="none",route="memory",status="404"} 1.0' in text
    assert "nobody" not in text


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_a_probe_may_ask_for_the_head_alone(client: httpx.AsyncClient, path: str) -> None:
    head = await client.head(path)
    assert head.status_code == 200
    assert head.headers["content-type"] == (await client.get(path)).headers["content-type"]


async def test_readiness_tells_what_endangers_a_store_that_works(
    store: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def concerns(_: object) -> list[str]:
        asked.append("once")
        return ["it forgets"]

    monkeypatch.setattr(type(store), "warnings", concerns)
    async with open_site(Settings(), store, tmp_path) as site, site.client() as client:
        answers = [(await client.get("/readyz")) for _ in range(5)]
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json()["store"]["warnings"] == ["it forgets"] for answer in answers)
    assert asked == ["once"]


async def test_a_store_that_cannot_say_how_it_is_set_up_is_ready_all_the_same(
    store: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def concerns(_: object) -> list[str]:
        raise RuntimeError("unheard of")

    monkeypatch.setattr(type(store), "warnings", concerns)
    async with open_site(Settings(), store, tmp_path) as site, site.client() as client:
        response = await client.get("/readyz")
    assert response.status_code == 200 and "warnings" not in response.json()["store"]


async def test_sessions_that_cannot_be_had_in_time_are_counted_and_no_reason_not_to_be_ready(
    site: Site, client: httpx.AsyncClient
) -> None:
    site.recorder._failing.mark_failed(SessionKey("t", "s"), StoreTimeout("too long"))
    response = await client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["store"]["troubled_sessions"] == 1


async def test_a_proxy_that_loses_exchanges_is_not_ready_and_says_so(
    site: Site, client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(*_: object) -> None:
        raise SpoolError("no room")

    async def ping(*_: object) -> None:
        raise StoreError("down")

    monkeypatch.setattr(Spool, "put", put)
    lost = chat("x1")
    with monkeypatch.context() as away:
        away.setattr(type(store), "ping", ping)
        what = await site.recorder._backlog.put(SessionKey("t", "s"), "x1", "commit", lost)
    assert what == "lost"
    response = await client.get("/readyz")
    assert response.status_code == 503
    assert "lost" in response.json()["spool"]["error"]


async def test_a_spool_without_room_is_not_ready_and_says_so(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await client.get("/readyz")).status_code == 200
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=4096))
    response = await client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["spool"] == {
        "ok": False,
        "waiting": 0,
        "quarantined": 0,
        "error": "the disk of the spool is full",
    }


async def test_a_spool_that_is_nearly_full_is_not_ready_and_says_what_waits(
    store: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.model_validate({"spool": {"max_bytes": 1 << 20}})
    async with open_site(settings, store, tmp_path) as site, site.client() as client:
        assert (await client.get("/readyz")).status_code == 200
        monkeypatch.setattr(site.recorder, "replay", _nothing)
        site.spool.put(SessionKey("t", "s"), "one", "commit", b"x" * 1_000_000)
        response = await client.get("/readyz")
        metrics = (await client.get("/metrics")).text
    assert response.status_code == 503
    assert response.json()["spool"] == {
        "ok": False,
        "waiting": 1,
        "quarantined": 0,
        "error": "the spool is nearly full",
    }
    assert "\nmemory_spool_depth 1.0\n" in metrics


async def test_probes_wait_for_nobody_elses_work(client: httpx.AsyncClient) -> None:
    threads, over = asyncio.get_running_loop(), threading.Event()
    works = [threads.run_in_executor(None, over.wait) for _ in range(64)]
    try:
        async with asyncio.timeout(PATIENCE):
            answers = [await client.get(path) for path in ("/readyz", "/metrics")]
    finally:
        over.set()
        await asyncio.gather(*works)
    assert [answer.status_code for answer in answers] == [200, 200]
