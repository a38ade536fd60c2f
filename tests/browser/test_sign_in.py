"""Signing in, choosing whose memory, and what is never kept."""

from __future__ import annotations

import pytest

from tests.support.browser.browsing import ADMIN, Console, Look, expect

pytestmark = pytest.mark.one_back_end


@pytest.fixture
def look() -> Look:
    """What a page keeps is looked at."""
    return Look(own=True)


async def test_a_key_opens_the_console_and_reloading_the_page_closes_it(visit: Console) -> None:
    await visit.seed("first", "Hello", "Hi")
    await visit.sign_in()
    page = visit.page
    await expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    await expect(page.get_by_role("link", name="Hello")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("API key")).to_be_visible()


async def test_the_key_is_in_no_storage_and_in_no_address(visit: Console) -> None:
    await visit.sign_in()
    await expect(visit.page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    kept = await visit.page.evaluate(
        """async () => [localStorage.length, sessionStorage.length, document.cookie,
            (await indexedDB.databases()).length, (await caches.keys()).length, location.href]"""
    )
    assert kept[:5] == [0, 0, "", 0, 0]
    assert not any(visit.key in address for address in [*visit.asked, kept[5]])
    assert all(address.startswith(visit.proxy.url) for address in visit.asked)


async def test_a_key_that_cannot_be_one_is_refused_in_clear_words(visit: Console) -> None:
    await visit.open()
    await visit.page.get_by_label("API key").fill("schlüssel")
    await visit.page.get_by_role("button", name="Sign in").click()
    await expect(visit.page.get_by_text("does not know this key")).to_be_visible()
    await expect(visit.page.get_by_label("API key")).to_be_focused()


async def test_without_a_key_one_sees_what_was_said_without_a_key(visit: Console) -> None:
    await visit.client.post(
        "/memory/v1/sessions/nobodys/messages",
        json={"messages": [{"role": "user", "content": "Of nobody"}]},
        headers={"authorization": ""},
    )
    await visit.open()
    await visit.page.get_by_role("button", name="Continue without a key").click()
    await expect(visit.page.get_by_role("link", name="Of nobody")).to_be_visible()


async def test_the_administrator_chooses_whose_memory_is_seen(visit: Console) -> None:
    await visit.seed("theirs", "Of a tenant")
    tenants = await visit.client.get(
        "/memory/v1/tenants", headers={"authorization": f"Bearer {ADMIN}"}
    )
    mine = (await visit.client.get("/memory/v1/whoami")).json()["tenant"]
    assert mine in [each["id"] for each in tenants.json()["data"]]
    await visit.sign_in(key=ADMIN)
    await visit.page.get_by_label("Tenant").select_option(mine)
    await expect(visit.page.get_by_role("link", name="Of a tenant")).to_be_visible()


async def test_going_back_to_what_was_seen_of_another_tenant_leads_to_the_list(
    visit: Console,
) -> None:
    other = {"authorization": f"Bearer {visit.key}-other"}
    said = {"messages": [{"role": "user", "content": "Of the other"}]}
    await visit.seed("default", "Of the one")
    await visit.client.post("/memory/v1/sessions/default/messages", json=said, headers=other)
    one, another = [
        (await visit.client.get("/memory/v1/whoami", headers=headers)).json()["tenant"]
        for headers in ({}, other)
    ]
    page = visit.page
    await visit.sign_in(key=ADMIN)
    await page.get_by_label("Tenant").select_option(one)
    await page.get_by_role("link", name="Of the one").click()
    await expect(page.locator(".message")).to_contain_text("Of the one")
    await visit.go("#/users")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Users")
    await page.get_by_label("Tenant").select_option(another)
    await expect(page.get_by_role("link", name="Of the other")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    await expect(page).to_have_url(f"{visit.address}#/sessions")
    await page.get_by_role("link", name="Of the other").click()
    await expect(page.locator(".message")).to_contain_text("Of the other")


async def test_what_cannot_be_loaded_behind_the_sign_in_is_said(visit: Console) -> None:
    page = visit.page
    await page.route("**/console/shell.js", lambda route: route.abort())
    await visit.open()
    await page.get_by_label("API key").fill(visit.key)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").filter(has_text="Reload the page.")).to_be_visible()
    await page.unroute("**/console/shell.js")
    await page.reload()
    await visit.sign_in()
    visit.complaints[:] = [each for each in visit.complaints if "Failed to load" not in each]


async def test_signing_out_forgets_what_was_seen(inside: Console) -> None:
    page = inside.page
    await page.get_by_role("button", name="Account and help").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    await expect(page.get_by_label("API key")).to_have_value("")


async def test_language_and_colours_are_switched_in_place(visit: Console) -> None:
    await visit.open()
    page = visit.page
    await page.get_by_role("button", name="Language").click()
    await page.get_by_role("menuitemradio", name="中文").click()
    await expect(page.get_by_role("button", name="登录")).to_be_visible()
    assert await page.evaluate("document.documentElement.lang") == "zh-Hans"
    light = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    await page.get_by_role("button", name="配色").click()
    await page.get_by_role("menuitemradio", name="深色").click()
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    await visit.shot("sign-in-zh-dark")


async def test_the_shortcuts_are_told_and_a_dialog_gives_the_focus_back(inside: Console) -> None:
    page = inside.page
    await page.get_by_role("link", name="Users").focus()
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("link", name="Users")).to_be_focused()
