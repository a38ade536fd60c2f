"""The commands as people type them: what they print, and how they end."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from errno import EACCES
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from proxy import __version__
from proxy.cli import app
from proxy.memory.items import Change, ItemOwner
from proxy.memory.model import Card, Commit, Draft, Exchange, SessionKey
from proxy.memory.recording.spool import Kind, Spool
from proxy.memory.store import StoreError
from proxy.stores.address import read_address
from proxy.stores.open import open_store
from proxy.stores.sqlite.schema import MIGRATIONS, SCHEMA, migrate, schema_of
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.processes.program import clients_in, line, running
from tests.support.processes.redis import standalone
from tests.support.store.inside import store_at
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import PATIENCE

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default store and spool are relative to where one is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_the_version_is_said() -> None:
    result = RUNNER.invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"memory-proxy {__version__}\n")


def test_the_version_is_a_command_as_well() -> None:
    assert RUNNER.invoke(app, ["version"]).output == f"memory-proxy {__version__}\n"


@pytest.mark.parametrize("arguments", [["-h"], ["serve", "-h"], ["sessions", "list", "-h"]])
def test_help_has_a_short_name_everywhere(arguments: list[str]) -> None:
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0
    assert "Usage:" in result.output


def test_help_begins_with_what_runs_the_proxy() -> None:
    output = RUNNER.invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    listed = re.findall(r"^│ (\w+) {2,}", output, re.MULTILINE)
    assert listed[:3] == ["serve", "check", "demo"]


@pytest.mark.parametrize("command", ["serve", "check"])
def test_wrong_configuration_ends_with_2_and_every_problem(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("proxy.toml").write_text("[memory]\nmax_tokenz = 5\nevict_to = 7\n")
    monkeypatch.setenv("MEMORY_PROXY_WORKERS", "none")
    result = RUNNER.invoke(app, [command, "--config", "proxy.toml", "--port", "http"])
    assert result.exit_code == 2
    assert sorted(text.split(":")[1].strip() for text in result.stderr.splitlines()) == [
        "--port",
        "MEMORY_PROXY_WORKERS",
        "memory.evict_to",
        "memory.max_tokenz",
    ]


def test_a_file_that_may_not_be_read_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path) -> bytes:
        raise PermissionError(EACCES, "Permission denied")

    Path("proxy.toml").touch()
    monkeypatch.setattr(Path, "read_bytes", denied)
    monkeypatch.setattr("os.access", lambda *_: False)
    result = RUNNER.invoke(app, ["check", "--config", "proxy.toml"])
    assert result.stderr == "memory-proxy: --config proxy.toml: Permission denied\n"


def test_a_store_url_that_means_nothing_is_wrong_configuration() -> None:
    result = RUNNER.invoke(app, ["serve", "--store", "redis+cluster://a/3"])
    assert result.exit_code == 2
    assert result.stderr.startswith("memory-proxy: --store: a cluster has database 0 only")


def test_serve_says_that_the_port_is_in_use(taken: int) -> None:
    result = RUNNER.invoke(app, ["serve", "--port", str(taken)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"memory-proxy: cannot listen on 127.0.0.1:{taken}: address already in use; "
        "choose another port with --port\n"
    )


def test_serve_says_that_this_machine_has_no_such_address() -> None:
    result = RUNNER.invoke(app, ["serve", "--host", "192.0.2.1"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("has no such address; choose another with --host\n")


def test_serve_says_that_the_store_cannot_be_written() -> None:
    Path("data").write_text("a file where the folder should be")
    result = RUNNER.invoke(app, ["serve"])
    assert result.exit_code == 1
    assert result.stderr.startswith("memory-proxy: cannot write in the folder ")
    assert result.stderr.count("\n") == 1


async def check(*arguments: str) -> tuple[int, str]:
    """Run it beside the event loop that the scripted upstream lives in."""
    with running(["proxy", "check", *arguments], Path.cwd(), {"COLUMNS": "200"}) as process:
        output, errors = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
        return process.returncode, output + errors


async def test_check_ends_with_0_where_all_is_well_and_shows_no_secret() -> None:
    Path("proxy.toml").write_text('[server]\nadmin_key = "hush"\n[profiles.brief]\nttl = 60\n')
    async with ScriptedUpstream() as up:
        status, output = await check("--config", "proxy.toml", "--upstream", up.url)
    assert status == 0, output
    rows = (text.split() for text in output.splitlines())
    settings = {row[0]: row[1] for row in rows if len(row) > 1}
    assert settings["server.admin_key"] == "********"
    assert settings["profiles.brief.ttl"] == "60"
    assert settings["upstream.url"] == up.url
    assert "hush" not in output


async def test_check_ends_with_1_where_the_upstream_is_away() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        status, output = await check("--upstream", url)
    assert status == 1
    assert f"FAIL upstream: {url} cannot be reached" in output
    assert "ok   store" in output


async def test_check_prints_a_line_for_each_finding_however_narrow_the_terminal() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/a/long/path/to/the/api/of/somebody/v1"
        with running(["proxy", "check", "--upstream", url], Path.cwd(), {"COLUMNS": "40"}) as run:
            output, _ = await asyncio.to_thread(run.communicate, timeout=PATIENCE)
    (told,) = (text for text in output.splitlines() if text.startswith("FAIL"))
    assert told == (
        f"FAIL upstream: {url} cannot be reached: nothing listens there (connection refused)"
    )
    (row,) = (text for text in output.splitlines() if text.startswith("upstream.url"))
    assert row.split() == ["upstream.url", url]


async def test_check_has_json_for_programs() -> None:
    async with ScriptedUpstream() as up:
        status, output = await check("--upstream", up.url, "--port", "0", "--json")
        found = json.loads(output)
    assert (status, found["ok"]) == (0, True)
    assert found["settings"]["upstream.url"] == up.url
    assert [(each["grade"], each["part"]) for each in found["findings"]] == [
        ("ok", "store"),
        ("ok", "upstream"),
        ("ok", "spool"),
        ("ok", "server"),
    ]
    status, output = await check("--upstream", up.url, "--port", "0", "--json")
    assert (status, json.loads(output)["ok"]) == (1, False)
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("schema", ["newer", "none"])
def test_serve_does_not_start_on_a_file_that_can_never_be_used(schema: str) -> None:
    path = Path("memory.db")
    if schema == "newer":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 99")
    else:
        path.write_text("no database " * 50)
    before = path.read_bytes()
    result = RUNNER.invoke(app, ["serve", "--port", "0", "--store", "sqlite:///memory.db"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"memory-proxy: store.url: {path.absolute()}: ")
    assert "or another file" in result.stderr or "name another file" in result.stderr
    assert path.read_bytes() == before


def older() -> Path:
    """The default database, as an older release left it."""
    path = Path("data/memory.db").absolute()
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:4])
    return path


def test_serve_brings_an_older_file_up_to_date_and_says_so_in_a_line() -> None:
    path = older()
    with running(["proxy", "serve", "--port", "0", "--workers", "2"], Path.cwd()) as process:
        url = line(process, "listening on").split()[-1]
        assert httpx.get(f"{url}/readyz", timeout=PATIENCE).status_code == 200
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE)
    said = [text for text in errors.splitlines() if "from schema 4" in text]
    assert [text.partition(" the database ")[2] for text in said] == [
        f"{path} was brought from schema 4 to {SCHEMA}"
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["sessions", "list", "--store", "sqlite:///data/memory.db"],
        ["users", "erase", "ann", "--yes", "--store", "sqlite:///data/memory.db"],
        ["tenants", "move", "a", "b"],
        ["reindex"],
    ],
    ids=" ".join,
)
def test_no_other_command_brings_a_file_up_to_date(command: list[str]) -> None:
    path = older()
    result = RUNNER.invoke(app, command)
    assert result.exit_code == 1
    assert f"has schema 4, this release writes {SCHEMA}" in result.stderr
    assert schema_of(path, PATIENCE) == 4


def test_a_port_in_use_leaves_the_file_to_who_serves_there(taken: int) -> None:
    path = older()
    assert RUNNER.invoke(app, ["serve", "--port", str(taken)]).exit_code == 1
    assert schema_of(path, PATIENCE) == 4


def test_a_wrong_password_is_said_at_the_start_in_one_line() -> None:
    with standalone(requirepass="right") as server:
        url = server.url.replace("//", "//:wrong@")
        upstream = ["--upstream", "http://127.0.0.1:9/v1"]
        arguments = ["proxy", "serve", "--port", "0", "--store", url, *upstream]
        with running(arguments, Path.cwd()) as process:
            address = line(process, "listening on").split()[-1]
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            httpx.get(f"{address}/healthz", timeout=PATIENCE)
            for _ in range(2):
                httpx.post(
                    f"{address}/v1/chat/completions",
                    json=body,
                    headers={"x-session-id": "s"},
                    timeout=PATIENCE,
                )
            process.terminate()
            _, errors = process.communicate(timeout=PATIENCE)
    told = [text for text in errors.splitlines() if "password is missing or wrong" in text]
    assert "the store cannot be used, chats go on without memory" in told[0]
    assert "wrong" not in errors.replace("password is missing or wrong", "")
    # Every line begins with its time: none belongs to a trace.
    assert all(text[:2] == "20" for text in errors.splitlines()), errors


async def test_tenants_move_hands_over_what_is_stored() -> None:
    url = "sqlite:///data/memory.db"
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    await store.commit(SessionKey("old", "s"), said_hello())
    await store.close()
    result = await asyncio.to_thread(RUNNER.invoke, app, ["tenants", "move", "old", "new"])
    assert (result.exit_code, result.output) == (0, "1 session moved\n")
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    try:
        assert await store.session(SessionKey("old", "s")) is None
        moved = await store.session(SessionKey("new", "s"))
        assert moved is not None
        assert moved.messages == 1
    finally:
        await store.close()


async def moving(old: str, new: str, /, *more: str, **stored: Sequence[str]) -> Result:
    """``tenants move`` where these tenants have these sessions."""
    async with store_at("sqlite:///data/memory.db") as store:
        for tenant, sessions in stored.items():
            for session in sessions:
                await store.commit(SessionKey(tenant, session), said_hello())
    arguments = ["tenants", "move", old, new, *more]
    return await asyncio.to_thread(RUNNER.invoke, app, arguments)


async def test_tenants_move_says_how_many_stayed() -> None:
    result = await moving("old", "new", old=["a", "b"], new=["b"])
    expected = "1 session moved\n1 session stayed: new has one of the same id\n"
    assert (result.exit_code, result.stdout) == (0, expected)


@pytest.mark.parametrize(
    ("end", "status"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143), (StoreError("x"), 1)]
)
async def test_tenants_move_that_is_cut_short_says_how_far_it_came(
    end: BaseException, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut(store: SQLiteStore) -> None:
        raise end

    with monkeypatch.context() as during:
        during.setattr(SQLiteStore, "_empty_log", cut)
        result = await moving("old", "new", old=["a", "b"])
    assert (result.exit_code, result.stdout) == (status, "")
    assert result.stderr.startswith("memory-proxy: 2 sessions moved; run it again to go on\n")


async def test_tenants_move_moves_nothing_while_exchanges_of_the_tenant_wait_in_the_spool() -> None:
    store = read_address("sqlite:///data/memory.db").name
    with closing(Spool(Path("data/spool.db"), store, 10**9)) as spool:
        spool.open()
        kept: list[tuple[str, Kind]] = [("a", "commit"), ("a", "amendment"), ("b", "commit")]
        for session, kind in kept:
            spool.put(SessionKey("old", session), f"x{session}", kind, b"{}")
        result = await moving("old", "new", old=["a"])
        assert (result.exit_code, result.stdout) == (1, "")
        assert "nothing is moved: the spool has 2 exchanges of old" in result.stderr
        for entry in spool.entries():
            spool.quarantine(entry, "foreign")
        assert (await moving("old", "new")).stdout == "1 session moved\n"


async def test_tenants_move_makes_no_spool_and_moves_nothing_without_looking_into_it() -> None:
    await moving("old", "new", old=["a"])
    spool = Path("data/spool.db")
    assert not spool.exists()
    spool.mkdir()
    result = await moving("new", "old")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the spool cannot be used" in result.stderr


async def test_tenants_move_of_nothing_ends_with_3() -> None:
    result = await moving("odl", "new", old=["a"])
    assert (result.exit_code, result.stdout) == (3, "")
    assert "odl has no memory in this store" in result.stderr


async def test_tenants_move_hands_over_items_without_sessions() -> None:
    change = Change(namespace=("users", "kai", "notes"), key="n", value=b"{}")
    async with store_at("sqlite:///data/memory.db") as store:
        await store.change_items(ItemOwner("old", "kai"), [change])
    result = await moving("old", "new")
    assert (result.exit_code, result.stdout) == (0, "0 sessions moved\n")
    async with store_at("sqlite:///data/memory.db") as store:
        assert await store.people("new") == ["kai"]


@pytest.mark.parametrize(("old", "new"), [("", "new"), ("old", ""), ("old", "old")])
async def test_tenants_move_wants_two_names(old: str, new: str) -> None:
    result = await moving(old, new, old=["a"])
    assert (result.exit_code, "two names of tenants" in result.stderr) == (2, True)


@pytest.mark.parametrize(("new", "doubted"), [("alise", True), ("alice", False)])
async def test_tenants_move_doubts_what_no_client_is_called(
    new: str, doubted: bool, tmp_path: Path
) -> None:
    result = await moving("old", new, "--config", str(clients_in(tmp_path)), old=["a"])
    assert (result.exit_code, result.stdout) == (0, "1 session moved\n")
    assert ('no client is called "alise"' in result.stderr) is doubted


def said_hello() -> Commit:
    card = Card(id="e1.0", role="user", tokens=1, digest="d", created_at=time.time())
    body = b'{"role":"user","content":"hello"}'
    exchange = Exchange(id="e1", profile="", started_at=time.time(), created_at=time.time())
    return Commit(exchange=exchange, drafts=(Draft(card=card, turn="e1.0", body=body),))


@pytest.mark.e2e
@pytest.mark.parametrize("workers", [pytest.param(1, id="one"), pytest.param(2, id="two")])
def test_serve_says_how_to_use_it_serves_and_ends_with_0(workers: int, tmp_path: Path) -> None:
    arguments = ["proxy", "serve", "--port", "0", "--workers", str(workers)]
    with running(arguments, tmp_path) as process:
        base = line(process, "base_url").split('"')[1]
        health = httpx.get(base.removesuffix("/v1") + "/healthz", timeout=PATIENCE, trust_env=False)
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert base.endswith("/v1")
    assert health.status_code == 200


def test_python_dash_m_proxy_is_the_command(tmp_path: Path) -> None:
    with running(["proxy", "--version"], tmp_path) as process:
        assert line(process) == f"memory-proxy {__version__}"
        assert process.wait(PATIENCE) == 0
