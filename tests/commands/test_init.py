"""``memory-proxy init``: what it writes is asked for, valid, and replaces nothing by itself."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proxy.cli import app
from proxy.commands import init
from proxy.settings import Settings, effective, load
from proxy.settings.file import comments

RUNNER = CliRunner()
FILE = Path("proxy.toml")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written() -> dict[str, object]:
    """Dotted names and values."""
    tree = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {f"{section}.{name}": value for section in tree for name, value in tree[section].items()}


def test_without_a_terminal_it_writes_the_defaults() -> None:
    result = RUNNER.invoke(app, ["init"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "memory-proxy serve --config proxy.toml" in result.stdout
    assert load(FILE) == Settings()
    assert [*written()] == ["upstream.url", "store.url", "server.port", "tenancy.mode"]


def test_what_options_say_is_written_and_each_value_has_its_meaning_above() -> None:
    options = {
        "--upstream": "http://127.0.0.1:11434/v1",
        "--store": 'sqlite:///ö "x".db',
        "--port": "9000",
        "--tenancy": "single",
    }
    words = [word for pair in options.items() for word in pair]
    assert RUNNER.invoke(app, ["init", *words]).exit_code == 0
    assert [str(value) for value in written().values()] == [*options.values()]
    text = FILE.read_text(encoding="utf-8")
    for name in written():
        assert f"{comments()[name]}{name.partition('.')[2]} = " in text
    assert load(FILE).tenancy.mode == "single"


def test_every_setting_has_a_meaning() -> None:
    named = {name for name, _ in effective(Settings())} - {"clients", "profiles", "upstreams"}
    assert named <= {name for name, said in comments().items() if said.startswith("# ")}


def test_check_passes_on_what_it_wrote() -> None:
    assert RUNNER.invoke(app, ["init", "--upstream", "demo", "--port", "0"]).exit_code == 0
    result = RUNNER.invoke(app, ["check", "--config", "proxy.toml"])
    assert result.exit_code == 0, result.output


def test_a_file_that_is_there_stays_unless_it_is_forced() -> None:
    FILE.write_text("# mine\n")
    result = RUNNER.invoke(app, ["init"])
    assert (result.exit_code, FILE.read_text()) == (5, "# mine\n")
    assert "--force" in result.stderr
    assert RUNNER.invoke(app, ["init", "--force", "--port", "9000"]).exit_code == 0
    assert load(FILE).server.port == 9000


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_wrong_values_are_all_told_by_their_options_and_nothing_is_written(
    force: list[str],
) -> None:
    words = ["--port", "x", "--tenancy", "many", "--upstream", "nowhere", "--store", "x://"]
    result = RUNNER.invoke(app, ["init", *words, *force])
    assert result.exit_code == 2
    assert all(f"memory-proxy: {option}: " in result.stderr for option in words[::2])
    assert not FILE.exists()


def test_clients_need_a_list_and_that_is_said() -> None:
    result = RUNNER.invoke(app, ["init", "--tenancy", "clients"])
    assert result.exit_code == 2
    assert "[[clients]]" in result.stderr


def test_a_folder_that_is_not_there_is_an_error() -> None:
    result = RUNNER.invoke(app, ["init", "nowhere/proxy.toml"])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "nowhere/proxy.toml failed: No such file" in result.stderr


def test_in_a_terminal_it_asks_for_what_no_option_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "at_terminal", lambda: True)
    result = RUNNER.invoke(app, ["init", "other.toml", "--store", "memory://"], "demo\n9000\n\n")
    assert result.exit_code == 0
    assert "OpenAI-compatible API" in result.stderr
    assert "store.url" not in result.stderr
    chosen = load(Path("other.toml"))
    assert (chosen.upstream.url, chosen.server.port) == ("demo", 9000)
    assert (chosen.store.url, chosen.tenancy.mode) == ("memory://", "key")


def test_in_a_terminal_what_cannot_be_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "at_terminal", lambda: True)
    said = "nonsense\ndemo\n99999999\n9000\nnobody\nsingle\n"
    result = RUNNER.invoke(app, ["init", "other.toml", "--store", "memory://"], said)
    assert (result.exit_code, result.stderr.count("Error: --")) == (0, 3)
    chosen = load(Path("other.toml"))
    assert (chosen.upstream.url, chosen.server.port) == ("demo", 9000)
    assert chosen.tenancy.mode == "single"


def test_who_leaves_its_questions_interrupts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, and Ctrl-D or an end of the input, are the same to a question."""
    monkeypatch.setattr(init, "at_terminal", lambda: True)
    assert RUNNER.invoke(app, ["init"], input="").exit_code == 130
    assert not FILE.exists()
