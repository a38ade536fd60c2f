"""The recipes of docs/recipes: short, all in the index, and followed by tests or known not to be.

Nothing is installed for this.  tests/clients follows the pages; of programs that are not installed
there, what the page has them send is sent here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.pages import RECIPES, blocks, code, name_of, read
from tests.support.processes.recipes import ENVIRONMENTS, is_followed
from tests.support.processes.running import PATIENT, running, settings_for
from tests.support.upstream.parrot import model
from tests.support.upstream.scripted import ScriptedUpstream

MAX_LINES = 45
"""Lines: one screen."""

NAMES = [path.stem for path in RECIPES if path.stem != "index"]
KNOWN = "Your name is Kai."

KAI, WHO = "Hi, my name is Kai.", "What is my name?"


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_one_screen_and_says_where_its_program_says_so(name: str) -> None:
    text = read(f"recipes/{name}.md")
    assert len(text.splitlines()) <= MAX_LINES
    assert re.search(r"\*\*Documented in\*\* .*\]\(https://", text, re.DOTALL)


def test_the_index_has_every_recipe() -> None:
    index = read("recipes/index.md")
    linked = re.findall(r"\]\(([\w-]+)\.md\)", index)
    (toctree,) = (block for block in blocks("recipes/index.md") if block.language == "{toctree}")
    listed = [line for line in toctree.text.split() if not line.startswith(":")]
    assert sorted(linked) == sorted(listed) == NAMES


def test_the_readme_counts_them() -> None:
    assert f"of {len(NAMES)} programs" in read("README.md")


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_followed_or_says_why_not(name: str) -> None:
    shown = blocks(f"recipes/{name}.md")
    if name not in ENVIRONMENTS:
        assert all(block.untested for block in shown)
        return
    assert all(map(is_followed, shown))
    assert any(block.is_printed and KNOWN in block.text for block in shown)


def test_every_page_that_is_followed_is_there() -> None:
    assert ENVIRONMENTS.keys() <= set(NAMES)
    assert {name_of(path) for path in RECIPES} >= {f"recipes/{name}.md" for name in ENVIRONMENTS}


# Programs that are not installed


@dataclass(frozen=True, slots=True)
class Sent:
    """How a program asks, as its page has it, in one conversation of one person."""

    path: str
    headers: Mapping[str, str]
    title: str | None = None
    """How its request for a title begins, where that comes the same way."""


def open_webui() -> Sent:
    named = [name for name in code(read("recipes/open-webui.md")) if name.startswith("X-OpenWebUI")]
    (services,) = _yaml("open-webui")["services"].values()
    environ = services["environment"]
    assert environ["ENABLE_FORWARD_USER_INFO_HEADERS"] == "true"
    url = httpx.URL(environ["OPENAI_API_BASE_URL"])
    return Sent(
        url.path, dict(zip(named, ("one", "kai"), strict=True)), "### Task:\nA title, please"
    )


def librechat() -> Sent:
    (endpoint,) = _yaml("librechat")["endpoints"]["custom"]
    filled = {"CONVERSATIONID": "one", "USER_ID": "kai"}
    headers = {
        name: next(value for end, value in filled.items() if text.endswith(f"{end}}}}}"))
        for name, text in endpoint["headers"].items()
    }
    title = "Provide a concise, 5-word-or-less title for the conversation, using its same language"
    return Sent(httpx.URL(endpoint["baseURL"]).path, headers, title)


def lobechat() -> Sent:
    (services,) = _yaml("lobechat")["services"].values()
    return Sent(httpx.URL(services["environment"]["OPENAI_PROXY_URL"]).path, {})


def _yaml(name: str) -> Any:
    (block,) = (block for block in blocks(f"recipes/{name}.md") if block.language == "yaml")
    return yaml.safe_load(block.text)


@pytest.mark.parametrize("program", [open_webui, librechat, lobechat], ids=lambda p: p.__name__)
async def test_what_a_program_sends_is_remembered(
    program: Callable[[], Sent], tmp_path: Path
) -> None:
    sent = program()

    async def ask(text: str) -> httpx.Response:
        asked = {"model": "m", "messages": [{"role": "user", "content": text}]}
        return await client.post(f"{sent.path}/chat/completions", json=asked, headers=sent.headers)

    async with ScriptedUpstream() as up:
        up.always(model)
        settings = settings_for(tmp_path, up.url, **PATIENT)
        async with running(settings) as proxy, httpx.AsyncClient(base_url=proxy.url) as client:
            await ask(KAI)
            if sent.title:
                assert (await ask(sent.title)).headers["x-memory-reason"] == "side_request"
            answer = await ask(WHO)
    assert answer.json()["choices"][0]["message"]["content"] == KNOWN
    assert len(up.requests[-1].messages) == 3
