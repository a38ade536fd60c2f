"""What a dialog shows and how long it is there, whatever is pressed beside its buttons."""

from __future__ import annotations

import pytest

from tests.support.browser.browsing import PHONE, Console, Locator, expect

pytestmark = pytest.mark.one_back_end

DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

SCROLLS = "one => one.scrollHeight > one.clientHeight"


async def erasing(console: Console, user: str, width: int, height: int) -> Locator:
    """The question whether a person is to be erased, all of it there."""
    await console.seed("talk", "Hello", "Hi", user=user)
    await console.page.set_viewport_size({"width": width, "height": height})
    await console.sign_in(f"#/users/{user}")
    await console.page.get_by_role("button", name="Erase…").click()
    dialog = console.page.get_by_role("dialog")
    await dialog.get_by_role("row").first.wait_for()
    return dialog


async def test_what_scrolls_is_inside_so_that_its_scrollbar_is_no_place_beside_it(
    visit: Console,
) -> None:
    """This browser hides scrollbars: a press on one is a press on what it scrolls."""
    dialog = await erasing(visit, "kim", 1280, 400)
    assert await dialog.locator(".dialog-inside").evaluate(SCROLLS)
    assert not await dialog.evaluate(SCROLLS)
    at = await dialog.bounding_box()
    assert at is not None
    await visit.page.mouse.click(at["x"] - 20, at["y"] + 60)
    await expect(dialog).to_have_count(0)


async def test_what_was_typed_is_lost_neither_to_a_click_beside_it_nor_to_a_key(
    visit: Console,
) -> None:
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await page.get_by_role("button", name="What to do with this message").last.click()
    await page.get_by_role("menuitem", name="Edit…").click()
    dialog = page.get_by_role("dialog")
    box = dialog.get_by_role("textbox")
    await box.fill("A long correction")
    await page.mouse.click(5, 5)
    await page.keyboard.press("Escape")
    await expect(dialog.get_by_role("heading", level=2)).to_be_focused()
    await expect(box).to_have_value("A long correction")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_the_id_that_is_to_be_typed_is_seen_whole_on_a_phone(visit: Console) -> None:
    dialog = await erasing(visit, DIGEST, *PHONE)
    wide, room = await dialog.locator(".dialog-inside").evaluate(
        "one => [one.scrollWidth, one.clientWidth]"
    )
    assert wide <= room
    await expect(dialog.locator(".field .typed")).to_be_in_viewport(ratio=1)
    await visit.shot("erase-digest-phone")


async def test_a_question_goes_with_the_screen_that_asks_it(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in()
    await visit.go("#/sessions/talk")
    page = visit.page
    await page.get_by_role("button", name="What to do with this message").last.click()
    await page.get_by_role("menuitem", name="Delete…").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.locator("main")).to_be_focused()
    await page.go_forward()
    await expect(page.locator(".message")).to_have_count(2)
    await expect(page.get_by_role("dialog")).to_have_count(0)
