"""A real language model writes the summary of a conversation with it, and is sent it next time.

The lines and the template are pinned: the model is tiny, and others are beyond it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes.llm import language_model
from tests.support.processes.running import running, settings_for
from tests.support.store.history import TOKEN
from tests.support.talk.recalling import blocks_in
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.xdist_group("model"),
]

MODEL, MAX_TOKENS = "smollm2", 80
SAID = ["hi, my name is Kai", "I live in Lisbon and I have a cat called Miso."]
ASKED = "What is my name?"
TEMPLATE = """\
Read this conversation.

{summary}
{new_lines}

Now describe in the third person what was said. Begin with: The human said that"""
SUMMARY = {
    "enabled": True,
    "mode": "summary",
    "prompt": TEMPLATE,
    "after_turns": len(SAID),
    "max_tokens": MAX_TOKENS,
    "parameters": {"temperature": 0, "max_tokens": MAX_TOKENS - 20},
}
SESSION = "/memory/v1/sessions/s"


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with language_model() as address:
        yield address


@pytest.fixture
async def client(model: str, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    memory = {"summary": SUMMARY, "recall": {"enabled": False}}
    settings = settings_for(tmp_path, f"{model}/v1", store__timeout=5, memory=memory)
    headers = {"authorization": f"Bearer {TOKEN}", "x-session-id": "s"}
    async with (
        running(settings) as proxy,
        httpx.AsyncClient(base_url=proxy.url, headers=headers, timeout=60) as client,
    ):
        yield client


async def say(client: httpx.AsyncClient, text: str) -> httpx.Response:
    body = {"model": MODEL, "temperature": 0, "max_tokens": 40}
    message = {"role": "user", "content": text}
    answer = await client.post("/v1/chat/completions", json={**body, "messages": [message]})
    assert answer.status_code == 200, answer.text
    return answer


async def test_what_the_model_has_summarised_is_in_its_next_prompt(
    client: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in SAID:
        await say(client, text)
    found: dict[str, Any] = {}

    async def summarised() -> bool:
        found.update((await client.get(SESSION)).json())
        return found["summary"] is not None

    await eventually(summarised)
    text, tokens = found["summary"]["text"], found["summary"]["tokens"]
    assert "Kai" in text and 0 < tokens <= MAX_TOKENS
    assert (found["summary"]["version"], found["summary"]["covers_until"]) == (1, 4)
    asked = {"messages": [{"role": "user", "content": ASKED}]}
    sent = (await client.post(f"{SESSION}/context", json=asked)).json()["messages"]
    assert blocks_in(sent)["summary"] == text
    assert [m["content"] for m in sent if m["role"] != "system"] == [ASKED]
    answer = await say(client, ASKED)
    assert answer.headers["x-memory-messages"] == "0"
    assert int(answer.headers["x-memory-tokens"]) > tokens
    said = answer.json()["choices"][0]["message"]["content"]
    assert "Kai" in said
    with capsys.disabled():
        print(f"\n{MODEL} wrote in {tokens} tokens: {text!r}, and then says: {said!r}")
