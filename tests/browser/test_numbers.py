"""Numbers that a browser cannot count with are shown as stored, and stay so beside an edit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.browser.browsing import Console, Locator, expect

pytestmark = pytest.mark.one_back_end

API = "/memory/v1"
STORED = '{"ticket": 1283746519283746511, "price": 10.0, "n": 1}'
EDITED = {"ticket": 1283746519283746511, "price": 10.0, "n": 2}


async def send(visit: Console, method: str, path: str, body: str) -> None:
    headers = {"content-type": "application/json"}
    answer = await visit.client.request(method, API + path, content=body, headers=headers)
    assert answer.is_success, answer.text


async def edit(visit: Console, box: Locator) -> None:
    """Only ``n``, in the dialog that is open."""
    text = await box.input_value()
    await box.fill(text.replace('"n": 1', '"n": 2'))
    await visit.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(visit.page.get_by_role("dialog")).to_have_count(0)


async def stored(visit: Console, path: str, *names: str) -> Any:
    answer = await visit.client.get(API + path)
    found = json.loads(answer.text, parse_float=str)
    for name in names:
        found = found[name]
    return found


def as_text(value: dict[str, Any]) -> dict[str, Any]:
    return {name: str(one) if isinstance(one, float) else one for name, one in value.items()}


async def test_in_metadata(visit: Console) -> None:
    await visit.seed("talk", "Hello")
    await send(visit, "PATCH", "/sessions/talk", f'{{"metadata": {STORED}}}')
    await visit.sign_in("#/sessions/talk")
    await visit.page.get_by_role("tab", name="Session").click()
    shown = visit.page.locator(".inspector .json")
    await expect(shown).to_contain_text("1283746519283746511")
    await expect(shown).to_contain_text("10.0")
    await visit.page.get_by_role("button", name="Edit the metadata").click()
    await edit(visit, visit.page.get_by_role("dialog").get_by_role("textbox"))
    assert await stored(visit, "/sessions/talk", "metadata") == as_text(EDITED)


async def test_in_a_saved_item_and_a_profile(visit: Console) -> None:
    namespace = '["users", "kim", "notes"]'
    item = f'{{"namespace": {namespace}, "key": "k", "value": {STORED}}}'
    await send(visit, "PUT", "/store/items", item)
    await send(visit, "PATCH", "/users/kim/profile", f'{{"order": {STORED}, "total": 5.0}}')
    await visit.sign_in("#/users/kim")
    for tab in ("Saved items", "Profile"):
        await visit.page.get_by_role("tab", name=tab).click()
        await expect(visit.page.locator(".json").first).to_contain_text("1283746519283746511")
        await visit.page.get_by_role("button", name="Edit", exact=True).click()
        await edit(visit, visit.page.get_by_role("dialog").locator("textarea"))
    query = "?namespace=users&namespace=kim&namespace=notes&key=k"
    assert await stored(visit, f"/store/items{query}", "value") == as_text(EDITED)
    profile = await stored(visit, "/users/kim/profile", "document")
    assert profile == {"order": as_text(EDITED), "total": "5.0"}


async def test_in_a_call_and_its_message(visit: Console) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "order", "arguments": STORED}}
    said = [
        {"role": "user", "content": "Order it"},
        {"role": "assistant", "content": None, "tool_calls": [call], "n": 1, "odd": "ODD"},
        {"role": "tool", "tool_call_id": "c", "content": STORED},
    ]
    body = json.dumps({"messages": said}).replace('"ODD"', "1283746519283746511")
    await send(visit, "POST", "/sessions/talk/messages", body)
    await visit.sign_in("#/sessions/talk")
    calling = visit.page.locator(".message").filter(has=visit.page.locator(".call"))
    for fold in (".call", ".result"):
        await calling.locator(f"{fold} .fold").click()
        await expect(calling.locator(f"{fold} .json")).to_contain_text("1283746519283746511")
        await expect(calling.locator(f"{fold} .json")).to_contain_text("10.0")
    await calling.hover()
    await calling.locator(".message-foot").get_by_role("button", name="What to do").click()
    await visit.page.get_by_role("menuitem", name="Edit…").click()
    await edit(visit, visit.page.get_by_role("dialog").get_by_role("textbox"))
    messages = await stored(visit, "/sessions/talk/messages", "data")
    assert messages[1]["message"]["odd"] == 1283746519283746511
    assert messages[1]["message"]["n"] == 2
