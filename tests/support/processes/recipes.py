"""Recipes of docs/recipes, followed as their readers do.

A block whose first line is a comment with a path is a file; it is written.  A block of commands is
run, in its place on the page, and what is told as printed is compared with what was printed.  A
block that serves is started, and stays until the page's end; there it is tried how the page has its
reader see what is remembered.  Each page has a home of its own, which is where its commands run,
and nobody to ask but what the test names.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.pages import Block, blocks, is_like, read
from tests.support.processes.agents import AGENTS, HERE, PACKAGES, program_of
from tests.support.processes.applications import QUIET
from tests.support.processes.environments import python_of
from tests.support.processes.node import CLIENTS, node_with_packages
from tests.support.processes.program import ROOT
from tests.support.waiting import NAP

SECONDS = 240
"""For a block of commands: aider alone takes ten seconds of a core to begin."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:80[89]0\b")
"""Where pages have the proxy."""
FILE = re.compile(r"(?:#|//) (?P<path>(?:~/)?[\w./-]+)\n")
SEE = re.compile(r"`(MEMORY_PROXY_KEY=\S+ memory-proxy sessions [^`]+)`")
USER = "kai"
"""Whose memory it is, on all pages."""

ENVIRONMENTS = {
    "agno": "current",
    "aider": "aider",
    "ai-sdk": "node",
    "azure-openai": "",
    "claude-code": "node",
    "codex": "node",
    "continue": "node",
    "crewai": "heavy",
    "gemini": "",
    "langchain": "current",
    "langgraph": "current",
    "litellm": "older",
    "llama-cpp": "",
    "llamaindex": "older",
    "llm": "current",
    "lm-studio": "",
    "ollama": "",
    "openai-agents": "current",
    "openrouter": "",
    "pydantic-ai": "current",
    "vllm": "",
}
"""Where the programs of a page are; "" is the environment of these tests.  Pages that are not here
are of programs that are not installed for tests."""

COMMANDS = {"claude-code": "claude", "codex": "codex"}
"""What agents are called, whose own commands are made by scripts that are not run here."""


@dataclass(frozen=True, slots=True)
class Kitchen:
    """Where a recipe is followed: ``proxy`` is asked in the place of the page's own, ``elsewhere``
    is found by whoever looks for another host, ``environ`` has keys and the like; ``places`` are
    other addresses, and where they are instead."""

    folder: Path
    proxy: str
    elsewhere: str
    environ: Mapping[str, str]
    places: Mapping[str, str]

    def meant(self, text: str) -> str:
        text = ADDRESS.sub(self.proxy, text)
        for told, instead in self.places.items():
            text = text.replace(told, instead)
        return text


async def follow(recipe: str, kitchen: Kitchen) -> None:
    """Do what the page says, from top to bottom; what it tells as printed is."""
    name, output = f"recipes/{recipe}.md", ""
    shell = _Shell(kitchen, {**kitchen.environ, **_surroundings(recipe, kitchen)})
    async with AsyncExitStack() as page:
        for block in blocks(name):
            if block.is_printed:
                assert is_like(output, block.text), f"{block.place}: it printed\n{output}"
            elif file := FILE.match(block.text):
                _write(kitchen.folder, file["path"], kitchen.meant(block.text))
            elif "serves" in block.marks:
                await page.enter_async_context(shell.serving(block.text))
            else:
                output = await shell.run(block.text)
        for command in SEE.findall(read(name)):
            assert USER in await shell.run(command), command


def is_followed(block: Block) -> bool:
    """Is it something that can be done?"""
    return block.is_printed or bool(FILE.match(block.text)) or block.language == "bash"


def _write(folder: Path, path: str, text: str) -> None:
    file = folder / path.removeprefix("~/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _surroundings(recipe: str, kitchen: Kitchen) -> dict[str, str]:
    """The environment of a page's commands: its programs on PATH, and quiet."""
    programs = [_commands(recipe, kitchen.folder), *_installed(recipe, kitchen.folder)]
    return {
        **QUIET,
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "HOME": str(kitchen.folder),
        "TMPDIR": str(kitchen.folder),
        "COLUMNS": "100",
        "LANG": "en_US.UTF-8",
        "MEMORY_PROXY_URL": kitchen.proxy,
        **{f"{kind}_PROXY": kitchen.elsewhere for kind in ("HTTP", "HTTPS", "ALL")},
        "NO_PROXY": ",".join(HERE),
    }


def _installed(recipe: str, folder: Path) -> list[Path]:
    environment = ENVIRONMENTS[recipe]
    if environment == "node":
        node_with_packages(CLIENTS)
        (folder / "node_modules").symlink_to(PACKAGES)
        return [PACKAGES / ".bin"]
    python = python_of(environment) if environment else Path(sys.executable)
    return [python.parent]


def _commands(recipe: str, folder: Path) -> Path:
    """A folder with the commands that no environment has as its user would."""
    home = folder / "commands"
    home.mkdir(parents=True)
    _command(home / "memory-proxy", f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m proxy')
    if recipe in COMMANDS:
        (agent,) = (agent for agent in AGENTS if agent.name.endswith(f"/{recipe}"))
        program = " ".join(f'"{part}"' for part in program_of(agent.name, agent.program))
        _command(home / COMMANDS[recipe], f"exec {program}")
    return home


def _command(path: Path, words: str) -> None:
    path.write_text(f'#!/bin/sh\n{words} "$@"\n', encoding="utf-8")
    path.chmod(0o700)


class _Shell:
    """Runs commands of a page; all that they have begun ends with them."""

    def __init__(self, kitchen: Kitchen, environ: Mapping[str, str]) -> None:
        self._kitchen, self._environ = kitchen, environ
        self._log = kitchen.folder / "errors.txt"

    async def run(self, commands: str) -> str:
        """What they printed."""
        async with self._begun(commands, subprocess.PIPE) as process, asyncio.timeout(SECONDS):
            output, _ = await process.communicate()
        assert process.returncode == 0, f"{commands}\n{output.decode()}\n{self._errors()}"
        return output.decode()

    @asynccontextmanager
    async def serving(self, commands: str) -> AsyncIterator[None]:
        """What they serve is there within."""
        async with self._begun(commands, subprocess.DEVNULL) as process:
            async with asyncio.timeout(SECONDS):
                while not _listens(self._port(commands)):
                    assert process.returncode is None, f"{commands} ended: {self._errors()}"
                    await asyncio.sleep(NAP)
            yield

    @asynccontextmanager
    async def _begun(self, commands: str, output: int) -> AsyncIterator[asyncio.subprocess.Process]:
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *("bash", "-euo", "pipefail", "-c", self._kitchen.meant(commands)),
                cwd=self._kitchen.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # what it began goes with it
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def _port(self, commands: str) -> int:
        """Of what is served: the proxy, unless the command says another."""
        told = re.search(r"--port (\d+)", self._kitchen.meant(commands))
        port = int(told[1]) if told else urlsplit(self._kitchen.proxy).port
        assert port is not None
        return port

    def _errors(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
