"""The conversation: what was said, what the model saw of it, and what can be done with it."""

from __future__ import annotations

from typing import Any

from tests.support.browsing import Console, Locator, expect


def bubbles(console: Console) -> Locator:
    return console.page.locator(".conversation .message")


def bubble(console: Console, text: str) -> Locator:
    return bubbles(console).filter(has_text=text)


async def put(console: Console, session: str, *messages: dict[str, Any]) -> list[str]:
    """Import messages as they are; their ids."""
    path = f"/memory/v1/sessions/{session}/messages"
    answer = await console.client.post(path, json={"messages": messages})
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["data"]]


async def test_a_conversation_is_shown_and_opens_at_its_end(
    visit: Console, back_end: str
) -> None:
    said = [f"Line {n}\nwith a second one" for n in range(120)]
    await visit.seed("long", *said, user="kim")
    await visit.sign_in("#/sessions/long")
    await expect(bubble(visit, "Line 119")).to_be_in_viewport()
    await visit.page.locator(".conversation").evaluate("list => list.scrollTo(0, 0)")
    await expect(bubbles(visit).first).to_contain_text("Line 0")
    await visit.shot(f"talk-first-{back_end}")
