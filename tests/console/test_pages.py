"""The console's files over HTTP: which there are, what they are called, what they forbid."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from proxy.console.pages import FOLDER, KINDS, files_in
from tests.support.memory_api import error_of
from tests.support.rig import Rig, rig

OF_THE_PAGE = re.compile(r'(?:src|href)="(console/[^"]+)"')
IMPORTED = re.compile(r'(?:from|import)\s*\(?"(\.[^"]+)"')

EXPECTED_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig(tmp_path, store__url="memory://") as opened:
        yield opened


@pytest.fixture
def client(running: Rig) -> httpx.AsyncClient:
    return running.client


async def test_the_page_needs_no_key(client: httpx.AsyncClient) -> None:
    answer = await client.get("/memory/", headers={"host": "example.org"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<script type="module" src="console/app.js">' in answer.text


async def test_memory_without_a_slash_leads_to_the_page(client: httpx.AsyncClient) -> None:
    answer = await client.get("/memory")
    assert answer.status_code == 308
    assert answer.headers["location"] == "memory/"
    followed = await client.get("/memory", follow_redirects=True)
    assert followed.url.path == "/memory/"
    assert followed.status_code == 200


@pytest.mark.parametrize("path", ["", "console/app.js", "console/css/base.css", "console/nothing"])
async def test_every_answer_forbids_what_the_page_does_not_need(
    client: httpx.AsyncClient, path: str
) -> None:
    answer = await client.get(f"/memory/{path}")
    assert answer.headers["content-security-policy"] == EXPECTED_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


async def test_all_that_the_page_loads_is_there(client: httpx.AsyncClient) -> None:
    page = await client.get("/memory/")
    wanted = {page.url.join(path) for path in OF_THE_PAGE.findall(page.text)}
    seen: set[httpx.URL] = set()
    while wanted:
        url = wanted.pop()
        seen.add(url)
        answer = await client.get(url)
        assert answer.status_code == 200, url
        assert answer.headers["content-type"] == KINDS["." + url.path.rpartition(".")[2]]
        if url.path.endswith(".js"):
            wanted |= {url.join(path) for path in IMPORTED.findall(answer.text)} - seen
    assert len(seen) > 30


async def test_a_file_is_asked_for_again_with_its_tag(client: httpx.AsyncClient) -> None:
    first = await client.get("/memory/console/app.js")
    assert first.headers["cache-control"] == "no-cache"
    condition = {"if-none-match": f'"other", W/{first.headers["etag"]}'}
    again = await client.get("/memory/console/app.js", headers=condition)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    changed = await client.get("/memory/console/app.js", headers={"if-none-match": '"other"'})
    assert changed.status_code == 200


async def test_head_tells_of_a_file_without_its_body(client: httpx.AsyncClient) -> None:
    whole = await client.get("/memory/console/app.js")
    head = await client.head("/memory/console/app.js")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["etag"] == whole.headers["etag"]
    assert head.headers["content-length"] == str(len(whole.content))


@pytest.mark.parametrize(
    "name",
    [
        "pages.py",
        "../pages.py",
        "..%2fpages.py",
        "%2e%2e/pages.py",
        "css/../../pages.py",
        "/etc/passwd",
        "vendor/README.md",
        "vendor/preact.d.ts",
        "css/",
        "app%2ejs",
        "app.js%00",
    ],
)
async def test_nothing_else_can_be_had(running: Rig, name: str) -> None:
    request = f"GET /memory/console/{name} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    assert (await said(running.port, request)).startswith(b"HTTP/1.1 404 ")


async def test_a_missing_file_is_told_as_every_error_is(client: httpx.AsyncClient) -> None:
    answer = await client.get("/memory/console/x.js")
    assert answer.status_code == 404
    assert error_of(answer)["code"] == "not_found"


async def said(port: int, request: str) -> bytes:
    """The raw answer: a client would tidy the path up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_the_page_can_only_be_read(client: httpx.AsyncClient) -> None:
    answer = await client.post("/memory/", content=b"x")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_no_file_has_script_or_style_in_its_markup() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert re.findall(r"<script(.*?)>(.*?)</script>", page, re.DOTALL) == [
        (' type="module" src="console/app.js"', "")
    ]


def test_no_module_writes_markup_or_keeps_anything() -> None:
    banned = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        r"|localStorage|sessionStorage|indexedDB|document\.cookie|https?://(?!127)"
    )
    for path in FOLDER.rglob("*.js"):
        if "vendor" not in path.parts:
            text = re.sub(r"/\*\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            assert not banned.findall(text), path


def test_only_kinds_that_a_page_loads_are_served() -> None:
    names = files_in(FOLDER)
    assert "index.html" in names
    assert {name.rpartition(".")[2] for name in names} == {"html", "js", "css", "svg"}
