"""The recipes of docs/recipes do what they say: each page is followed, from top to bottom.

Of programs that use the proxy, the first turn tells a name and another process asks for it; the
upstream answers from the prompt alone.  Of upstreams, the page's own configuration is checked and
served, before an upstream that wants to be asked as that provider is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.processes.recipes import ENVIRONMENTS, Kitchen, follow
from tests.support.processes.redis import free_port
from tests.support.processes.running import PATIENT, Running
from tests.support.store.history import TOKEN
from tests.support.upstream.answers import Script, error_answer, json_answer
from tests.support.upstream.clerk import Clerk
from tests.support.upstream.connection import Request
from tests.support.upstream.parrot import model
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.upstream.weatherman import text_of

KAI = "my name is Kai"
WHO = "What is my name?"

MODELS = {"object": "list", "data": [{"id": "any", "object": "model"}]}


@dataclass(frozen=True, slots=True)
class Provider:
    """How an API wants to be asked for a chat: ``told`` is its address on the page."""

    told: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    template: bool = False
    """Are prompts written out by a chat template, which is strict about roles?"""


LOCAL = "/v1/chat/completions"
PROVIDERS = {
    "azure-openai": Provider(
        "https://YOUR-RESOURCE.openai.azure.com",
        "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
        {"api-key": "sk-azure"},
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com",
        "/v1beta/openai/chat/completions",
        {"authorization": "Bearer sk-gemini"},
    ),
    "llama-cpp": Provider("http://127.0.0.1:8081", LOCAL, template=True),
    "lm-studio": Provider("http://127.0.0.1:1234", LOCAL, template=True),
    "ollama": Provider("http://127.0.0.1:11434", LOCAL, template=True),
    "openrouter": Provider(
        "https://openrouter.ai",
        "/api/v1/chat/completions",
        {"authorization": "Bearer sk-openrouter"},
    ),
    "vllm": Provider(
        "http://127.0.0.1:8000", LOCAL, {"authorization": "Bearer sk-vllm"}, template=True
    ),
}

KEYS = {
    "OPENAI_API_KEY": TOKEN,
    "ANTHROPIC_API_KEY": TOKEN,
    "AZURE_OPENAI_API_KEY": "sk-azure",
    "GEMINI_API_KEY": "sk-gemini",
    "LITELLM_MASTER_KEY": "sk-litellm",
    "OPENROUTER_API_KEY": "sk-openrouter",
    "VLLM_API_KEY": "sk-vllm",
}
"""A provider's key is of no use to another."""

SERVED = {"litellm": "4000"}
"""The ports of servers that pages of clients start."""

OLDER_PYTHON = pytest.mark.skipif(sys.version_info >= (3, 13), reason="it wants an older Python")
CLIENTS = [
    pytest.param(name, marks=OLDER_PYTHON if name == "aider" else ())
    for name in sorted(ENVIRONMENTS.keys() - PROVIDERS.keys())
]

pytestmark = [pytest.mark.e2e, pytest.mark.clients, pytest.mark.release, pytest.mark.timeout(600)]


@dataclass(slots=True)
class Answers:
    """What the upstream says: by the API that is asked, and to ``provider``'s clients alone."""

    provider: Provider | None = None
    clerk: Clerk = field(default_factory=Clerk)

    def __call__(self, request: Request) -> Script:
        if request.method == "CONNECT":
            return error_answer(403, "nobody is there")
        if request.path.endswith("/models"):
            return json_answer(MODELS)
        if self.provider and (refusal := self._refusal(request, self.provider)):
            return refusal
        return self.clerk(request) if request.path.endswith("/messages") else model(request)

    def _refusal(self, request: Request, provider: Provider) -> Script | None:
        if request.target.decode() != provider.target:
            return error_answer(404, f"nothing is at {request.target.decode()}")
        said = {name: request.header(name) for name in provider.headers}
        return None if said == provider.headers else error_answer(401, f"not with {said}")


def kitchen(folder: Path, proxy: str, up: ScriptedUpstream, **places: str) -> Kitchen:
    patient = {f"MEMORY_PROXY_{name.upper()}": f"{value}" for name, value in PATIENT.items()}
    environ = {**KEYS, **patient, "MEMORY_PROXY_PORT": proxy.rpartition(":")[2]}
    return Kitchen(folder / "home", proxy, up.origin, environ, places)


def remembers(up: ScriptedUpstream) -> bool:
    """Had the prompt that asks for the name what was said before, once?"""
    chats = [request.messages for request in up.requests if request.method == "POST"]
    prompts = [" ".join(map(text_of, said)) for said in chats]
    return [prompt.count(KAI) for prompt in prompts if WHO in prompt] == [1]


@pytest.mark.parametrize("recipe", CLIENTS)
async def test_what_one_process_told_another_asks_for(
    recipe: str, proxy: Running, up: ScriptedUpstream, tmp_path: Path
) -> None:
    up.always(Answers())
    places = {SERVED[recipe]: str(free_port())} if recipe in SERVED else {}
    await follow(recipe, kitchen(tmp_path, proxy.url, up, **places))
    assert remembers(up)


@pytest.mark.parametrize("recipe", PROVIDERS)
async def test_an_upstream_is_asked_as_it_wants_to_be(
    recipe: str, up: ScriptedUpstream, tmp_path: Path
) -> None:
    provider = PROVIDERS[recipe]
    up.always(Answers(provider))
    up.rules["one_system"] = up.rules["alternating"] = provider.template
    address = f"http://127.0.0.1:{free_port()}"
    await follow(recipe, kitchen(tmp_path, address, up, **{provider.told: up.origin}))
    assert remembers(up)
