"""How commands find the memory, and what they say where they do not."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proxy.cli import app
from tests.commands.conftest import ADMIN, Program

RUNNER = CliRunner()


def test_no_proxy_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    result = RUNNER.invoke(app, ["sessions", "list", "--url", f"http://127.0.0.1:{port}"])
    assert result.exit_code == 1
    assert "Start the proxy, name another with --url, or use --store" in result.stderr


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
    assert RUNNER.invoke(app, arguments).exit_code == 2
    allowed = RUNNER.invoke(app, arguments, env={"MEMORY_PROXY_ADMIN_KEY": ADMIN})
    assert allowed.exit_code == 0, allowed.output
    refused = RUNNER.invoke(app, arguments, env={"MEMORY_PROXY_ADMIN_KEY": "wrong"})
    assert refused.exit_code in (3, 4) or refused.output == "There are no sessions.\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_completion(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without it the shell that the tests run in is looked for.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = RUNNER.invoke(app, ["--show-completion", shell])
    assert result.exit_code == 0
    assert "memory" in result.output.lower()
