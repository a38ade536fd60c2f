"""README.md says what is true: its tables are compared with the code, its examples are run."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from proxy.gateway.account import Account, Status
from proxy.gateway.identity import OURS, History, Mode
from proxy.settings import ProfileSettings, Settings, SettingsError, effective, load
from proxy.stores.address import read_address
from tests.support.answers import chat_completion, json_answer
from tests.support.chatting import eventually
from tests.support.history import TOKEN, Remembered
from tests.support.node import FOLDER, node_with_packages
from tests.support.program import ROOT, SECONDS, surroundings
from tests.support.running import Running, running, settings_for
from tests.support.upstream import ScriptedUpstream

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"


def table(*head: str) -> list[list[str]]:
    """The rows of the one table whose head begins with these cells."""
    tables = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE)]
    (found,) = [lines for lines in tables if cells(lines[0])[: len(head)] == list(head)]
    return [cells(line) for line in found[2:]]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def code(cell: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
async def up() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as upstream:
        yield upstream


@pytest.fixture
async def proxy(up: ScriptedUpstream, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(tmp_path, up.url, store__timeout=5)) as proxy:
        yield proxy


# Tables


def test_the_request_headers_are_those_that_are_read() -> None:
    assert {name.lower() for name in names(0)} == {
        *(name.decode() for name in OURS),
        "idempotency-key",
    }


def names(which: int) -> list[str]:
    """The first column of the which-th table of headers."""
    found = re.findall(r"^\| header \| meaning \|\n\|.*\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    return [code(cells(line)[0])[0] for line in found[which].splitlines()]


def test_the_response_headers_are_those_that_are_sent() -> None:
    account = Account("session", exchange="ex", reason="spooled")
    sent = {name.decode() for name, _ in account.headers()}
    assert {name.lower() for name in names(1)} == sent


@pytest.mark.parametrize(
    ("header", "words"),
    [
        pytest.param("X-Memory-Mode", get_args(Mode), id="mode"),
        pytest.param("X-Memory-History", get_args(History), id="history"),
        pytest.param("X-Memory-Status", get_args(Status), id="status"),
    ],
)
def test_the_words_of_a_header_are_all_there(header: str, words: tuple[str, ...]) -> None:
    (line,) = re.findall(rf"^\| `{header}` \|.*$", TEXT, re.MULTILINE)
    assert set(code(line)[1:]) == set(words)


def test_every_alias_is_named_in_its_order() -> None:
    (paragraph,) = re.findall(r"^Where there is no `X-Session-Id`.*?\n\n", TEXT, re.M | re.S)
    server = Settings().server
    assert code(paragraph)[1:] == [*server.session_aliases, *server.user_aliases]


def test_the_reasons_are_those_that_the_gateway_gives() -> None:
    source = "".join(path.read_text() for path in (ROOT / "proxy" / "gateway").glob("*.py"))
    given = set(
        re.findall(r'(?:reason = |give_up\(|return None, |reason or |else )"(\w+)"', source)
    )
    given |= set(re.findall(r'\), "(\w+)"$', source, re.MULTILINE))
    told = {code(row[0])[0] for row in table("reason")}
    assert told <= given
    assert {word for word in given if "_" in word or word == "spooled"} <= told


def test_the_settings_and_their_defaults_are_true() -> None:
    known = dict(effective(Settings()))
    told = {code(row[0])[0]: row[1].strip("`") for row in table("setting", "default")}
    assert told == {name: known[name] for name in told}
    assert len(told) > 10


def test_every_window_is_named() -> None:
    told = [code(row[0])[0] for row in table("`window`")]
    assert sorted(told) == sorted(get_args(ProfileSettings.model_fields["window"].annotation))
    assert Settings().memory.window == code(table("`window`")[0][0])[0]
    assert Settings().memory.evict_to == 0.7


@pytest.mark.parametrize("row", table("upstream"), ids=lambda row: row[0][:20])
def test_upstream_urls_are_accepted(row: list[str]) -> None:
    overrides: dict[str, object] = {"upstream.url": code(row[1])[0]}
    if flag := re.search(r"--port (\d+)", row[0]):
        with pytest.raises(SettingsError, match="call itself"):
            load(None, overrides, {})
        overrides["server.port"] = flag[1]
    assert load(None, overrides, {}).upstream.url == code(row[1])[0]


@pytest.mark.parametrize("row", table("store"), ids=lambda row: row[0][:20])
def test_store_urls_are_accepted(row: list[str]) -> None:
    url = code(row[1])[0]
    assert load(None, {"store.url": url}, {}).store.url == url
    assert read_address(url).name


@pytest.mark.parametrize("row", table("the client sends"), ids=lambda row: row[0])
async def test_clients_get_what_the_table_says(
    row: list[str], proxy: Running, up: ScriptedUpstream
) -> None:
    _, before, request, expected, recorded = row
    for question, answer in zip(before.split()[::2], before.split()[1::2], strict=True):
        await say(proxy, up, [question], answer)
    await say(proxy, up, request.split(), recorded.split()[-1])
    assert [message["content"] for message in up.requests[-1].messages] == expected.split()
    history = await Remembered(proxy.settings.store.url).everything("table")
    assert history[len(before.split()) :] == recorded.split()


async def say(
    proxy: Running, up: ScriptedUpstream, sent: list[str], answer: str, user: str | None = None
) -> None:
    up.reply(json_answer(chat_completion(answer)))
    messages = [
        {"role": "assistant" if text[0] == "a" else "user", "content": text} for text in sent
    ]
    headers = {"X-Session-Id": "table"} | ({"X-User-Id": user} if user else {})
    async with client(proxy) as http:
        response = await http.post(
            "/v1/chat/completions",
            json={"model": "m", "messages": messages},
            headers=headers,
        )
    assert response.status_code == 200


def client(proxy: Running) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=proxy.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=SECONDS
    )


async def test_the_memory_api_has_the_routes_of_the_table(
    proxy: Running, up: ScriptedUpstream
) -> None:
    await say(proxy, up, ["Always answer in French."], "Oui.", user="table")
    rows = sorted(
        table("request", "answers"), key=lambda row: ("DELETE" in row[0], "sessions" in row[0])
    )
    async with client(proxy) as http:
        await eventually(lambda: is_noticed(http), 5)
        await http.post("/memory/v1/users/table/memories", json={"text": "Kai lives in Bonn."})
        for row in rows:
            method, path = code(row[0])[0].split()
            path = path.replace("{id}", "table").replace("{exchange}", await exchange(http))
            path = path.replace("{memory}", await noticed(http))
            response = await http.request(method, path, json=body_for(method, path))
            assert response.is_success, (method, path, response.text)
        for path in ("/healthz", "/readyz", "/metrics"):
            assert f"`GET {path}`" in TEXT
            assert (await http.get(path)).status_code == 200


def body_for(method: str, path: str) -> dict[str, object] | None:
    """What a request of the table can be sent with."""
    if method == "PATCH":
        about_a_session: dict[str, object] = {"summary": {"text": "Short."}}
        return about_a_session if "sessions" in path else {"text": "Kai lives in Kyoto."}
    said: dict[str, object] = {
        "messages": [{"role": "user", "content": "u2"}],
        "query": "French",
    }
    return said if method == "POST" else None


async def noticed(http: httpx.AsyncClient) -> str:
    """The id of the first standing wish, "" as long as there is none; a fact's, if there is one."""
    memories = (await http.get("/memory/v1/users/table/memories")).json()["data"]
    return memories[0]["id"] if memories else ""


async def is_noticed(http: httpx.AsyncClient) -> bool:
    return bool(await noticed(http))


async def exchange(http: httpx.AsyncClient) -> str:
    answer = await http.get("/memory/v1/sessions/table/messages")
    found: str = answer.json()["data"][0]["exchange_id"]
    return found


# Examples


async def test_the_python_example_runs_and_the_model_is_asked_with_the_conversation(
    proxy: Running, up: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
    (example,) = blocks("python")
    printed = await asyncio.to_thread(execute, at(proxy, example))
    assert printed == "reply 2: What is my name?\n"
    assert len(up.requests[1].messages) == 3


def at(proxy: Running, example: str) -> str:
    assert example.count(ADDRESS) == 1
    return example.replace(ADDRESS, proxy.url)


def execute(example: str) -> str:
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()) as printed:
        exec(compile(example, "README.md", "exec"), names)
    names["client"].close()
    return printed.getvalue()


async def run(*command: str, cwd: Path = ROOT) -> tuple[str, str]:
    """Output and errors of a command that ends well."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=surroundings(OPENAI_API_KEY=TOKEN),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(SECONDS):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode(), errors.decode()


@pytest.mark.node
@pytest.mark.xdist_group("node")
@pytest.mark.timeout(150)
async def test_the_typescript_example_runs(proxy: Running) -> None:
    node = node_with_packages()
    (example,) = blocks("typescript")
    example = at(proxy, example)
    out, _ = await run(node, "--input-type=module", "--eval", example, cwd=FOLDER)
    assert out == "reply 1: What is my name?"


async def test_the_curl_example_runs_and_shows_the_headers(proxy: Running) -> None:
    (example,) = [block for block in blocks("bash") if block.startswith("curl")]
    out, _ = await run("bash", "-c", at(proxy, example))
    assert re.search(r"^x-memory-status: empty\r?$", out, re.MULTILINE)
    assert "reply 1: What is my name?" in out


def commands() -> list[list[str]]:
    lines = "".join(block for block in blocks("bash") if not block.startswith("curl"))
    return [shlex.split(line, comments=True) for line in lines.splitlines()]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_exists(command: list[str]) -> None:
    program, name, *arguments = command
    if program == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{name}:", makefile, re.MULTILINE)
        variables = re.findall(r"^(\w+) \?=", makefile, re.MULTILINE)
        assert {argument.partition("=")[0] for argument in arguments} <= set(variables)
    else:
        assert program == "memory-proxy"
        helped = [sys.executable, "-m", "proxy", name, *arguments, "--help"]
        subprocess.run(helped, check=True, capture_output=True, timeout=SECONDS, cwd=ROOT)


def test_the_configuration_example_is_accepted(tmp_path: Path) -> None:
    (example,) = blocks("toml")
    config = tmp_path / "proxy.toml"
    config.write_text(example, encoding="utf-8")
    assert load(config).profiles["support"].max_tokens == load(config).memory.max_tokens


def test_every_link_leads_to_a_file() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert links
    missing = [link for link in links if not (ROOT / link).exists()]
    assert not missing


def test_the_environment_variables_named_are_read() -> None:
    named = set(re.findall(r"MEMORY_PROXY_\w+", TEXT)) - {"MEMORY_PROXY_SECTION__NAME"}
    assert named
    for name in named:
        assert load(None, {}, {name: "http://127.0.0.1:9/v1"}).upstream.url.endswith(":9/v1")
