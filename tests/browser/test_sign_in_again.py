"""A key that is no longer taken while somebody works: nothing that was typed is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.test_late import held
from tests.support.browser.browsing import ADMIN, Console, Locator, Look, Route, expect

pytestmark = pytest.mark.one_back_end

NEW = "sk-new-key-of-the-same"
TYPED = "Typed for ten minutes"


@pytest.fixture
def look() -> Look:
    return Look(own=True)


async def unknown_key(route: Route) -> None:
    await route.fulfill(status=401, json={"error": {"message": "no", "code": "x"}})


async def keys(console: Console) -> dict[str, str]:
    """Those that are taken from now on, each with the one that it stands for."""
    taken = {key: key for key in (console.key, f"{console.key}-other")}

    async def serve(route: Route) -> None:
        headers = dict(route.request.headers)
        key = headers.get("authorization", "").removeprefix("Bearer ")
        if key not in taken:
            await unknown_key(route)
        else:
            await route.continue_(headers={**headers, "authorization": f"Bearer {taken[key]}"})

    await console.page.route("**/memory/v1/**", serve)
    return taken


def rotate(console: Console, taken: dict[str, str]) -> None:
    del taken[console.key]
    taken[NEW] = console.key


async def correcting(console: Console) -> Locator:
    """A message's dialog with something typed in it."""
    await console.seed("talk", "Hello", "Hi")
    await console.sign_in("#/sessions/talk")
    page = console.page
    await page.get_by_role("button", name="What to do with this message").last.click()
    await page.get_by_role("menuitem", name="Edit…").click()
    dialog = page.get_by_role("dialog", name="Edit in place")
    await dialog.get_by_role("textbox").fill(TYPED)
    return dialog


def asking(console: Console) -> Locator:
    return console.page.get_by_role("dialog", name="Sign in")


async def sign_in_again(console: Console, key: str) -> None:
    await expect(asking(console)).to_contain_text("no longer takes your key")
    await asking(console).get_by_label("API key").fill(key)
    await console.page.keyboard.press("Enter")
    await expect(asking(console)).to_have_count(0)


async def test_what_was_typed_is_saved_with_the_next_key(visit: Console) -> None:
    taken = await keys(visit)
    dialog = await correcting(visit)
    rotate(visit, taken)
    page = visit.page
    await expect(asking(visit).get_by_label("API key")).to_be_focused()
    await visit.shot("sign-in-again")
    assert await visit.violations() == []
    await page.mouse.click(5, 5)
    for _ in range(3):
        await page.keyboard.press("Escape")
    await sign_in_again(visit, NEW)
    await expect(dialog.get_by_role("textbox")).to_be_focused()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    await expect(page.locator(".conversation")).to_contain_text(TYPED)


async def test_a_change_that_was_refused_for_its_key_is_made_with_the_next(visit: Console) -> None:
    dialog = await correcting(visit)
    await visit.page.route("**/sessions/talk/messages/*", unknown_key, times=1)
    await dialog.get_by_role("button", name="Save").click()
    await sign_in_again(visit, visit.key)
    await expect(dialog).to_have_count(0)
    await expect(visit.page.locator(".conversation")).to_contain_text(TYPED)


async def test_an_import_that_was_refused_for_its_key_is_made_with_the_next(
    visit: Console, tmp_path: Path
) -> None:
    file = tmp_path / "chat.json"
    file.write_text('[{"role": "user", "content": "From elsewhere"}]', encoding="utf-8")
    await visit.sign_in()
    page = visit.page
    await page.get_by_role("button", name="Import").click()
    await page.get_by_label("Choose a file").set_input_files(file)
    await page.route("**/memory/v1/import?*", unknown_key, times=1)
    dialog = page.get_by_role("dialog", name="Import memory")
    await dialog.get_by_role("button", name="Import").click()
    await sign_in_again(visit, visit.key)
    await expect(dialog.get_by_text("Imported.")).to_be_visible()


async def test_a_deletion_that_waits_for_a_key_is_not_made_once_its_page_is_left(
    visit: Console,
) -> None:
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await page.get_by_role("button", name="What to do with this session").click()
    await page.get_by_role("menuitem", name="Delete this session…").click()
    delete = page.get_by_role("dialog").get_by_role("button", name="Delete for good")
    await expect(delete).to_be_enabled()
    await page.route("**/sessions/talk", unknown_key)
    await delete.click()
    await expect(asking(visit)).to_be_visible()
    await page.unroute("**/sessions/talk", unknown_key)
    await visit.go("#/sessions")
    await expect(delete).to_have_count(0)
    async with page.expect_response("**/sessions?*"):
        await sign_in_again(visit, visit.key)
    await expect(page.get_by_role("link", name="Hello")).to_be_visible()
    assert (await visit.client.get("/memory/v1/sessions/talk")).status_code == 200


async def test_who_signs_in_for_another_tenant_starts_anew_with_the_list(visit: Console) -> None:
    taken = await keys(visit)
    dialog = await correcting(visit)
    other = {"authorization": f"Bearer {visit.key}-other"}
    said = {"messages": [{"role": "user", "content": "Of another tenant"}]}
    await visit.client.post("/memory/v1/sessions/talk/messages", json=said, headers=other)
    rotate(visit, taken)
    await sign_in_again(visit, f"{visit.key}-other")
    await expect(dialog).to_have_count(0)
    await expect(visit.page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions")


async def test_who_has_no_other_key_signs_out(visit: Console) -> None:
    taken = await keys(visit)
    await correcting(visit)
    rotate(visit, taken)
    await asking(visit).get_by_role("button", name="Sign out").click()
    await expect(visit.page.locator("dialog, .shell")).to_have_count(0)
    await expect(visit.page.get_by_label("API key")).to_have_value("")


async def test_who_signs_out_is_not_signed_in_by_an_answer_that_comes_late(visit: Console) -> None:
    taken = await keys(visit)
    await correcting(visit)
    rotate(visit, taken)
    await asking(visit).get_by_label("API key").fill(NEW)
    async with held(visit, "**/whoami") as asked:
        await visit.page.keyboard.press("Enter")
        await asked
        await asking(visit).get_by_role("button", name="Sign out").click()
        await expect(visit.page.locator(".signin")).to_be_visible()
    await expect(visit.page.locator(".signin")).to_be_visible()
    await expect(visit.page.locator(".shell")).to_have_count(0)


async def test_the_administrator_goes_on_with_the_same_tenant(visit: Console) -> None:
    await visit.seed("theirs", "Of a tenant")
    mine = (await visit.client.get("/memory/v1/whoami")).json()["tenant"]
    await visit.sign_in(key=ADMIN)
    page = visit.page
    await page.get_by_label("Tenant").select_option(mine)
    await expect(page.get_by_role("link", name="Of a tenant")).to_be_visible()
    await page.route("**/memory/v1/sessions?*", unknown_key, times=1)
    await sign_in_again(visit, ADMIN)
    await expect(page.get_by_label("Tenant")).to_have_value(mine)
    await expect(page.get_by_role("link", name="Of a tenant")).to_be_visible()


async def test_the_administrator_goes_on_where_a_tenant_s_key_was_refused(visit: Console) -> None:
    taken = await keys(visit)
    taken[ADMIN] = ADMIN
    await correcting(visit)
    mine = (await visit.client.get("/memory/v1/whoami")).json()["tenant"]
    rotate(visit, taken)
    await sign_in_again(visit, ADMIN)
    await expect(visit.page.get_by_label("Tenant")).to_have_value(mine)
    await expect(visit.page.locator(".conversation")).to_contain_text("Hello")


async def test_the_administrator_is_led_to_the_list_where_the_tenant_is_another(
    visit: Console,
) -> None:
    taken = await keys(visit)
    taken[ADMIN] = ADMIN
    await visit.sign_in("#/users/kim")
    rotate(visit, taken)
    await sign_in_again(visit, ADMIN)
    await expect(visit.page.get_by_label("Tenant")).to_be_visible()
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions")


@pytest.mark.parametrize("key", [NEW, "other"])
async def test_a_late_refusal_of_the_key_before_asks_for_none(visit: Console, key: str) -> None:
    taken = await keys(visit)
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await page.get_by_role("tab", name="Would be sent").click()
    await page.get_by_label("Next message").fill("What?")
    async with held(visit, "**/sessions/talk/context", "POST") as asked:
        await page.locator(".asking").get_by_role("button").click()
        await asked
        rotate(visit, taken)
        await sign_in_again(visit, NEW if key == NEW else f"{visit.key}-other")
    await expect(page.locator(".shell")).to_be_visible()
    await expect(asking(visit)).to_have_count(0)
