"""Windows of little height: a phone that is turned, or a page that is enlarged to 400 %."""

from __future__ import annotations

import pytest

from tests.support.browser.browsing import Console, Locator, Look, expect

pytestmark = pytest.mark.one_back_end

ENLARGED, TURNED = (320, 256), (568, 320)

ROOM = """list => {
  const [one, all] = [list, list.closest("main")].map((each) => each.getBoundingClientRect());
  return Math.min(one.bottom, all.bottom) - Math.max(one.top, all.top);
}"""


@pytest.fixture(params=[ENLARGED, TURNED], ids=["enlarged", "turned"])
def look(request: pytest.FixtureRequest) -> Look:
    return Look(request.param)


async def has_room(list: Locator) -> None:
    """Once it is scrolled to, most of the window is the list's."""
    await list.evaluate("list => list.scrollIntoView()")
    height = await list.page.evaluate("innerHeight")
    assert await list.evaluate(ROOM) > height / 2


async def test_lists_are_scrolled_to_and_used(visit: Console, look: Look) -> None:
    for number in range(12):
        await visit.seed(f"chat-{number}", *(f"Line {n}" for n in range(30)), user="kim")
    await visit.sign_in()
    page = visit.page
    rows = page.locator(".sessions .virtual-item")
    await expect(rows.first).to_be_attached()
    await visit.shot(f"sessions-low-{look.size[0]}")
    await has_room(page.locator(".sessions .virtual"))
    await page.locator("main").evaluate("main => main.scrollTo(0, 0)")
    await page.keyboard.press("j")
    await expect(rows.first.get_by_role("link")).to_be_focused()
    await expect(rows.first).to_be_in_viewport(ratio=1)
    await rows.first.click()
    last = page.get_by_text("Line 29", exact=True)
    await expect(last).to_be_attached()
    await visit.shot(f"conversation-low-{look.size[0]}")
    await has_room(page.locator(".talk-list"))
    await visit.shot(f"conversation-low-scrolled-{look.size[0]}")
    await last.click()
    await page.get_by_role("link", name="Users", exact=True).first.click()
    await expect(page.locator(".users .virtual-item")).to_have_count(1)
    await has_room(page.locator(".users .virtual"))
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
