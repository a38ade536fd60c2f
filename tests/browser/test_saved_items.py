"""The saved items of a person who has more than a page of them."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.browser.browsing import Console, Locator, Look, Route, expect

pytestmark = pytest.mark.one_back_end

ITEMS = "/memory/v1/store/items"
PAGE = 100


@pytest.fixture
def look() -> Look:
    return Look(own=True)


class Held:
    """Second pages that are on their way until they are let go."""

    def __init__(self) -> None:
        self.asked = 0
        self.let_go = asyncio.Event()

    async def __call__(self, route: Route) -> None:
        if (route.request.post_data_json or {}).get("offset") == PAGE:
            self.asked += 1
            await self.let_go.wait()
        await route.continue_()


async def with_more_than_a_page(console: Console) -> tuple[Held, Locator]:
    """What holds the second page, and the items that are shown."""
    for number in range(PAGE + 5):
        item = {"namespace": ["users", "kim", "app"], "key": f"k{number:03}", "value": {}}
        await console.client.put(ITEMS, json=item)
    await console.seed("talk", "Hello", user="kim")
    await console.sign_in("#/users/kim/tabs/saved")
    items = console.page.get_by_role("article")
    await expect(items).to_have_count(PAGE)
    held = Held()
    await console.page.route(f"**{ITEMS}/search", held)
    return held, items


async def test_what_is_asked_for_twice_while_it_is_slow_is_shown_once(visit: Console) -> None:
    held, items = await with_more_than_a_page(visit)
    more = visit.page.get_by_role("button", name="Show more")
    await more.click()
    await more.click()
    held.let_go.set()
    await expect(more).to_have_count(0)
    await expect(items).to_have_count(PAGE + 5)
    assert held.asked == 1


async def test_a_page_that_comes_late_is_not_added_to_what_was_searched_for(
    visit: Console,
) -> None:
    held, items = await with_more_than_a_page(visit)
    page = visit.page
    await page.get_by_role("button", name="Show more").click()
    await page.get_by_role("searchbox").fill("k005")
    await expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    found = await items.count()
    held.let_go.set()
    await page.unroute_all(behavior="wait")
    await page.wait_for_timeout(300)
    assert await items.count() == found
