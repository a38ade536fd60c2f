"""Thousands of requests made up from the document, right ones and wrong ones, on a real socket.

What does not hang on chance and the ways from link to link are gone through with the first seed;
others make up other requests.  ``SCHEMATHESIS_EXAMPLES`` asks for more of each operation,
``SCHEMATHESIS_SEEDS`` for more seeds and ``SCHEMATHESIS_SEED`` for those from another one on.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.memory_api.operations import OPERATIONS
from proxy.tenancy import digest_of
from tests.support.memory_api import talk
from tests.support.processes.program import surroundings
from tests.support.rig import Rig, rig
from tests.support.store.belongings import ROOT, owning

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "2"))
STEPS = 10
"""So many times as many ways from link to link."""

FIRST = int(os.environ.get("SCHEMATHESIS_SEED", "1"))
SEEDS = int(os.environ.get("SCHEMATHESIS_SEEDS", "2"))
FURTHER = range(FIRST + 1, FIRST + SEEDS)
EVERY = "examples,coverage,fuzzing,stateful"

SECONDS = 300.0 + 10.0 * EXAMPLES
"""Many times what one seed takes on a machine that has nothing else to do."""

KEY = "the-key-of-ada"

OFTEN = 0.5
"""How often an id in a path is one that there is."""


@dataclass(frozen=True)
class Asked:
    """A proxy with something in it; ``known`` are ids by the names of parameters."""

    proxy: Rig
    known: Mapping[str, str]


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Asked]:
    """One that takes no key but ours."""
    clients = [{"name": "ada", "key_sha256": [digest_of(KEY.encode())]}]
    async with rig(
        tmp_path,
        server__admin_key="the-key-of-the-administrator",
        upstream__api_key="another-key",
        tenancy__mode="clients",
        clients=clients,
        profiles={"brief": {"window": "none"}},
    ) as proxy:
        yield Asked(proxy, await filled(proxy))


async def filled(proxy: Rig) -> dict[str, str]:
    """Something of every kind, and what the document's examples are about."""
    headers = {"authorization": f"Bearer {KEY}"}
    store: Any = proxy.store.real
    async with httpx.AsyncClient(base_url=proxy.proxy.url, headers=headers) as client:
        mine = await owning(client, "ada", "marmalade", store)
        said = {"user": "ada", "messages": talk("Lisbon?", "Yes.", "In May?", "In May.")}
        await mine.call("POST", f"{ROOT}/sessions/trip-to-lisbon/messages", said)
        await mine.call("POST", f"{ROOT}/users/ada/memories", {"text": "Likes tea."})
        soup = {"namespace": ["recipes", "soups"], "key": "gazpacho", "value": {"serves": 4}}
        await mine.call("PUT", f"{ROOT}/store/items", soup)
    return mine.known()


def configured(folder: Path, known: Mapping[str, str]) -> Path:
    """The configuration, with ids that there are."""
    lines = [CONFIGURATION.read_text(encoding="utf-8"), "[dictionaries]"]
    lines += [f"{name} = {{ values = [{json.dumps(id)}] }}" for name, id in known.items()]
    lines.append(f"[generation]\nmax-examples = {EXAMPLES}")
    lines.append(f"[phases.stateful.generation]\nmax-examples = {STEPS * EXAMPLES}")
    lines.append("[parameters]")
    lines += [
        f'"path.{name}" = {{ dictionary = "{name}", probability = {OFTEN} }}' for name in known
    ]
    path = folder / "schemathesis.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 30)
async def test_every_answer_is_as_the_document_says(asked: Asked, tmp_path: Path) -> None:
    await no_issue(asked, tmp_path, FIRST, EVERY)


@pytest.mark.slow
@pytest.mark.release
@pytest.mark.timeout(SECONDS + 30)
@pytest.mark.parametrize("seed", FURTHER)
async def test_so_is_every_answer_to_other_requests(
    asked: Asked, tmp_path: Path, seed: int
) -> None:
    await no_issue(asked, tmp_path, seed, "fuzzing")


async def no_issue(asked: Asked, folder: Path, seed: int, phases: str) -> None:
    configuration = configured(folder, asked.known)
    status, told = await report(asked.proxy, configuration, "--seed", str(seed), "--phases", phases)
    assert status == 0, told
    others = len(OPERATIONS) - 1  # it leaves out the one that answers the document
    assert f"Tested: {others}\n" in told, told


async def report(proxy: Rig, configuration: Path, *options: str) -> tuple[int | None, str]:
    """The status with which schemathesis ends, 0 if all is well, and what it tells."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "--config-file",
        str(configuration),
        "run",
        f"{proxy.proxy.url}{ROOT}/openapi.json",
        *(*options, "--warnings", "off", "--no-color"),
        cwd=configuration.parent,
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
    return process.returncode, told.decode("utf-8", "replace")
