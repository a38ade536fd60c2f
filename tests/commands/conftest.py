"""A running program, its memory, and the two ways to it: the proxy, and its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from proxy.cli import app
from tests.support.processes.program import line, running
from tests.support.waiting import PATIENCE

ADMIN = "admin-key-of-the-tests"
KEY = "sk-alice-and-friends"
PATIENT = {"MEMORY_PROXY_STORE__TIMEOUT": "5"}
"""What is tested is not how long a busy machine may take."""


@dataclass(frozen=True, slots=True)
class Program:
    """A proxy that serves; ``store`` is the URL of its file."""

    url: str
    store: str
    folder: Path

    def api(self, method: str, path: str, **arguments: object) -> httpx.Response:
        headers = {"authorization": f"Bearer {KEY}"}
        url = f"{self.url}/memory/v1{path}"
        return httpx.request(
            method,
            url,
            headers=headers,
            timeout=PATIENCE,
            verify=False,
            **arguments,  # type: ignore[arg-type]
        )


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("commands")
    spool = {"MEMORY_PROXY_SPOOL__PATH": f"{folder}/spool.db"}
    environ = {**PATIENT, **spool, "MEMORY_PROXY_ADMIN_KEY": ADMIN}
    store = f"sqlite:///{folder}/memory.db"
    upstream = "http://127.0.0.1:9/v1"
    arguments = ["proxy", "serve", "--port", "0", "--store", store, "--upstream", upstream]
    with (folder / "log.txt").open("w") as log, running(arguments, folder, environ, log) as process:
        url = line(process, "listening on").split()[-1]
        # It listens before it serves, and its store is there once it has been asked.
        assert httpx.get(f"{url}/readyz", timeout=PATIENCE).status_code == 200
        yield Program(url, store, folder)


Run = Callable[..., Result]


@pytest.fixture(params=["proxy", "store"])
def run(request: pytest.FixtureRequest, program: Program) -> Run:
    """Runs a command as the tenant of KEY, at the proxy or on its store."""
    at = ["--url", program.url] if request.param == "proxy" else ["--store", program.store]
    spool = {"MEMORY_PROXY_SPOOL__PATH": f"{program.folder}/spool.db"}
    environ = {**PATIENT, **spool, "MEMORY_PROXY_KEY": KEY}

    def invoke(*arguments: str, stdin: str | bytes | None = None, **more: str) -> Result:
        variables = {**environ, "COLUMNS": "200", **more}
        return CliRunner().invoke(app, [*arguments, *at], input=stdin, env=variables)

    return invoke


@pytest.fixture
def talked(program: Program, request: pytest.FixtureRequest) -> Iterator[str]:
    """A session of two turns with a call of a tool."""
    session = f"talk-{request.node.name.replace('[', '-').replace(']', '')}"
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the weather in Bergen?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Bergen"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "assistant", "content": "It rains."},
        {"role": "user", "content": "And tomorrow?"},
        {"role": "assistant", "content": "It rains again."},
    ]
    body = {"messages": messages, "user": "alice"}
    assert program.api("POST", f"/sessions/{session}/messages", json=body).status_code == 200
    yield session
    program.api("DELETE", f"/sessions/{session}")
