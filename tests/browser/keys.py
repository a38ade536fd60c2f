"""What is done by keys alone: going somewhere, pressing it, choosing, answering, leaving."""

from __future__ import annotations

from tests.support.browser.browsing import Locator, Page, expect

MAX_TABS = 120

FOCUS_SEEN = """(one) => {
  const style = getComputedStyle(one);
  return style.outlineStyle !== "none" || style.boxShadow !== "none";
}"""


async def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until it has the focus, which then is seen."""
    await wanted.wait_for(state="attached")
    for _ in range(MAX_TABS):
        if await wanted.evaluate("one => one === document.activeElement"):
            assert await wanted.evaluate(FOCUS_SEEN), "the focus is not seen"
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"no way by Tab to {wanted}")


async def push(page: Page, wanted: Locator) -> None:
    await tab_to(page, wanted)
    await page.keyboard.press("Enter")


async def pick(page: Page, menu: Locator, entry: str) -> None:
    """Open a menu and choose an entry that begins so, with arrows."""
    await push(page, menu)
    # The browser tells that it is open a moment later; then its first entry has the focus.
    await expect(page.locator("[popover]:popover-open :focus")).to_have_count(1)
    wanted = page.get_by_role("menuitem", name=entry).first
    for _ in range(12):
        if await wanted.evaluate("one => one === document.activeElement"):
            break
        await page.keyboard.press("ArrowDown")
    await expect(wanted).to_be_focused()
    await page.keyboard.press("Enter")


async def answer(page: Page, action: str) -> None:
    """Press a dialog's button."""
    dialog = page.get_by_role("dialog")
    await push(page, dialog.get_by_role("button", name=action, exact=True))


async def write(page: Page, box: Locator, text: str) -> None:
    """In place of what stands there."""
    await tab_to(page, box)
    await page.keyboard.press("Control+A")
    await page.keyboard.type(text)


async def asked(page: Page) -> Locator:
    """The dialog that has opened, which has the focus."""
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await expect(dialog.locator(":focus")).to_have_count(1)
    return dialog


async def back(page: Page, opener: Locator) -> None:
    """No dialog is there any more, and the focus is where it was before."""
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(opener).to_be_focused()


async def leave(page: Page, opener: Locator) -> None:
    """Close the dialog with Escape, with nothing done."""
    await asked(page)
    await page.keyboard.press("Escape")
    await back(page, opener)
