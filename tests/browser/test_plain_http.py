"""The console on plain HTTP from another machine, where a browser offers less."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.browser.browsing import Console, Look, Route, expect

pytestmark = pytest.mark.one_back_end

ELSEWHERE = "http://console.test"
WARNED = "The Cross-Origin-Opener-Policy header has been ignored"


@pytest.fixture
def look() -> Look:
    return Look(own=True)


@pytest_asyncio.fixture(loop_scope="session")
async def afar(visit: Console) -> AsyncIterator[Console]:
    """The page at an address that is neither HTTPS nor of this machine."""

    async def led_here(route: Route) -> None:
        url = route.request.url.replace(ELSEWHERE, visit.proxy.url)
        await route.fulfill(response=await route.fetch(url=url))

    await visit.page.route(f"{ELSEWHERE}/**", led_here)
    await visit.page.goto(f"{ELSEWHERE}/memory/")
    assert not await visit.page.evaluate("isSecureContext")
    visit.loaded = True
    yield visit
    await visit.page.goto("about:blank")
    await visit.page.unroute_all(behavior="ignoreErrors")
    visit.complaints[:] = [said for said in visit.complaints if not said.startswith(WARNED)]


async def test_a_fact_is_added(afar: Console) -> None:
    await afar.seed("talk", "Hello", "Hi", user="kim")
    await afar.sign_in("#/users/kim")
    page = afar.page
    await page.get_by_role("button", name="Add a fact").click()
    await page.get_by_role("dialog").get_by_label("Text").fill("Rides a bicycle")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("article")).to_contain_text("Rides a bicycle")


async def test_text_is_copied(afar: Console) -> None:
    await afar.seed("talk", "Hello", "One line,\nand another")
    await afar.sign_in("#/sessions/talk")
    page = afar.page
    menu = page.get_by_role("button", name="What to do with this message").last
    await menu.click()
    await page.get_by_role("menuitem", name="Copy text").click()
    await expect(page.get_by_text("Copied")).to_be_visible()
    await expect(menu).to_be_focused()
    await page.get_by_role("tab", name="Would be sent").click()
    box = page.get_by_label("Next message")
    await box.press("Control+V")
    await expect(box).to_have_value("One line,\nand another")


async def test_it_is_said_when_the_browser_lets_nothing_be_copied(afar: Console) -> None:
    await afar.sign_in()
    await afar.page.evaluate("document.execCommand = () => false")
    await afar.page.get_by_role("button", name="Copy").click()
    await expect(afar.page.locator(".toast.error")).to_contain_text("did not let it be copied")
