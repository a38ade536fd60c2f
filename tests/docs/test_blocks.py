"""Every code block of README.md and docs/ is run, read or compiled, or says why it is not."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from io import StringIO
from itertools import dropwhile
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from proxy.cli import app
from proxy.settings import load
from tests.support.pages import PAGES, Block, all_blocks, blocks, is_like, name_of, read
from tests.support.processes.program import ROOT, surroundings
from tests.support.processes.running import Running, running
from tests.support.upstream.parrot import model
from tests.support.upstream.scripted import ScriptedUpstream

ADDRESS = "http://127.0.0.1:8080"
ADDRESSES = (ADDRESS, "https://proxy.example.com")
KEY = "sk-test"

ELSEWHERE = {"langgraph.md": "tests/integrations/test_docs.py"}
"""Pages whose Python is run by another test, with what it needs."""

SEEDED = {"command-line.md"}
"""Pages that speak of a conversation which another page has begun."""

LOOKED_UP = re.compile(
    r"#|\s*$|(?:\w+=\S+ )*"
    r"(?:make|pip|uvx|docker|memory-proxy (?:serve|check|demo|init|reindex|tenants))\b"
)
"""Lines that start something or install something: these commands have to exist."""

LAUNCHERS = {("pip", "install"), ("docker", "compose"), ("uvx", "--from")}
"""Other people's programs, and what they are asked."""

CONFIGURATION = "# proxy.toml\n"
"""What a recipe's configuration of the proxy begins with."""

SECONDS = 100
"""Plenty for a block: each command starts a Python of its own."""

UNTESTED = {
    "deployment.md": {"a container engine", "a web server"},
    "export-import.md": {"files of other programs"},
    "from-langchain.md": {"the program before", "langchain-openai"},
    "from-langchain4j.md": {"the program before", "Java"},
    "from-mem0.md": {"the program before"},
    "from-supermemory.md": {"the program before"},
    "messages.md": {"anthropic, among the client libraries"},
    "mcp.md": {"Claude Code"},
    "recipes/librechat.md": {"LibreChat"},
    "recipes/lobechat.md": {"LobeChat"},
    "recipes/open-webui.md": {"Open WebUI"},
    "responses.md": {"Codex"},
    "windows.md": {"a download"},
}
"""All that is not tested, by page, and why."""


def kind(block: Block) -> str:
    """How it is tested."""
    if block.untested is not None:
        return "untested"
    if block.page.startswith("recipes/"):
        return "recipe"
    if block.language in ("bash", "sh"):
        return "command" if _is_looked_up(block) else "shell"
    known = (
        "python",
        "toml",
        "json",
        "typescript",
        "text",
        "",
        "{toctree}",
        "{include}",
        "{literalinclude}",
    )
    return block.language if block.language in known else "unknown"


def _is_looked_up(block: Block) -> bool:
    return all(LOOKED_UP.match(line) for line in block.text.splitlines())


def _commands(block: Block) -> list[list[str]]:
    """The words of each line, without the environment that it sets."""
    lines = (shlex.split(line, comments=True) for line in block.text.splitlines())
    found = ([*dropwhile(lambda word: "=" in word, words)] for words in lines)
    return [words for words in found if words]


def named(block: Block) -> str:
    return block.place


# What there is


@pytest.mark.parametrize("block", all_blocks(), ids=named)
def test_a_block_is_tested_or_says_why_not(block: Block) -> None:
    assert kind(block) != "unknown", f"{block.place}: nothing tests {block.language}"


def test_what_is_not_tested_is_known() -> None:
    found: dict[str, set[str]] = {}
    for block in all_blocks():
        if block.untested is not None:
            found.setdefault(block.page, set()).add(block.untested)
    assert found == UNTESTED


# What is read


CONFIGURATIONS = [
    block
    for block in all_blocks("toml")
    if kind(block) == "toml" or block.text.startswith(CONFIGURATION)
]


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=named)
def test_a_configuration_is_accepted(block: Block, tmp_path: Path) -> None:
    config = tmp_path / "proxy.toml"
    config.write_text(block.text, encoding="utf-8")
    load(config)
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("block", [b for b in all_blocks() if kind(b) == "command"], ids=named)
def test_a_command_exists(block: Block) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for program, *arguments in _commands(block):
        if program == "make":
            verb, *variables = arguments
            assert re.search(rf"^{verb}:", makefile, re.MULTILINE)
            known = re.findall(r"^(\w+) \?=", makefile, re.MULTILINE)
            assert {each.partition("=")[0] for each in variables} <= {*known, "DATA"}
        elif program == "memory-proxy":
            words = [word for word in arguments if not word.startswith("<")]
            assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0
        else:
            assert (program, *arguments[:1]) in LAUNCHERS


# What is run

RUNNING = [
    page
    for page in map(name_of, PAGES)
    if any(kind(block) in ("shell", "python") for block in blocks(page) if page not in ELSEWHERE)
]


@pytest.mark.parametrize("page", RUNNING)
async def test_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with serving(page, tmp_path) as (proxy, _):
        if page in SEEDED:
            await seed(proxy)
        shell = Shell(proxy, tmp_path)
        output = ""
        for block in blocks(page):
            if block.is_printed:
                assert is_like(output, block.text), f"{block.place}: it printed\n{output}"
            elif kind(block) == "shell":
                output = await shell.run(block)
            elif kind(block) == "python":
                output = await asyncio.to_thread(execute, block, proxy.url)


@asynccontextmanager
async def serving(page: str, folder: Path) -> AsyncIterator[tuple[Running, ScriptedUpstream]]:
    """A proxy with the page's configuration, if it has one, in front of a scripted upstream."""
    served = [block.text for block in blocks(page) if "served" in block.marks]
    config = folder / "proxy.toml"
    config.write_text("\n".join(served), encoding="utf-8")
    async with ScriptedUpstream() as up:
        up.always(model)
        overrides: dict[str, object] = {
            "server.port": 0,
            "upstream.url": up.url,
            "store.url": f"sqlite:///{folder}/memory.db",
            "store.timeout": 5,
            "spool.path": f"{folder}/spool.db",
        }
        async with running(load(config, overrides, {})) as proxy:
            yield proxy, up
        assert not up.refused


async def test_the_model_gets_three_messages_where_one_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "The model got three." in read("index.md")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (example,) = (block for block in blocks("index.md") if block.language == "python")
    async with serving("index.md", tmp_path) as (proxy, up):
        await asyncio.to_thread(execute, example, proxy.url)
        assert [len(request.messages) for request in up.requests] == [1, 3]


async def test_recall_puts_in_front_of_a_message_what_its_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said, shown = (block for block in blocks("recall.md")[:3] if not block.is_printed)
    async with serving("recall.md", tmp_path) as (proxy, up):
        await Shell(proxy, tmp_path).run(said)
        prompt = up.requests[-1].messages[-1]["content"]
    assert is_like(prompt, re.sub(r"\[\d{4}-\d\d-\d\d \w{3}\]", "[…]", shown.text))


async def seed(proxy: Running) -> None:
    """The conversation of the quickstart."""
    body = {
        "user": "kai",
        "messages": [
            {"role": "user", "content": "Hi, my name is Kai."},
            {"role": "assistant", "content": "Hello Kai."},
        ],
    }
    async with httpx.AsyncClient(base_url=proxy.url, timeout=SECONDS) as client:
        answer = await client.post(
            "/memory/v1/sessions/holiday-plans/messages",
            json=body,
            headers={"authorization": f"Bearer {KEY}"},
        )
    assert answer.status_code == 200


def execute(block: Block, url: str) -> str:
    """What an example in Python prints."""
    names: dict[str, object] = {"__name__": "example"}
    text = block.text.replace(ADDRESS, url)
    with redirect_stdout(StringIO()) as printed:
        exec(compile(text, block.place, "exec", dont_inherit=True), names)
    for value in names.values():
        close = getattr(value, "close", None)
        if close is not None and type(value).__module__.startswith(("openai", "httpx")):
            close()
    return printed.getvalue()


class Shell:
    """Runs the shell blocks of a page in a folder of their own; what is exported stays."""

    def __init__(self, proxy: Running, folder: Path) -> None:
        self._url, self._folder = proxy.url, folder / "home"
        self._folder.mkdir()
        self._before = ""

    async def run(self, block: Block) -> str:
        text = block.text
        for address in ADDRESSES:
            text = text.replace(address, self._url)
        out = await self._bash(self._before + text, block.place)
        self._before += "".join(
            f"{line}\n" for line in text.splitlines() if line.startswith("export ")
        )
        return out

    async def _bash(self, script: str, place: str) -> str:
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", script),
            cwd=self._folder,
            env=surroundings(
                PATH=programs,
                KEY=KEY,
                OPENAI_API_KEY=KEY,
                MEMORY_PROXY_KEY=KEY,
                MEMORY_PROXY_URL=self._url,
                COLUMNS="100",
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(SECONDS):
            out, errors = await process.communicate()
        assert process.returncode == 0, f"{place}\n{out.decode()}\n{errors.decode()}"
        return out.decode()
