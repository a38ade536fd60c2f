"""Where the system's colours take the place of the page's, what they tell is told all the same."""

from __future__ import annotations

import pytest

from tests.support.browser.browsing import Console, Locator, Look, expect

pytestmark = pytest.mark.one_back_end

DRAWN = """all => all.map((one) => {
  const { backgroundColor, backgroundImage } = getComputedStyle(one);
  return `${backgroundColor} ${backgroundImage}`;
})"""


@pytest.fixture
def look() -> Look:
    return Look(forced_colors=True)


async def drawn(locator: Locator) -> list[str]:
    await locator.first.wait_for()
    found: list[str] = await locator.evaluate_all(DRAWN)
    return found


async def test_what_stripes_and_bars_tell_is_told(visit: Console) -> None:
    await visit.chat("other", "I live in Kiel", user="kim")
    for text in ("Hello", "Where do I live?"):
        await visit.chat("talk", text, user="kim")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    for told in (".legend .band", ".spent-part", ".spent-legend .swatch"):
        colours = await drawn(page.locator(told))
        assert len(colours) == len(set(colours)) > 1, told
    await visit.shot("conversation-forced-colors")
    await visit.go("#/stats")
    assert len(set(await drawn(page.locator(".chart-legend .swatch")))) > 1
    await visit.shot("statistics-forced-colors")


async def test_what_is_selected_is_seen(visit: Console) -> None:
    await visit.chat("talk", "I live in Kiel", user="kim")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await expect(page.locator(".why")).to_be_visible()
    for path, all in (("sessions/talk", ".tab"), ("stats", ".chip"), ("stats", ".nav a")):
        await visit.go(f"#/{path}")
        colours = await drawn(page.locator(all))
        assert sorted(map(colours.count, set(colours))) == [1, len(colours) - 1], all
