"""How commands find the memory, and what they say where they do not."""

from __future__ import annotations

import json
import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from typer.testing import CliRunner

from proxy.cli import app
from proxy.tenancy import digest_of
from tests.commands.conftest import ADMIN, KEY, Program
from tests.support.processes.program import clients_in

RUNNER = CliRunner()


def test_no_proxy_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    result = RUNNER.invoke(app, ["sessions", "list", "--url", f"http://127.0.0.1:{port}"])
    assert result.exit_code == 1
    assert "Start the proxy, name another with --url, or use --store" in result.stderr


def test_what_a_proxy_is_late_with_may_go_on_there(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def late(client: httpx.Client, request: httpx.Request, **_: object) -> httpx.Response:
        waited.append(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("timed out", request=request)

    monkeypatch.setattr(httpx.Client, "send", late)
    for command in (
        ["users", "erase", "kai"],
        ["users", "erase", "kai", "--yes"],
        ["sessions", "delete", "s", "--yes"],
        ["sessions", "fork", "s", "copy"],
        ["sessions", "rewind", "s", "--turns", "1", "--yes"],
        ["sessions", "import", __file__],
    ):
        result = RUNNER.invoke(app, [*command, "--url", "http://127.0.0.1:1"])
        assert (result.exit_code, waited.pop()) == (1, 3600)
        assert "may go on there" in result.stderr and "Start the proxy" not in result.stderr


@pytest.mark.parametrize("answered", [401, 404, 409])
def test_what_another_server_answers_says_nothing_about_memory(answered: int) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(answered)

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        Thread(target=server.handle_request).start()
        url = f"http://127.0.0.1:{server.server_port}"
        result = RUNNER.invoke(app, ["users", "show", "kai", "--url", url])
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"with status {answered}, is not the proxy's memory API" in result.stderr


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/typo.db"
    result = RUNNER.invoke(app, ["sessions", "list", "--store", store])
    assert (result.exit_code, list(tmp_path.iterdir())) == (3, [])
    assert "There is no database at" in result.stderr


def test_a_store_that_cannot_be_reached_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    result = RUNNER.invoke(app, ["sessions", "list", "--store", f"redis://127.0.0.1:{port}"])
    assert result.exit_code == 1
    assert result.stderr.startswith("memory-proxy: The store does not work: ")


def test_wrong_settings_are_told_like_those_of_serve(tmp_path: Path) -> None:
    config = tmp_path / "proxy.toml"
    config.write_text("[memory]\nmax_tokenz = 5\n")
    result = RUNNER.invoke(app, ["sessions", "list", "--config", str(config)])
    assert result.exit_code == 2
    assert "memory.max_tokenz: unknown setting" in result.stderr


def test_url_and_store_exclude_each_other() -> None:
    result = RUNNER.invoke(app, ["stats", "--url", "http://a", "--store", "memory://"])
    assert result.exit_code == 2


def test_a_tenant_needs_the_administrators_key(program: Program) -> None:
    arguments = ["sessions", "list", "--url", program.url, "--tenant", "anonymous"]
    assert RUNNER.invoke(app, arguments).exit_code == 4
    allowed = RUNNER.invoke(app, arguments, env={"MEMORY_PROXY_ADMIN_KEY": ADMIN})
    assert allowed.exit_code == 0, allowed.output


COMMANDS = [
    ["sessions", "list"],
    ["sessions", "export"],
    ["users", "list"],
    ["users", "erase", "alice", "--yes"],
    ["stats"],
]


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_a_wrong_administrators_key_ends_with_4_and_does_nothing(
    named: bool, command: list[str], program: Program, talked: str
) -> None:
    whose = ["--tenant", digest_of(KEY.encode())] if named else []
    arguments = [*command, *whose, "--url", program.url]
    result = RUNNER.invoke(app, arguments, env={"MEMORY_PROXY_ADMIN_KEY": f"{ADMIN}x"})
    assert (result.exit_code, result.stdout) == (4, "")
    assert "administrator" in result.stderr
    assert program.api("GET", f"/sessions/{talked}").status_code == 200


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
@pytest.mark.parametrize("at", ["proxy", "store"])
def test_a_tenant_of_nobody_ends_with_3(command: list[str], at: str, program: Program) -> None:
    where = ["--url", program.url] if at == "proxy" else ["--store", program.store]
    arguments = [*command, "--tenant", "nobody", *where]
    result = RUNNER.invoke(app, arguments, env={"MEMORY_PROXY_ADMIN_KEY": ADMIN})
    assert (result.exit_code, result.stdout) == (3, "")
    assert "There is no tenant 'nobody': nothing is kept of it. memory-proxy tenants list" in (
        result.stderr
    )


@pytest.mark.parametrize("at", ["proxy", "store"])
def test_a_backup_is_put_back_into_a_tenant_that_is_new(
    at: str, program: Program, talked: str, tmp_path: Path
) -> None:
    where = ["--url", program.url] if at == "proxy" else ["--store", program.store]
    admin = {"MEMORY_PROXY_ADMIN_KEY": ADMIN}
    old, new, file = digest_of(KEY.encode()), f"new-at-{at}", str(tmp_path / "all.ndjson")
    for arguments in (
        ["sessions", "export", "--tenant", old, "-o", file],
        ["sessions", "import", file, "--tenant", new],
        ["sessions", "show", talked, "--tenant", new],
        ["sessions", "delete", talked, "--yes", "--tenant", new],
    ):
        result = RUNNER.invoke(app, [*arguments, *where], env=admin)
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("at", ["proxy", "store"])
def test_tenants_are_listed_for_the_administrator(at: str, program: Program, talked: str) -> None:
    where = ["--url", program.url] if at == "proxy" else ["--store", program.store]
    admin = {"MEMORY_PROXY_ADMIN_KEY": ADMIN, "MEMORY_PROXY_KEY": KEY}
    listed = RUNNER.invoke(app, ["tenants", "list", "--json", *where], env=admin)
    assert listed.exit_code == 0, listed.stderr
    assert digest_of(KEY.encode()) in [json.loads(row)["id"] for row in listed.stdout.splitlines()]
    shown = RUNNER.invoke(app, ["tenants", "list", *where], env={**admin, "COLUMNS": "200"})
    assert digest_of(KEY.encode()) in shown.stdout.split()


@pytest.mark.parametrize("key", ["", "wrong"])
def test_tenants_are_the_administrators_to_list(key: str, program: Program) -> None:
    environ = {"MEMORY_PROXY_KEY": KEY, "MEMORY_PROXY_ADMIN_KEY": key}
    result = RUNNER.invoke(app, ["tenants", "list", "--url", program.url], env=environ)
    assert (result.exit_code, result.stdout) == (4, "")


@pytest.mark.parametrize("at", ["proxy", "store"])
def test_keys_may_be_files_as_those_of_serve_are(
    at: str, program: Program, talked: str, tmp_path: Path
) -> None:
    where = ["--url", program.url] if at == "proxy" else ["--store", program.store]
    for name, key in (("KEY", KEY), ("ADMIN_KEY", ADMIN)):
        (tmp_path / name).write_text(f"{key}\n")
    own = {"MEMORY_PROXY_KEY_FILE": str(tmp_path / "KEY")}
    shown = RUNNER.invoke(app, ["sessions", "show", talked, *where], env=own)
    assert shown.exit_code == 0, shown.output
    admin = {"MEMORY_PROXY_ADMIN_KEY_FILE": str(tmp_path / "ADMIN_KEY")}
    listed = RUNNER.invoke(app, ["tenants", "list", *where], env=admin)
    assert listed.exit_code == 0, listed.output


def test_a_file_of_a_key_that_is_not_there_is_told(program: Program) -> None:
    arguments = ["sessions", "list", "--url", program.url]
    result = RUNNER.invoke(app, arguments, env={"MEMORY_PROXY_KEY_FILE": "/no/such"})
    assert (result.exit_code, result.stdout) == (2, "")
    told = "memory-proxy: MEMORY_PROXY_KEY_FILE: /no/such: No such file or directory\n"
    assert result.stderr == told


@pytest.mark.parametrize("key", ["sk-hush\n", "sk-hush\r\nX-Admin: 1", "sk hush", "sk-hüsh"])
@pytest.mark.parametrize("name", ["MEMORY_PROXY_KEY", "MEMORY_PROXY_ADMIN_KEY"])
def test_what_no_header_carries_is_no_key_and_is_not_told(
    name: str, key: str, program: Program
) -> None:
    arguments = ["sessions", "list", "--url", program.url]
    result = RUNNER.invoke(app, arguments, env={name: key})
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"memory-proxy: {name} holds characters that no key has")
    assert not any(piece in result.stderr for piece in ("hush", "hüsh", "X-Admin"))


def test_on_a_store_it_is_no_key_either(program: Program) -> None:
    arguments = ["sessions", "list", "--store", program.store]
    result = RUNNER.invoke(app, arguments, env={"MEMORY_PROXY_KEY": "sk-hush\n"})
    assert (result.exit_code, "hush" in result.output) == (2, False)


@pytest.mark.parametrize("url", ["localhost:8080", "http://[::1", "ftp://a", "http://", "a b"])
def test_what_is_no_url_is_said_with_one_that_is(url: str) -> None:
    result = RUNNER.invoke(app, ["sessions", "list", "--url", url])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is not the URL of a proxy; write it like http://127.0.0.1:8080" in result.stderr


def test_an_id_that_is_no_text_is_said(program: Program) -> None:
    result = RUNNER.invoke(app, ["sessions", "show", "\udcff", "--url", program.url])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "not UTF-8" in result.stderr


def test_the_administrator_is_told_to_name_a_tenant(program: Program) -> None:
    arguments = ["sessions", "list", "--url", program.url]
    result = RUNNER.invoke(app, arguments, env={"MEMORY_PROXY_ADMIN_KEY": ADMIN})
    assert (result.exit_code, "Say whose memory you mean: --tenant." in result.stderr) == (2, True)


@pytest.mark.parametrize(("tenant", "doubted"), [("alise", True), ("alice", False)])
def test_a_tenant_that_no_client_has_is_doubted(
    tenant: str, doubted: bool, program: Program, tmp_path: Path
) -> None:
    config = clients_in(tmp_path)
    arguments = ["sessions", "list", "--store", program.store, "--config", str(config)]
    result = RUNNER.invoke(app, [*arguments, "--tenant", tenant])
    assert result.exit_code == (3 if doubted else 0), result.stderr
    assert ('no client is called "alise"' in result.stderr) is doubted


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_completion(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without it the shell that the tests run in is looked for.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = RUNNER.invoke(app, ["--show-completion", shell])
    assert result.exit_code == 0
    assert "memory" in result.output.lower()
