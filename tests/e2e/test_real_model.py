"""A conversation with a real language model: what it can know tells what it was sent.

The two lines are pinned: the model is tiny, and other names and questions are beyond it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

from tests.support.processes import redis as servers
from tests.support.processes.llm import language_model
from tests.support.processes.running import Running, running, settings_for
from tests.support.store.history import TOKEN, Remembered

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.xdist_group("model"),
]

MODEL, MAX_TOKENS = "smollm2", 40
NAME_GIVEN = "hi, my name is Kai"
NAME_ASKED = "What is my name?"
STREAMING = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with language_model() as address:
        yield address


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with servers.standalone() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "redis"])
async def proxy(
    request: pytest.FixtureRequest, model: str, tmp_path: Path
) -> AsyncIterator[Running]:
    stores = {}
    if request.param == "redis":
        stores = {"store__url": request.getfixturevalue("redis_url")}
    settings = settings_for(tmp_path, f"{model}/v1", store__timeout=5, **stores)
    async with running(settings) as proxy:
        yield proxy


async def ask(proxy: Running, session: str | None, text: str, *, stream: bool) -> str:
    """The model's answer to one message of an app that keeps nothing itself."""
    async with AsyncOpenAI(
        base_url=proxy.v1,
        api_key=TOKEN,
        default_headers={"X-Session-Id": session} if session else {},
        max_retries=0,
        timeout=60,
    ) as client:
        messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": text}]
        completions = client.chat.completions
        if not stream:
            answer = await completions.create(
                model=MODEL, messages=messages, temperature=0, max_tokens=MAX_TOKENS
            )
            return answer.choices[0].message.content or ""
        chunks = await completions.create(
            model=MODEL, messages=messages, temperature=0, max_tokens=MAX_TOKENS, stream=True
        )
        said = [chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices]
        return "".join(said)


@STREAMING
async def test_the_model_knows_the_name_in_the_session_it_was_told_in_and_nowhere_else(
    proxy: Running, stream: bool, request: pytest.FixtureRequest
) -> None:
    told, other = f"told-{request.node.name}", f"other-{request.node.name}"
    hello = await ask(proxy, told, NAME_GIVEN, stream=stream)
    answer = await ask(proxy, told, NAME_ASKED, stream=stream)
    stranger = await ask(proxy, other, NAME_ASKED, stream=stream)
    assert "Kai" in answer
    assert "Kai" not in stranger
    texts = await Remembered(proxy.settings.store.url).texts(told)
    assert texts == [NAME_GIVEN, hello, NAME_ASKED, answer]


async def test_without_a_session_the_model_does_not_know(proxy: Running) -> None:
    await ask(proxy, None, NAME_GIVEN, stream=False)
    assert "Kai" not in await ask(proxy, None, NAME_ASKED, stream=False)
