"""Coding agents as their users run them: a process an invocation, and all that they keep on disk.

Each has a home and a folder to work in of its own, and nobody to ask but the proxy: what looks for
another host finds the scripted upstream, as the forward proxy of its environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from tests.support.processes.node import CLIENTS, missing, node_with_packages
from tests.support.processes.program import ROOT
from tests.support.upstream.clerk import NOTE

PACKAGES = CLIENTS / "node_modules"
SECONDS = 120
HERE = ("127.0.0.1", "localhost")

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent said in the end, and the id that it has for the conversation."""

    session: str
    text: str


@dataclass(frozen=True, slots=True)
class Home:
    """Where an agent lives: ``work`` is its folder, with a note in it; ``user`` is who asks."""

    folder: Path
    origin: str
    headers: Mapping[str, str]

    @property
    def work(self) -> Path:
        return self.folder / "work"


class Agent(Protocol):
    """How one is run.

    ``name`` is its package's, ``program`` a path in PACKAGES; ``api`` is what it asks, ``session``
    the header that it sends by itself; ``helps``: it begins other agents.  ``settle`` writes what
    it reads and returns its environment; ``command`` is what follows the program, ``compacts`` the
    same with the conversation summarised before; ``told`` reads what it writes.
    """

    name: str
    program: str
    api: str
    session: str
    helps: bool

    def settle(self, home: Home) -> dict[str, str]: ...
    def command(self, text: str, *, goes_on: bool) -> list[str]: ...
    def compacts(self, text: str) -> list[list[str]]: ...
    def told(self, lines: Iterable[Line]) -> Told: ...


class ClaudeCode:
    name = "@anthropic-ai/claude-code"
    program = "@anthropic-ai/claude-code/cli-wrapper.cjs"
    api = "Messages"
    session = "X-Claude-Code-Session-Id"
    helps = True

    def settle(self, home: Home) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": home.origin,
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"{k}: {v}" for k, v in home.headers.items()),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "2",
        }

    def command(self, text: str, *, goes_on: bool) -> list[str]:
        options = ["--continue"] if goes_on else []
        return ["-p", *options, "--output-format", "stream-json", "--verbose", text]

    def compacts(self, text: str) -> list[list[str]]:
        return [self.command(each, goes_on=True) for each in ("/compact", text)]

    def told(self, lines: Iterable[Line]) -> Told:
        last = [line for line in lines if line["type"] == "result"][-1]
        return Told(last["session_id"], last["result"])


class Codex:
    name = "@openai/codex"
    program = "@openai/codex/bin/codex.js"
    api = "Responses"
    session = "Thread-Id"
    helps = False

    def settle(self, home: Home) -> dict[str, str]:
        settings = home.folder / "codex"
        settings.mkdir(exist_ok=True)
        headers = ", ".join(f'"{name}" = "{value}"' for name, value in home.headers.items())
        (settings / "config.toml").write_text(
            'model = "gpt-5"\nmodel_provider = "memory"\nsandbox_mode = "danger-full-access"\n'
            "check_for_update_on_startup = false\n"
            "[analytics]\nenabled = false\n"
            "[features]\nplugins = false\nremote_plugin = false\napps = false\n"
            '[model_providers.memory]\nname = "memory"\nwire_api = "responses"\n'
            f'base_url = "{home.origin}/v1"\nenv_key = "OPENAI_API_KEY"\n'
            "supports_websockets = false\nrequest_max_retries = 2\n"
            f"http_headers = {{ {headers} }}\n"
        )
        return {"CODEX_HOME": str(settings), "OPENAI_API_KEY": "sk-test"}

    def command(self, text: str, *, goes_on: bool) -> list[str]:
        options = ["resume", "--last"] if goes_on else []
        return ["exec", *options, "--json", "--skip-git-repo-check", text]

    def compacts(self, text: str) -> list[list[str]]:
        """Where its limit of tokens has been passed already, it does so by itself."""
        limit = ["-c", "model_auto_compact_token_limit=5"]
        return [[*self.command(text, goes_on=True), *limit]]

    def told(self, lines: Iterable[Line]) -> Told:
        session, said = "", ""
        for line in lines:
            session = line.get("thread_id", session)
            item = line.get("item", {})
            said = item.get("text", said) if item.get("type") == "agent_message" else said
            said = line["error"]["message"] if line["type"] == "turn.failed" else said
        return Told(session, said)


AGENTS: tuple[Agent, ...] = (ClaudeCode(), Codex())


class Terminal:
    """Somebody who asks an agent, one invocation after the other."""

    def __init__(self, agent: Agent, home: Home, elsewhere: str) -> None:
        self._agent, self._home = agent, home
        for folder in (home.work, home.folder / "tmp"):
            folder.mkdir(parents=True)
        (home.work / "note.txt").write_text(f"{NOTE}\n", encoding="utf-8")
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.folder),
            "TMPDIR": str(home.folder / "tmp"),
            **{f"{kind}_PROXY": elsewhere for kind in ("HTTP", "HTTPS", "ALL")},
            "NO_PROXY": ",".join(HERE),
            **agent.settle(home),
        }

    async def ask(self, text: str, *, goes_on: bool = False) -> Told:
        """A question in a conversation of its own, or in the newest one."""
        return await self._run(self._agent.command(text, goes_on=goes_on))

    async def ask_compacted(self, text: str) -> Told:
        """The newest conversation goes on with a summary of itself."""
        for command in self._agent.compacts(text):
            told = await self._run(command)
        return told

    async def _run(self, arguments: list[str]) -> Told:
        process = await asyncio.create_subprocess_exec(
            *program_of(self._agent.name, self._agent.program),
            *arguments,
            cwd=self._home.work,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(SECONDS):
                output, errors = await process.communicate()
        finally:
            with suppress(ProcessLookupError):  # what it began goes with it
                os.killpg(process.pid, signal.SIGKILL)
        lines = [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
        assert lines, f"it said nothing: {errors.decode()[-3000:]}"
        return self._agent.told(lines)


@cache
def program_of(package: str, path: str) -> tuple[str, str]:
    """What begins a command.  Skips where npm has no program for this machine; fails in CI."""
    program = (node_with_packages(CLIENTS), str(PACKAGES / path))
    tried = subprocess.run(
        [*program, "--version"], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
    )
    if tried.returncode:
        missing(f"{package} does not run here: {tried.stderr[-300:]}")
    return program
