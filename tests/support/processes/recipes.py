"""Recipes of docs/recipes, followed as their readers do.

A block whose first line is a comment with a path is a file; it is written.  A block of commands is
run, in its place on the page, and what is told as printed is compared with what was printed.  A
block that serves is started, and stays until the page's end.  Each page has a home of its own,
which is where its commands run, and nobody to ask but what the test names.
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

from tests.support.pages import Block, blocks, is_like
from tests.support.processes.agents import AGENTS, HERE, PACKAGES, program_of
from tests.support.processes.applications import QUIET
from tests.support.processes.environments import python_of
from tests.support.processes.node import CLIENTS, node_with_packages
from tests.support.processes.program import ROOT
from tests.support.waiting import NAP

SECONDS = 120
ADDRESS = re.compile(r"http://127\.0\.0\.1:80[89]0\b")
"""Where pages have the proxy."""
FILE = re.compile(r"(?:#|//) (?P<path>(?:~/)?[\w./-]+)\n")

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
    environ = {**kitchen.environ, **_surroundings(recipe, kitchen)}
    output = ""
    async with AsyncExitStack() as page:
        for block in blocks(f"recipes/{recipe}.md"):
            if block.untested is not None:
                continue
            if block.is_printed:
                assert is_like(output, block.text), f"{block.place}: it printed\n{output}"
            elif file := FILE.match(block.text):
                _write(kitchen.folder, file["path"], kitchen.meant(block.text))
            else:
                shell = _Shell(block, kitchen, environ)
                output = await (shell.serve(page) if "serves" in block.marks else shell.run())


def is_followed(block: Block) -> bool:
    """Is it something that can be done?"""
    if block.is_printed or FILE.match(block.text):
        return True
    return block.language == "bash"


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
    """Commands of this tree, and agents whose own are made by scripts that are not run here."""
    home = folder / "commands"
    home.mkdir(parents=True)
    _command(home / "memory-proxy", f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m proxy')
    for agent in AGENTS:
        name = agent.name.rpartition("/")[2]
        if name.startswith(recipe):
            program = " ".join(f'"{part}"' for part in program_of(agent.name, agent.program))
            _command(home / recipe.partition("-")[0], f"exec {program}")
    return home


def _command(path: Path, words: str) -> None:
    path.write_text(f'#!/bin/sh\n{words} "$@"\n', encoding="utf-8")
    path.chmod(0o700)


class _Shell:
    """One block of commands; all that it has begun ends with it, or with the page."""

    def __init__(self, block: Block, kitchen: Kitchen, environ: Mapping[str, str]) -> None:
        self._block, self._kitchen, self._environ = block, kitchen, environ
        self._log = kitchen.folder / f"line{block.line}.txt"

    async def run(self) -> str:
        """What it printed."""
        async with self._begun(subprocess.PIPE) as process, asyncio.timeout(SECONDS):
            output, _ = await process.communicate()
        assert process.returncode == 0, f"{self._block.place}\n{output.decode()}\n{self._errors()}"
        return output.decode()

    async def serve(self, page: AsyncExitStack) -> str:
        """Until the page ends; nothing is printed, and by then it listens."""
        process = await page.enter_async_context(self._begun(subprocess.DEVNULL))
        async with asyncio.timeout(SECONDS):
            while not _listens(self._port()):
                assert process.returncode is None, f"{self._block.place} ended: {self._errors()}"
                await asyncio.sleep(NAP)
        return ""

    @asynccontextmanager
    async def _begun(self, output: int) -> AsyncIterator[asyncio.subprocess.Process]:
        with self._log.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *("bash", "-euo", "pipefail", "-c", self._kitchen.meant(self._block.text)),
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

    def _port(self) -> int:
        """Of what is served: the proxy, unless the command says another."""
        told = re.search(r"--port (\d+)", self._kitchen.meant(self._block.text))
        port = int(told[1]) if told else urlsplit(self._kitchen.proxy).port
        assert port is not None
        return port

    def _errors(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
