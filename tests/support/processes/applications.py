"""Programs that use client libraries, as processes that do what a test says.

They are in tests/clients: `programs` for Python, `node` for Node.js.  A process stays until the end
of the run, since what these libraries import takes seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes.environments import python_of
from tests.support.processes.node import CLIENTS, node_with_packages
from tests.support.processes.program import ROOT

PROGRAMS = ROOT / "tests" / "clients" / "programs"
START_SECONDS = 250
"""Plenty, for what imports half of an environment on a busy machine."""
SECONDS = 120

RESPONSES = "-responses"

_PASSED = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE")

QUIET = {
    "AGNO_TELEMETRY": "false",
    "ANONYMIZED_TELEMETRY": "False",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "NO_COLOR": "1",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}
"""Nothing is told to anybody, and nothing is fetched from elsewhere."""


@dataclass(frozen=True, slots=True)
class Client:
    """A program, the environment that it runs in ("node" for Node.js), and what it can do.

    ``ids``: what an upstream's call ids have to look like for the client to keep them.  Of some the
    name ends in RESPONSES: the same program, which asks the Responses API.
    """

    name: str
    environment: str
    does: frozenset[str]

    @property
    def program(self) -> str:
        return self.name.removesuffix(RESPONSES)

    @property
    def api(self) -> str:
        return "chat" if self.program == self.name else "responses"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said in the end: a result, or what was raised."""

    result: Any = None
    raised: Any = None
    piece: Any = None


class Application:
    """One program, in its process; one command at a time."""

    def __init__(self, client: Client, home: Path) -> None:
        self._client, self._home = client, home
        self._log = home / "stderr.txt"
        self._process: subprocess.Popen[str] | None = None

    async def do(self, command: str, origin: str, session: str, **arguments: Any) -> Any:
        """The result; what the program raised fails the test."""
        answer = await self.try_to(command, origin, session, **arguments)
        assert answer.raised is None, f"{answer.raised}\n{self.errors()}"
        return answer.result

    async def try_to(self, command: str, origin: str, session: str, **arguments: Any) -> Answer:
        told = [each async for each in self.told(command, origin, session, **arguments)]
        return told[-1]

    async def told(
        self, command: str, origin: str, session: str, **arguments: Any
    ) -> AsyncIterator[Answer]:
        """The pieces as they come, then the answer."""
        process = await self._started()
        asked = {"do": command, "origin": origin, "session": session, "with": arguments}
        assert process.stdin is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        while "piece" in (line := await self._line(process, SECONDS)):
            yield Answer(**line)
        yield Answer(**line)

    async def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = await asyncio.to_thread(self._start)
            said = await self._line(self._process, START_SECONDS)
            assert set(said["ready"]) >= self._client.does
        return self._process

    def _start(self) -> subprocess.Popen[str]:
        environ = {name: os.environ[name] for name in _PASSED if name in os.environ}
        with self._log.open("w") as log:
            return subprocess.Popen(
                command_of(self._client),
                cwd=self._home,
                env={
                    **environ,
                    **QUIET,
                    "API": self._client.api,
                    "HOME": str(self._home),
                    "OPENAI_API_KEY": "sk-test",
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    async def _line(self, process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                text = await asyncio.to_thread(process.stdout.readline)
        except TimeoutError:
            process.kill()
            raise AssertionError(f"it said nothing for {seconds:g} s\n{self.errors()}") from None
        assert text, f"it ended\n{self.errors()}"
        line: dict[str, Any] = json.loads(text)
        return line

    def errors(self) -> str:
        """The end of what it wrote to standard error."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def close(self) -> None:
        if self._process is not None:
            with self._process as process:
                process.kill()


def command_of(client: Client) -> list[str]:
    if client.environment == "node":
        return [node_with_packages(CLIENTS), str(CLIENTS / f"with-{client.program}.mjs")]
    program = PROGRAMS / f"with_{client.program.replace('-', '_')}.py"
    return [str(python_of(client.environment)), "-W", "ignore", str(program)]


class Applications:
    """All that were started; each ends with the run."""

    def __init__(self, home: Path, started: ExitStack) -> None:
        self._home, self._started = home, started
        self._known: dict[str, Application] = {}

    def __call__(self, client: Client) -> Application:
        if client.name not in self._known:
            home = self._home / client.name
            home.mkdir(parents=True)
            application = Application(client, home)
            self._started.callback(application.close)
            self._known[client.name] = application
        return self._known[client.name]
