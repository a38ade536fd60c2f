"""An answer that comes late: nothing of what is shown by then goes, and nobody is led away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.browser.memories import choose
from tests.support.browser.browsing import Console, Locator, Look, Request, Route, expect
from tests.support.browser.inspecting import ask, inspect

pytestmark = pytest.mark.one_back_end

TYPED = "Typed for ten minutes"


@pytest.fixture
def look() -> Look:
    return Look(own=True)


@asynccontextmanager
async def held(
    console: Console, url: str, method: str = "GET"
) -> AsyncIterator[asyncio.Future[Request]]:
    """The first that is asked so, which is answered at the end of the block, and read then."""
    asked: asyncio.Future[Request] = asyncio.get_running_loop().create_future()
    go_on = asyncio.Event()

    async def hold(route: Route) -> None:
        if route.request.method == method and not asked.done():
            asked.set_result(route.request)
            await go_on.wait()
        await route.fallback()

    await console.page.route(url, hold)
    yield asked
    async with console.page.expect_response(lambda one: one.request == asked.result()) as answering:
        go_on.set()
    await (await answering.value).finished()
    await console.page.evaluate("fetch('v1/openapi.json').then(answer => answer.text())")


async def editing(console: Console, what: str) -> Locator:
    """Its dialog is open: the box in which one types."""
    page, dialog = console.page, console.page.get_by_role("dialog")
    panel = page.locator(".talk-side")
    if what.startswith("message"):
        message = page.locator(".conversation .message").nth(int(what[-1]))
        await message.hover()
        await message.get_by_role("button", name="What to do with this message").click()
        await page.get_by_role("menuitem", name="Edit…").click()
    elif what == "fact":
        await choose(console, "Lives in Kiel", "Edit")
    elif what == "new fact":
        await page.get_by_role("button", name="Add a fact").click()
    else:
        name = {"title": "Edit", "metadata": "Edit the metadata"}[what]
        await panel.get_by_role("button", name=name, exact=True).click()
    return dialog.get_by_role("textbox").first


async def cancel(console: Console) -> None:
    dialog = console.page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_have_count(0)


@pytest.mark.parametrize(
    ("saved", "method", "then"),
    [
        ("message 0", "PATCH", "message 1"),
        ("title", "PATCH", "metadata"),
        ("metadata", "PATCH", "title"),
        ("fact", "PATCH", "new fact"),
        ("new fact", "POST", "fact"),
    ],
)
async def test_what_is_typed_stays_when_what_was_saved_before_is_answered(
    visit: Console, saved: str, method: str, then: str
) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    await visit.client.post("/memory/v1/users/kim/memories", json={"text": "Lives in Kiel"})
    if "fact" in saved:
        await visit.sign_in("#/users/kim")
    else:
        await inspect(visit, "Session")
    box = await editing(visit, saved)
    await box.fill('{"app": "web"}')
    async with held(visit, "**/memory/v1/**", method) as asked:
        await visit.page.get_by_role("dialog").get_by_role("button", name="Save").click()
        await asked
        await cancel(visit)
        box = await editing(visit, then)
        await box.fill(TYPED)
    await expect(visit.page.locator(".toast")).to_be_visible()
    await expect(box).to_have_value(TYPED)


async def test_a_change_that_is_answered_after_signing_out_asks_for_nothing_more(
    visit: Console,
) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await (await editing(visit, "new fact")).fill(TYPED)
    async with held(visit, "**/users/kim/memories", "POST") as asked:
        await page.get_by_role("dialog").get_by_role("button", name="Save").click()
        await asked
        await cancel(visit)
        await page.get_by_role("button", name="Account").click()
        await page.get_by_role("menuitem", name="Sign out").click()
        await expect(page.locator(".shell")).to_have_count(0)
        visit.asked.clear()
    assert [each for each in visit.asked if "/users/kim" in each] == []


async def test_a_fork_whose_dialog_was_closed_leads_nobody_away(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await page.get_by_role("button", name="What to do with this session").click()
    await page.get_by_role("menuitem", name="Fork").click()
    async with held(visit, "**/sessions/talk/fork", "POST") as asked:
        await page.get_by_role("dialog").locator("button.primary").click()
        await asked
        await cancel(visit)
    await expect(page.locator(".toast")).to_be_visible()
    await expect(page).to_have_url(f"{visit.address}#/sessions/talk")


async def test_an_exchange_that_is_found_late_is_not_shown_to_who_has_left(visit: Console) -> None:
    exchange = await ask(visit, "How are you?")
    await visit.seed("other", "Hello", "Hi")
    panel = await inspect(visit)
    await visit.page.route(
        "**/exchanges?after=*&limit=1",
        lambda route: route.fulfill(json={"data": [{"id": exchange}]}),
    )
    async with held(visit, "**/sessions/talk/messages/*") as asked:
        await panel.get_by_role("button", name="Older exchange").click()
        await asked
        await visit.go("#/sessions/other")
        await expect(visit.page.get_by_text("Hello")).to_be_visible()
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions/other")


async def test_a_person_who_is_found_late_is_not_shown_to_who_has_left(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    await visit.sign_in("#/users")
    page = visit.page
    await expect(page.locator(".users .virtual-item")).to_have_count(1)
    async with held(visit, "**/users/ki") as asked:
        await page.keyboard.press("/")
        await page.keyboard.type("ki")
        await page.keyboard.press("Enter")
        await asked
        await visit.go("#/sessions")
        await expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    await expect(page).to_have_url(f"{visit.address}#/sessions")
