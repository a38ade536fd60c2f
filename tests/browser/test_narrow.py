"""The conversation where there is room for it or for its inspector, not for both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.support.browser.browsing import Console, Locator, Look, expect

pytestmark = pytest.mark.one_back_end

SAID = "I live in Kiel"


@pytest.fixture
def look() -> Look:
    return Look((1000, 800))


def bubble(console: Console) -> Locator:
    return console.page.locator(".conversation .by-user")


async def by_link(console: Console) -> None:
    await bubble(console).hover()
    await bubble(console).get_by_role("button", name="Why", exact=True).click()


async def by_menu(console: Console) -> None:
    await bubble(console).hover()
    await bubble(console).get_by_role("button", name="What to do with this message").click()
    await console.page.get_by_role("menuitem", name="What the model saw here").click()


async def by_key(console: Console) -> None:
    await bubble(console).focus()
    await console.page.keyboard.press("Enter")


@pytest.mark.parametrize("asked", [by_link, by_menu, by_key])
async def test_why_is_seen_when_it_is_asked_for(
    visit: Console, asked: Callable[[Console], Awaitable[None]]
) -> None:
    await visit.chat("talk", SAID, user="kim")
    await visit.sign_in("#/sessions/talk")
    inspector = visit.page.locator(".inspector")
    await expect(bubble(visit)).to_be_visible()
    await expect(inspector).not_to_be_visible()
    await asked(visit)
    await expect(inspector.get_by_text("Newest exchange")).to_be_visible()
    await expect(bubble(visit)).not_to_be_visible()
    await expect(visit.page.get_by_role("complementary", name="Inspector")).to_be_focused()
    await visit.page.get_by_role("button", name="Inspector").click()
    await expect(bubble(visit)).to_be_visible()


async def test_a_tap_on_the_words_marks_what_was_seen_and_hides_nothing(visit: Console) -> None:
    answer = await visit.chat("talk", SAID, user="kim")
    await visit.sign_in("#/sessions/talk")
    await bubble(visit).locator(".bubble p").click()
    exchange = answer.headers["x-memory-exchange-id"]
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions/talk/exchanges/{exchange}")
    await expect(bubble(visit)).to_be_visible()


async def test_the_address_of_an_exchange_leads_to_the_inspector(visit: Console) -> None:
    answer = await visit.chat("talk", SAID, user="kim")
    exchange = answer.headers["x-memory-exchange-id"]
    await visit.sign_in(f"#/sessions/talk/exchanges/{exchange}")
    await expect(visit.page.locator(".inspector").get_by_text(exchange)).to_be_visible()
