"""Stored text that wants to do harm: it is shown as what it is, and nothing comes of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.support.browser.browsing import Console, Look, expect
from tests.support.browser.hostile import (
    BROKEN,
    EVERY_CHARACTER,
    MARKUP_ID,
    SHORT_TEXTS,
    TEXTS,
    guard,
    harm,
    hostile_messages,
    names_of,
)
from tests.support.browser.measuring import elements

pytestmark = pytest.mark.one_back_end

API = "/memory/v1"
IDS = (
    EVERY_CHARACTER,
    MARKUP_ID,
    "javascript:window.hurt=1",
    "__proto__",
    "a/../../b?c#d&e=%2e%00",
)
MAX_NODES = 4000


@pytest.fixture
def look() -> Look:
    """What a page does from its beginning is looked at."""
    return Look(own=True)


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(visit: Console) -> Console:
    await guard(visit)
    return visit


def at(*segments: str) -> str:
    return "/".join((API, *(quote(segment, safe="") for segment in segments)))


async def put(console: Console, session: str, said: list[dict[str, Any]], user: str = "") -> None:
    body = {"messages": said, **({"user": user} if user else {})}
    answer = await console.client.post(
        at("sessions", session, "messages"),
        content=json.dumps(body, ensure_ascii=True),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 200, answer.text


async def patch(console: Console, path: str, body: object) -> None:
    answer = await console.client.patch(path, json=body)
    assert answer.status_code == 200, answer.text


async def test_lists_of_hostile_sessions_and_people_are_shown(guarded: Console) -> None:
    for id in IDS:
        await put(guarded, id, [{"role": "user", "content": id}], user=id)
    for number, text in enumerate(SHORT_TEXTS):
        await put(guarded, f"titled-{number}", [{"role": "user", "content": TEXTS[number]}])
        await patch(guarded, at("sessions", f"titled-{number}"), {"title": text})
    await guarded.sign_in()
    rows = guarded.page.locator(".sessions .virtual-item")
    await expect(guarded.page.locator(".head .tag")).to_have_text(str(len(IDS) + len(TEXTS)))
    await expect(rows.filter(has_text="<script>window.hurt = 1</script>")).to_have_count(1)
    assert await harm(guarded) == []
    await guarded.page.get_by_label("Search id, title or user").fill(EVERY_CHARACTER)
    await expect(rows).to_have_count(1)
    await rows.get_by_role("link").click()
    await expect(guarded.page.get_by_role("heading", level=1)).to_contain_text(EVERY_CHARACTER)
    assert await harm(guarded) == []
    await guarded.go("#/users")
    await expect(guarded.page.locator(".users .virtual-item")).to_have_count(len(IDS))
    await guarded.shot("hostile-users")
    assert await harm(guarded) == []


async def test_hostile_ids_lead_to_what_they_name(guarded: Console) -> None:
    for id in IDS:
        await put(guarded, id, [{"role": "user", "content": f"Said in {id}"}], user=id)
    await guarded.sign_in()
    for id in IDS:
        await guarded.go(f"#/sessions/{quote(id, safe='')}")
        message = guarded.page.locator(".conversation .message")
        await expect(message).to_contain_text(f"Said in {id}")
        await guarded.page.locator(".facts a").click()
        heading = guarded.page.get_by_role("heading", level=1)
        await expect(heading).to_contain_text(id)
        await expect(guarded.page.locator(".tile").filter(has_text="Sessions")).to_contain_text("1")
    assert await harm(guarded) == []


async def test_hostile_messages_are_shown_folded_and_unfolded(guarded: Console) -> None:
    await put(guarded, "talk", hostile_messages(), user="kim")
    details = {"title": SHORT_TEXTS[0], "metadata": names_of(TEXTS)}
    summary = {"text": "\n".join(TEXTS[:8])}
    system = {"role": "system", "content": TEXTS[1]}
    await patch(guarded, at("sessions", "talk"), {**details, "summary": summary, "system": system})
    await guarded.sign_in("#/sessions/talk")
    page = guarded.page
    await expect(page.locator(".conversation").get_by_text("The end").first).to_be_visible()
    assert await harm(guarded) == []
    most = 0
    for _ in range(40):
        folded = page.locator(".conversation .fold[aria-expanded=false]")
        while await folded.count():
            await folded.first.evaluate("button => button.click()")
        up = await page.locator(".conversation").evaluate(
            "list => { list.scrollTop -= 600; return list.scrollTop }"
        )
        await page.evaluate(_FRAMES)
        most = max(most, await elements(page))
        if up == 0:
            break
    await expect(page.locator(".conversation .message").first).to_contain_text(TEXTS[0])
    print(f"{most} elements")
    assert most < MAX_NODES
    assert await harm(guarded) == []
    await guarded.shot("hostile-conversation")


async def test_what_memory_says_of_hostile_text_is_shown(guarded: Console) -> None:
    await put(guarded, "talk", hostile_messages(), user="kim")
    details = {"title": SHORT_TEXTS[1], "metadata": names_of(TEXTS)}
    await patch(guarded, at("sessions", "talk"), {**details, "summary": {"text": TEXTS[0]}})
    for text in TEXTS[:3]:
        await guarded.chat("talk", text, user="kim")
    await guarded.sign_in("#/sessions/talk")
    page = guarded.page
    tabs = page.locator(".talk-side").get_by_role("tab")
    await expect(tabs).not_to_have_count(0)
    for number in range(await tabs.count()):
        await tabs.nth(number).click()
        await expect(page.locator(".talk-side").get_by_role("tabpanel")).not_to_be_empty()
        assert await harm(guarded) == []
        await guarded.shot(f"hostile-inspector-{number}")


async def test_hostile_memories_of_every_kind_are_shown(guarded: Console) -> None:
    user = MARKUP_ID
    for text in TEXTS:
        answer = await guarded.client.post(
            at("users", user, "memories"), json={"text": text[:500], "about": text[:60]}
        )
        assert answer.status_code == 201, answer.text
    await patch(guarded, at("users", user, "profile"), names_of(TEXTS[:8]))
    for number, text in enumerate(TEXTS):
        item = {"namespace": ["users", user, "notes"], "key": f"k{number}", "value": {"t": text}}
        answer = await guarded.client.put(f"{API}/store/items", json=item)
        assert answer.status_code == 200, answer.text
    await guarded.sign_in(f"#/users/{quote(user, safe='')}")
    page = guarded.page
    await expect(page.get_by_role("article").filter(has_text="⟨U+202E⟩gpj.exe")).to_be_visible()
    assert await harm(guarded) == []
    tabs = page.get_by_role("tab")
    for number in range(await tabs.count()):
        await tabs.nth(number).click()
        await expect(page.get_by_role("tabpanel")).not_to_be_empty()
        assert await harm(guarded) == []
        await guarded.shot(f"hostile-user-{number}")
    await page.get_by_role("button", name="Erase…").click()
    await expect(page.get_by_role("dialog").get_by_role("row").first).to_be_visible()
    assert await harm(guarded) == []


async def test_hostile_files_and_what_is_said_of_them_are_shown(
    guarded: Console, tmp_path: Path
) -> None:
    name = "<img src=x onerror=window.hurt=1>\u202egpj.json"
    file = tmp_path / name
    said = [{"role": text, "content": text} for text in ("user", *TEXTS)]
    file.write_text(json.dumps(said), encoding="utf-8")
    await guarded.sign_in()
    page = guarded.page
    await page.get_by_role("button", name="Import").click()
    await page.get_by_label("Choose a file").set_input_files(file)
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("<img src=x onerror=window.hurt=1>")).to_be_visible()
    await dialog.get_by_role("button", name="Import").click()
    await expect(dialog.locator("[role=alert]:not(:empty), .note, .receipt").first).to_be_visible()
    await guarded.shot("hostile-import")
    assert await harm(guarded) == []


async def test_hostile_answers_of_the_api_are_shown_as_words(guarded: Console) -> None:
    error = {"message": TEXTS[1] + TEXTS[7], "type": TEXTS[0], "code": TEXTS[0], "param": TEXTS[0]}
    await guarded.page.route(
        re.compile(r"/memory/v1/stats"),
        lambda route: route.fulfill(status=400, json={"error": error}),
    )
    await guarded.sign_in("#/stats")
    await expect(guarded.page.get_by_text("<img src=x onerror=").first).to_be_visible()
    assert await harm(guarded) == []


async def test_hostile_addresses_lead_nowhere(guarded: Console) -> None:
    await guarded.sign_in()
    for hash in (
        "#/sessions/<script>window.hurt=1</script>",
        "#/users/%E0%A4%A",
        "#javascript:window.hurt=1",
        "#/__proto__/constructor",
        f"#/sessions/x/exchanges/{quote(TEXTS[1], safe='')}",
        "#/sessions/x/messages/%00",
        "#//elsewhere.example/",
    ):
        await guarded.go(hash)
        await expect(guarded.page.locator("main, [role=main]").first).not_to_be_empty()
        assert await harm(guarded) == [], hash


async def test_text_that_is_no_unicode_is_shown_and_does_nothing(guarded: Console) -> None:
    lone = json.dumps(f"lone \ud83d and \udc00 {BROKEN}")
    body = f'{{"messages": [{{"role": "user", "content": {lone}}}]}}'
    answer = await guarded.client.post(
        at("sessions", "lone", "messages"),
        content=body,
        headers={"content-type": "application/json"},
    )
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        await put(guarded, "lone", [{"role": "user", "content": f"lone \ufffd {BROKEN}"}])
    await guarded.sign_in("#/sessions/lone")
    await expect(guarded.page.locator(".conversation .message")).to_contain_text("lone")
    assert await harm(guarded) == []


_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
