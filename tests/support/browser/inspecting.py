"""The console's inspector, opened and spoken to as people do."""

from __future__ import annotations

from typing import Any

from tests.support.browser.browsing import Console, Locator
from tests.support.waiting import eventually

SESSION = "/memory/v1/sessions/talk"


async def told(console: Console, text: str) -> list[str]:
    """Said in an older session, and found by now; the ids of its messages."""
    ids = await console.seed("older", text, "How nice", user="kim")

    async def found() -> bool:
        search = {"query": text}
        answer = await console.client.post("/memory/v1/users/kim/memories/search", json=search)
        return bool(answer.json()["data"])

    await eventually(found)
    return ids


async def ask(console: Console, text: str, **headers: str) -> str:
    """A chat in the session; its exchange."""
    body = {"model": "scripted-1", "messages": [{"role": "user", "content": text}]}
    head = {"x-session-id": "talk", "x-user-id": "kim", **headers}
    answer = await console.client.post("/v1/chat/completions", json=body, headers=head)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-memory-exchange-id"]


async def session(console: Console) -> dict[str, Any]:
    answer = await console.client.get(SESSION)
    found: dict[str, Any] = answer.json()
    return found


async def change(console: Console, **fields: object) -> None:
    """As somebody else would, meanwhile."""
    answer = await console.client.patch(SESSION, json=fields)
    assert answer.status_code == 200, answer.text


async def inspect(console: Console, tab: str = "Why", path: str = "") -> Locator:
    """The session's inspector at one of its tabs."""
    await console.sign_in(f"#/sessions/talk{path}")
    inspector = console.page.locator(".inspector")
    await inspector.get_by_role("tab", name=tab).click()
    return inspector.get_by_role("tabpanel")


def section(panel: Locator, title: str) -> Locator:
    return panel.locator("section").filter(has=panel.page.get_by_role("heading", name=title))


async def confirm(console: Console, action: str) -> None:
    await console.page.get_by_role("dialog").get_by_role("button", name=action, exact=True).click()
