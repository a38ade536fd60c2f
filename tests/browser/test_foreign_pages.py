"""What a real browser lets a page from elsewhere do: no memory of those who have no key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser.browsing import Page, chromium
from tests.support.client import client_of
from tests.support.processes.running import PATIENT, running, settings_for
from tests.support.upstream.answers import chat_completion, json_answer
from tests.support.upstream.scripted import ScriptedUpstream

CHAT = "/s/private/v1/chat/completions"

_ASK = """async ([url, body]) => {
  const answer = await fetch(url, { method: "POST", body, mode: "MODE" });
  return [answer.headers.get("x-memory-reason"), answer.headers.get("x-memory-status")];
}"""


def saying(text: str) -> str:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})


async def asked(page: Page, url: str, text: str, mode: str = "cors") -> Any:
    return await page.evaluate(_ASK.replace("MODE", mode), [url, saying(text)])


@pytest.mark.parametrize("mode", ["key", "single"])
async def test_only_pages_of_this_machine_reach_keyless_memory(mode: str, tmp_path: Path) -> None:
    async with (
        ScriptedUpstream() as up,
        running(settings_for(tmp_path, up.url, **PATIENT, tenancy__mode=mode)) as proxy,
        client_of(proxy.url) as client,
        # A name that was bound to this machine, as a page does to the name that it came from.
        chromium("--host-resolver-rules=MAP *.example 127.0.0.1") as browser,
    ):
        up.always(json_answer(chat_completion("noted")))
        await client.post(CHAT, content=saying("a secret"))
        page = await browser.new_page()
        rebound = proxy.url.replace("127.0.0.1", "evil.example")

        await page.goto(f"{rebound}/healthz")
        assert await asked(page, CHAT, "what is it?") == ["cross_site", "off"]
        await asked(page, proxy.url + CHAT, "planted", "no-cors")
        assert [len(request.messages) for request in up.requests] == [1, 1, 1]

        await page.goto(f"{proxy.url}/healthz")
        assert await asked(page, CHAT, "and now?") == [None, "applied"]
        assert "planted" not in up.requests[-1].body.decode()
        assert len(up.requests[-1].messages) == 3
