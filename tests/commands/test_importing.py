"""``memory-proxy sessions import`` of what other programs have kept, to an answer that knows it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from proxy.cli import app
from tests.commands.conftest import KEY, PATIENT
from tests.support.processes.program import line, running
from tests.support.talk.foreign import SAMPLES
from tests.support.waiting import PATIENCE, eventually


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A proxy in front of the pretended model, which answers from what it is sent alone."""
    folder = tmp_path_factory.mktemp("importing")
    environ = {**PATIENT, "MEMORY_PROXY_SPOOL__PATH": f"{folder}/spool.db"}
    at = ["--port", "0", "--store", f"sqlite:///{folder}/memory.db"]
    with running(["proxy", "serve", "--upstream", "demo", *at], folder, environ) as process:
        url = line(process, "listening on").split()[-1]
        assert httpx.get(f"{url}/readyz", timeout=PATIENCE).status_code == 200
        yield url


def run(url: str, *arguments: str) -> Result:
    environ = {**PATIENT, "MEMORY_PROXY_KEY": KEY, "COLUMNS": "200"}
    return CliRunner().invoke(app, ["sessions", "import", *arguments, "--url", url], env=environ)


def asked(url: str, user: str, question: str) -> str:
    """What the model answers in a session of its own."""
    headers = {
        "authorization": f"Bearer {KEY}",
        "x-session-id": uuid.uuid4().hex,
        "x-user-id": user,
    }
    body = {"model": "m", "messages": [{"role": "user", "content": question}]}
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=PATIENCE)
    return str(answer.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("claude.json", "What is my boat called?", "My boat is called Heron."),
        ("codex.jsonl", "What did I want to leave at six?", "Leave it at six."),
    ],
)
async def test_what_was_said_elsewhere_is_in_an_answer(
    url: str, name: str, question: str, answer: str
) -> None:
    user = uuid.uuid4().hex
    assert "would be imported" in run(url, str(SAMPLES / name), "--user", user, "--dry-run").output
    assert answer not in asked(url, user, question)
    result = run(url, str(SAMPLES / name), "--user", user)
    assert result.exit_code == 0, result.output

    async def indexed() -> bool:
        path = f"{url}/memory/v1/users/{user}/memories/search"
        headers = {"authorization": f"Bearer {KEY}"}
        found = httpx.post(path, json={"query": question}, headers=headers, timeout=PATIENCE)
        return any(answer in each["text"] for each in found.json()["data"])

    await eventually(indexed)
    assert f'You said: "{answer}"' in asked(url, user, question)


def test_several_files_are_imported_one_after_the_other(url: str) -> None:
    names = ["librechat_flat.json", "open_webui.json", "mem0.json"]
    result = run(url, *(str(SAMPLES / name) for name in names))
    assert result.exit_code == 0, result.output
    assert [row for row in result.stdout.splitlines() if " imported (" in row] == [
        "1 session with 2 messages and 0 memories imported (librechat)",
        "2 sessions with 10 messages and 0 memories imported (open_webui)",
        "0 sessions with 0 messages and 2 memories imported (mem0)",
    ]
    assert [row for row in result.stderr.splitlines() if row.endswith(tuple(names))]


def test_a_format_can_be_forced_and_programs_get_the_answer_of_the_api(url: str) -> None:
    file = str(SAMPLES / "claude_code.jsonl")
    wrong = run(url, file, "--format", "codex")
    told = f"memory-proxy: There is nothing to import in {file}, read as codex: "
    assert (wrong.exit_code, "note: " in wrong.output, told in wrong.stderr) == (1, True, True)
    found = json.loads(run(url, file, "--format", "claude_code", "--dry-run", "--json").stdout)
    assert (found["format"], found["sessions"], found["dry_run"]) == ("claude_code", 1, True)


def test_one_session_cannot_be_two_files(url: str, tmp_path: Path) -> None:
    result = run(url, str(tmp_path / "a"), str(tmp_path / "b"), "--session", "s")
    assert (result.exit_code, "several files" in result.stderr) == (2, True)


def test_a_broken_file_is_told_with_its_place(url: str, tmp_path: Path) -> None:
    file = tmp_path / "cut.jsonl"
    file.write_bytes((SAMPLES / "claude_code.jsonl").read_bytes()[:1500])
    result = run(url, str(file))
    assert result.exit_code != 0
    assert "Line 6 has what is no JSON" in result.stderr
