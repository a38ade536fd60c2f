"""What kim's page tells of memories."""

from __future__ import annotations

from typing import Any

from tests.support.browser.browsing import Console, Locator

MEMORIES = "/memory/v1/users/kim/memories"


async def remember(console: Console, text: str, **more: Any) -> str:
    """A fact of kim's, and its id."""
    answer = await console.client.post(MEMORIES, json={"text": text, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def memory(console: Console, text: str) -> Locator:
    return console.page.get_by_role("article").filter(has_text=text)


async def choose(console: Console, text: str, action: str) -> None:
    await memory(console, text).get_by_role("button", name="More actions").click()
    await console.page.get_by_role("menuitem", name=action, exact=True).click()
