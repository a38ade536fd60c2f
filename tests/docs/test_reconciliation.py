"""docs/reconciliation.md: each row of its table is played through a real proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.pages import table
from tests.support.processes.running import Running, running, settings_for
from tests.support.store.history import TOKEN, history
from tests.support.upstream.answers import Script, chat_completion, json_answer, tool_call
from tests.support.upstream.scripted import ScriptedUpstream

ROWS = table("reconciliation.md", "the client sends", "stored before")


@pytest.fixture
async def up() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as upstream:
        yield upstream


@pytest.fixture
async def proxy(up: ScriptedUpstream, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(tmp_path, up.url, store__timeout=5)) as proxy:
        yield proxy


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
async def test_clients_get_what_the_table_says(
    row: list[str], proxy: Running, up: ScriptedUpstream
) -> None:
    _, before, request, expected, recorded = row
    said, asked = before.split(), list[str]()
    for word in said:
        if word[0] in "ac":
            await say(proxy, up, asked, word)
            asked = []
        else:
            asked.append(word)
    await say(proxy, up, request.split(), recorded.split()[-1])
    assert [name(message) for message in up.requests[-1].messages] == expected.split()
    stored = await history(proxy.settings.store.url, "table", ("active", "superseded"))
    assert [name(message) for message in stored][len(said) :] == recorded.split()
    assert not up.refused


async def say(proxy: Running, up: ScriptedUpstream, sent: list[str], answer: str) -> None:
    """A request with these messages, which the upstream answers so."""
    up.reply(scripted(answer))
    body = {"model": "m", "messages": [message(each) for each in sent]}
    headers = {"X-Session-Id": "table", "authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=proxy.url, headers=headers, timeout=20) as http:
        response = await http.post("/v1/chat/completions", json=body)
    assert response.status_code == 200


def scripted(answer: str) -> Script:
    if answer[0] == "c":
        return json_answer(chat_completion(None, tool_calls=message(answer)["tool_calls"]))
    return json_answer(chat_completion(answer))


def message(word: str) -> dict[str, Any]:
    """What a word of the table stands for."""
    if word[0] == "c":
        calls = [tool_call("look", "{}", f"call_{digit}") for digit in word[1:]]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if word[0] == "t":
        return {"role": "tool", "tool_call_id": f"call_{word[1:]}", "content": word}
    return {"role": "assistant" if word[0] in "aq" else "user", "content": word}


def name(said: dict[str, Any]) -> str:
    """The word that stands for a message."""
    ids = [call["id"].removeprefix("call_") for call in said.get("tool_calls", ())]
    return f"c{''.join(ids)}" if ids else said["content"]
