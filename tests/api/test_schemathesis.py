"""Thousands of requests made up from the document, right ones and wrong ones, on a real socket.

``SCHEMATHESIS_EXAMPLES`` asks for more of each operation, ``SCHEMATHESIS_SEED`` for others.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from proxy.gateway.tenancy import digest_of
from tests.support.memory_api import talk
from tests.support.program import surroundings
from tests.support.running import Running, running, settings_for

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "12")
SEED = os.environ.get("SCHEMATHESIS_SEED", "1")
SECONDS = 60.0 + 6.0 * int(EXAMPLES)
KEY = "the-key-of-ada"
V1 = "/memory/v1"


@pytest.fixture(params=["memory", "sqlite"])
async def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Running]:
    """One that takes no key but ours, with what the document's examples are about."""
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    settings = settings_for(
        tmp_path,
        "http://127.0.0.1:9/v1",
        store__url=url,
        store__timeout=5,
        server__admin_key="the-key-of-the-administrator",
        upstream__api_key="another-key",
        tenancy__mode="clients",
        clients=[{"name": "ada", "key_sha256": [digest_of(KEY.encode())]}],
        profiles={"brief": {"window": "none"}},
    )
    async with running(settings) as proxy:
        await seeded(proxy)
        yield proxy


async def seeded(proxy: Running) -> None:
    """A session, its person, a fact, a profile, instructions, an item."""
    said = {"user": "ada", "messages": talk("Lisbon?", "Yes.", "In May?", "In May.")}
    things = [
        ("POST", "/sessions/trip-to-lisbon/messages", said),
        ("POST", "/users/ada/memories", {"text": "Likes tea."}),
        ("PATCH", "/users/ada/profile", {"city": "Lisbon"}),
        ("PUT", "/instructions/support", {"text": "Be brief."}),
        (
            "PUT",
            "/store/items",
            {"namespace": ["recipes", "soups"], "key": "gazpacho", "value": {"serves": 4}},
        ),
    ]
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=proxy.url, headers=headers) as client:
        for method, path, body in things:
            answer = await client.request(method, f"{V1}{path}", json=body)
            assert answer.is_success, answer.text


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 30)
async def test_every_answer_is_as_the_document_says(proxy: Running, tmp_path: Path) -> None:
    report = await asked(proxy, tmp_path)
    assert report.endswith(b"(ok)"), report.decode()


async def asked(proxy: Running, folder: Path) -> bytes:
    """What schemathesis tells, and at the end whether all is well."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "--config-file",
        str(CONFIGURATION),
        "run",
        f"{proxy.url}{V1}/openapi.json",
        *("--seed", SEED, "--max-examples", EXAMPLES, "--warnings", "off", "--no-color"),
        cwd=folder,
        env=surroundings(API_KEY=KEY, PYTHONWARNINGS="ignore"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(SECONDS):
            told, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return told + (b"(ok)" if process.returncode == 0 else b"(failed)")
