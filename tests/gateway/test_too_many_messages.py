"""A request of endlessly many messages is passed on as it is, and not remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.chat import request
from tests.support.processes.running import running, settings_for
from tests.support.store.inside import AUTHORIZATION
from tests.support.talk.chatting import chatting
from tests.support.upstream.scripted import ScriptedUpstream


async def test_more_messages_than_the_bound_are_passed_on_without_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "MAX_MESSAGES", 3)
    said = [{"role": "user", "content": f"u{n}"} for n in range(4)]
    headers = {"x-session-id": "s", "authorization": AUTHORIZATION}
    async with (
        ScriptedUpstream() as up,
        running(settings_for(tmp_path, up.url)) as proxy,
        chatting(proxy.url) as chat,
    ):
        body = {"model": "scripted-1", "messages": said[:3]}
        kept = await chat.client.post("/v1/chat/completions", json=body, headers=headers)
        body = {"model": "scripted-1", "messages": said}
        passed = await chat.client.post("/v1/chat/completions", json=body, headers=headers)
        history = await chat.client.get("/memory/v1/sessions/s/messages", headers=headers)
        preview = await chat.client.post(
            "/memory/v1/sessions/s/context", json=body, headers=headers
        )
    assert kept.headers["x-memory-status"] == "empty"
    assert passed.status_code == 200
    assert passed.headers["x-memory-status"] == "off"
    assert passed.headers["x-memory-reason"] == "too_many_parts"
    assert up.requests[-1].messages == said
    assert len(history.json()["data"]) == 4
    assert preview.status_code == 400
