"""What ``check`` finds out about store, upstream and spool, and what makes it doubt."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from proxy import check
from proxy.settings import ProfileSettings, RecallSettings, Settings, load
from tests.support.upstream import ScriptedUpstream


def settings(folder: Path, **overrides: object) -> Settings:
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    places = {"store.url": f"sqlite:///{folder}/m.db", "spool.path": str(folder / "spool.db")}
    return load(None, {**places, **dotted})


async def test_a_store_that_reads_and_writes_is_ok(tmp_path: Path) -> None:
    found = await check.store(settings(tmp_path))
    assert (found.grade, found.part) == ("ok", "store")


async def test_a_store_that_is_away_is_a_problem_and_its_password_is_not_told(
    tmp_path: Path,
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"redis://u:hush@127.0.0.1:{closed.getsockname()[1]}/0"
        found = await check.store(settings(tmp_path, store__url=url))
    assert (found.grade, found.part) == ("problem", "store")
    assert "hush" not in found.text


@pytest.mark.parametrize("client", ["aiohttp", "httpx"])
async def test_an_upstream_that_answers_is_ok_whatever_it_answers(
    client: str, tmp_path: Path
) -> None:
    async with ScriptedUpstream() as up:
        found = await check.upstream(
            settings(tmp_path, upstream__url=up.url, upstream__client=client)
        )
        assert (found.grade, found.part) == ("ok", "upstream")
        (request,) = up.requests
        assert request.method == "GET"
        assert request.target == b"/v1/models"


async def test_an_upstream_that_is_away_is_a_problem(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        found = await check.upstream(settings(tmp_path, upstream__url=url))
    assert found.grade == "problem"
    assert url in found.text


async def test_the_query_of_an_upstream_is_not_told(tmp_path: Path) -> None:
    async with ScriptedUpstream() as up:
        well = await check.upstream(settings(tmp_path, upstream__url=f"{up.url}?api-key=hush"))
    away = await check.upstream(settings(tmp_path, upstream__url=f"{up.url}?api-key=hush"))
    assert (well.grade, away.grade) == ("ok", "problem")
    assert up.url in well.text and up.url in away.text
    assert "hush" not in well.text + away.text


async def test_a_certificate_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    missing = str(tmp_path / "no.pem")
    chosen = settings(tmp_path, upstream__ca_file=missing, upstream__url="https://localhost:1/v1")
    found = await check.upstream(chosen)
    assert (found.grade, found.part) == ("problem", "upstream")


def test_a_spool_makes_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "spool.db"
    assert check.spool(settings(tmp_path, spool__path=str(path))).grade == "ok"
    assert path.parent.is_dir()
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("overrides", "doubted"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"store.url": "memory://"}, ["store.url"], id="memory"),
        pytest.param(
            {"store.url": "memory://", "server.workers": 2},
            ["store.url", "server.workers"],
            id="memory-of-each-worker",
        ),
        pytest.param({"store.wait_replicas": 1}, ["store.wait_replicas"], id="sqlite-replicas"),
        pytest.param({"server.host": "0.0.0.0"}, ["server.admin_key"], id="public-without-key"),
        pytest.param(
            {"server.host": "0.0.0.0", "server.admin_key": "k", "tenancy.mode": "single"},
            ["tenancy.mode"],
            id="public-and-single",
        ),
        pytest.param({"upstream.url": "http://a.example/v1"}, ["upstream.url"], id="in-the-clear"),
        pytest.param({"upstream.url": "http://ollama:11434/v1"}, [], id="own-network"),
        pytest.param(
            {"memory.summary.enabled": True, "memory.window": "all"},
            ["memory.summary.enabled"],
            id="nothing-to-summarise",
        ),
        pytest.param(
            {"memory.facts.enabled": True, "memory.facts.url": "http://a.example/v1"},
            ["memory.facts.api_key", "memory.facts.url"],
            id="another-api",
        ),
        pytest.param(
            {"memory.facts.url": "http://a.example/v1"}, [], id="another-api-that-is-not-asked"
        ),
    ],
)
def test_what_is_valid_and_probably_not_meant_is_said(
    overrides: dict[str, object], doubted: list[str], tmp_path: Path
) -> None:
    found = [part for part, _ in check.doubts(settings(tmp_path, **overrides))]
    assert found == doubted


def test_a_window_that_recall_leaves_no_room_for_is_said() -> None:
    cramped = ProfileSettings.model_construct(
        max_tokens=1000, recall=RecallSettings.model_construct(enabled=True, max_tokens=1000)
    )
    roomy = cramped.model_copy(update={"max_tokens": 1001})
    cases = {"tight": cramped, "wide": roomy}
    found = check.doubts(Settings.model_construct(profiles=cases))
    assert [part for part, _ in found] == ["profiles.tight.max_tokens"]
