"""What stays behind when somebody has looked: nothing, nowhere."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest

from tests.support.browser.browsing import Console, Look, Route, expect

pytestmark = pytest.mark.one_back_end

KEPT = """async () => ({
  storage: { ...localStorage, ...sessionStorage },
  cookies: document.cookie,
  databases: (await indexedDB.databases()).map((one) => one.name),
  caches: await caches.keys(),
  workers: (await navigator.serviceWorker.getRegistrations()).length,
  state: JSON.stringify(history.state),
  name: window.name,
  address: location.href,
})"""

EMPTY = {"storage": {}, "cookies": "", "databases": [], "caches": [], "workers": 0, "state": "null"}


@pytest.fixture
def look() -> Look:
    """What a page keeps is looked at."""
    return Look(own=True)


async def use(visit: Console) -> None:
    """Look at everything, search, and change something."""
    await visit.chat("talk", "I live in Kiel", user="kim")
    await visit.sign_in()
    await visit.page.get_by_label("Search id, title or user").fill("talk")
    await expect(visit.page.locator(".sessions .virtual-item")).to_have_count(1)
    for path in ("#/sessions/talk", "#/users", "#/users/kim", "#/stats", "#/sessions/talk"):
        await visit.go(path)
        await expect(visit.page.get_by_role("heading", level=1)).not_to_be_empty()
    await expect(visit.page.locator(".conversation .message").first).to_be_visible()
    await visit.client.patch("/memory/v1/sessions/talk", json={"title": "Kiel"})
    await expect(visit.page.get_by_role("heading", level=1)).to_contain_text("Kiel")


async def test_nothing_is_kept_and_the_key_is_in_no_address(visit: Console) -> None:
    await use(visit)
    kept = await visit.page.evaluate(KEPT)
    assert {name: kept[name] for name in EMPTY} == EMPTY
    assert kept["name"] == ""
    assert await visit.page.context.cookies() == []
    assert all(visit.key not in address for address in [*visit.asked, kept["address"]])
    assert all(address.startswith(f"{visit.proxy.url}/memory/") for address in visit.asked)


async def test_the_key_is_nowhere_in_the_page(visit: Console) -> None:
    await use(visit)
    page = visit.page
    found = await page.evaluate(
        """key => {
          const values = [...document.querySelectorAll("input, textarea")].map((one) => one.value);
          const told = performance.getEntries().map((one) => one.name);
          const globals = Object.keys(window)
            .filter((name) => typeof window[name] === "string").map((name) => window[name]);
          const page = document.documentElement.outerHTML;
          return [page, document.title, ...values, ...told, ...globals]
            .filter((text) => text.includes(key)).length;
        }""",
        visit.key,
    )
    assert found == 0


async def test_going_away_and_back_asks_for_the_key_again(visit: Console) -> None:
    await use(visit)
    await visit.page.goto("about:blank")
    await visit.page.go_back()
    await expect(visit.page.get_by_label("API key")).to_be_visible()
    await expect(visit.page.get_by_label("API key")).to_have_value("")
    await expect(visit.page.get_by_text("I live in Kiel")).to_have_count(0)


async def test_the_field_of_the_key_is_for_secrets(visit: Console) -> None:
    await visit.open()
    field = visit.page.get_by_label("API key")
    await expect(field).to_have_attribute("type", "password")
    await expect(field).to_have_attribute("autocomplete", re.compile("off|current-password"))


async def test_no_error_repeats_the_key(visit: Console) -> None:
    await visit.sign_in()
    for status in (403, 404, 422, 500, 503):
        error = {"error": {"message": f"refused with {status}", "code": "x", "type": "y"}}
        await visit.page.route(re.compile("/memory/v1/stats"), _with(status, error))
        await visit.go("#/stats")
        await expect(visit.page.get_by_text(f"refused with {status}").first).to_be_visible()
        assert visit.key not in await visit.page.content()
        await visit.go("#/users")
    visit.complaints[:] = [each for each in visit.complaints if "Failed to load" not in each]


def _with(status: int, error: object) -> Callable[[Route], Awaitable[None]]:
    async def refuse(route: Route) -> None:
        await route.fulfill(status=status, json=error)

    return refuse


async def test_a_key_that_is_no_longer_taken_is_forgotten(visit: Console) -> None:
    async def refuse(route: Route) -> None:
        await route.fulfill(status=401, json={"error": {"message": "no", "code": "x"}})

    await visit.sign_in()
    await visit.page.route(re.compile("/memory/v1/stats"), refuse)
    await visit.go("#/stats")
    await expect(visit.page.get_by_label("API key")).to_have_value("")
    assert visit.key not in await visit.page.content()
