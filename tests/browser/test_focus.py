"""Where the focus is once what had it is gone, is off, or was pressed in vain: never nowhere."""

from __future__ import annotations

import pytest

from tests.browser.keys import answer, pick, push, tab_to
from tests.support.browser.browsing import ADMIN, Console, Look, Route, expect

pytestmark = pytest.mark.one_back_end

PERSON = "/memory/v1/users/kim"
TALK = "/memory/v1/sessions/talk"
REFUSED = {"error": {"message": "Too many at once.", "type": "rate_limit", "code": "busy"}}


@pytest.fixture
def look() -> Look:
    return Look(own=True)


async def test_what_is_in_the_place_of_a_forgotten_memory_has_it(visit: Console) -> None:
    for text in ("Rides a bicycle", "Lives in Kiel", "Drinks tea"):
        await visit.client.post(f"{PERSON}/memories", json={"text": text})
    await visit.sign_in("#/users/kim")
    page = visit.page
    memories = page.locator(".memory")
    await expect(memories).to_have_count(3)
    for left, at in ((2, 1), (1, 1)):
        await pick(page, memories.nth(at).get_by_role("button", name="More actions"), "Forget")
        await answer(page, "Forget")
        await expect(memories).to_have_count(left)
        await expect(memories.last.get_by_role("button", name="More actions")).to_be_focused()
    await pick(page, memories.get_by_role("button", name="More actions"), "Forget")
    await answer(page, "Forget")
    await expect(memories).to_have_count(0)
    await expect(page.locator(".memories")).to_be_focused()


async def test_what_is_in_the_place_of_a_deleted_item_has_it(visit: Console) -> None:
    for key in ("bread", "milk"):
        item: dict[str, object] = {"namespace": ["users", "kim", "notes"], "key": key, "value": {}}
        await visit.client.put("/memory/v1/store/items", json=item)
    await visit.seed("talk", "Hello", user="kim")
    await visit.sign_in("#/users/kim/tabs/saved")
    page = visit.page
    items = page.get_by_role("article")
    await push(page, items.first.get_by_role("button", name="Delete"))
    await answer(page, "Delete")
    await expect(items).to_have_count(1)
    await expect(items.get_by_role("button", name="Delete")).to_be_focused()


async def test_it_comes_back_from_a_message_that_is_closed(visit: Console) -> None:
    await visit.client.post(f"{PERSON}/memories", json={"text": "Lives in Kiel"})
    await visit.sign_in("#/users/kim")
    page = visit.page
    menu = page.get_by_role("button", name="More actions").last
    await page.route("**/memories/*", lambda route: route.fulfill(status=429, json=REFUSED))
    await pick(page, menu, "Quarantine")
    await tab_to(page, page.locator(".toast").get_by_role("button", name="Close"))
    await page.keyboard.press("Enter")
    await expect(page.locator(".toast")).to_have_count(0)
    assert await page.evaluate("document.activeElement !== document.body")


async def test_the_way_to_the_oldest_exchange_keeps_it(visit: Console) -> None:
    for text in ("First question", "Second question"):
        await visit.chat("talk", text)
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    older = page.get_by_role("button", name="Older exchange")
    await push(page, older)
    await expect(page.get_by_text("Newest exchange")).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(older).to_be_disabled()
    await expect(older).to_be_focused()


async def test_what_could_not_be_saved_can_be_saved_again_with_the_same_key(
    visit: Console,
) -> None:
    async def refuse(route: Route) -> None:
        if route.request.method == "PATCH":
            await route.fulfill(status=429, json=REFUSED)
        else:
            await route.continue_()

    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await page.get_by_role("button", name="What to do with this message").last.click()
    await page.get_by_role("menuitem", name="Edit…").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill("Another answer")
    await page.route("**/memory/v1/**", refuse)
    await push(page, dialog.get_by_role("button", name="Save"))
    await expect(dialog.get_by_text("Too many at once.")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Save")).to_be_focused()


async def test_whoever_goes_from_tenant_to_tenant_keeps_it(visit: Console) -> None:
    for key in (visit.key, f"{visit.key}-2"):
        said = {"messages": [{"role": "user", "content": "Hello"}]}
        headers = {"authorization": f"Bearer {key}"}
        await visit.client.post(f"{TALK}/messages", json=said, headers=headers)
    await visit.sign_in(key=ADMIN)
    page = visit.page
    tenant = page.get_by_label("Tenant")
    await tenant.focus()
    for key in ("ArrowDown", "ArrowUp"):
        await expect(tenant.locator("option").nth(1)).to_be_attached()
        before = await tenant.get_attribute("title") or ""
        await page.keyboard.press(key)
        await expect(tenant).not_to_have_attribute("title", before)  # of the new tenant's page
        await expect(tenant).to_be_focused()
