"""Everything that can be done, done without a pointer; and where the focus is afterwards."""

from __future__ import annotations

import pytest

from tests.browser.keys import answer, pick, push, tab_to
from tests.support.browser.browsing import Console, Locator, expect

pytestmark = pytest.mark.one_back_end("redis")

INSIDE = """(one) =>
  one.contains(document.activeElement) || document.activeElement === document.body"""


def bubble(console: Console, text: str) -> Locator:
    return console.page.locator(".conversation .message").filter(has_text=text)


def message_menu(console: Console, text: str) -> Locator:
    return bubble(console, text).get_by_role("button", name="What to do with this message").last


async def test_signing_in_and_finding_a_session(visit: Console) -> None:
    for number in range(4):
        await visit.seed(f"chat-{number}", f"Number {number}", "Certainly.")
    await visit.open()
    page = visit.page
    await expect(page.get_by_label("API key")).to_be_focused()
    await page.keyboard.type(visit.key)
    await page.keyboard.press("Enter")
    rows = page.locator(".sessions .virtual-item")
    await expect(rows).to_have_count(4)
    await page.keyboard.press("/")
    await page.keyboard.type("chat-2")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("chat-2")
    await page.keyboard.press("Escape")
    await expect(page).to_have_url(f"{visit.address}#/sessions")


async def test_a_message_is_edited_and_deleted(visit: Console) -> None:
    await visit.seed("talk", "First question", "First answer", "Second question", "Second answer")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await expect(bubble(visit, "Second answer")).to_be_visible()
    await pick(page, message_menu(visit, "First question"), "Edit")
    box = page.get_by_role("dialog").locator("textarea")
    await tab_to(page, box)
    await page.keyboard.press("Control+A")
    await page.keyboard.type("Another question")
    await answer(page, "Save")
    await expect(bubble(visit, "Another question")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await pick(page, message_menu(visit, "Second answer"), "Delete")
    await answer(page, "Delete")
    await expect(bubble(visit, "Second answer")).to_have_count(0)


async def test_a_conversation_is_rewound_and_its_branch_looked_at(visit: Console) -> None:
    await visit.seed("talk", "First question", "First answer", "Second question", "Second answer")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await pick(page, message_menu(visit, "Second question"), "Rewind")
    await answer(page, "Rewind")
    await expect(bubble(visit, "Second question")).to_have_count(0)
    await push(page, page.get_by_role("button", name="Previous branch"))
    await expect(bubble(visit, "Second question")).to_be_visible()
    await push(page, page.get_by_role("button", name="Make this branch active"))
    await answer(page, "Make this branch active")
    await expect(page.get_by_text("This branch is active now.")).to_be_visible()


async def test_the_focus_goes_to_what_is_where_a_message_was(visit: Console) -> None:
    texts = [f"Line {n}" for n in range(60)]
    await visit.seed("talk", *texts)
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await message_menu(visit, "Line 57").focus()
    await pick(page, message_menu(visit, "Line 57"), "Delete")
    await answer(page, "Delete")
    await expect(bubble(visit, "Line 58")).to_be_focused()
    await page.keyboard.press("j")
    await expect(bubble(visit, "Line 59")).to_be_focused()
    await pick(page, message_menu(visit, "Line 59"), "Delete")
    await answer(page, "Delete")
    await expect(bubble(visit, "Line 58")).to_be_focused()
    await page.keyboard.press("k")
    await expect(bubble(visit, "Line 56")).to_be_focused()


async def test_the_focus_goes_to_what_another_branch_has_there(visit: Console) -> None:
    ids = await visit.seed("talk", "First question", "First answer", "Second question")
    await visit.client.post("/memory/v1/sessions/talk/rewind", json={"to": ids[2]})
    await visit.seed("talk", "Another question")
    await visit.sign_in("#/sessions/talk")
    await push(visit.page, visit.page.get_by_role("button", name="Previous branch"))
    await expect(bubble(visit, "Second question")).to_be_focused()


async def test_a_session_is_forked_and_deleted(visit: Console) -> None:
    await visit.seed("talk", "First question", "First answer")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    await pick(page, page.get_by_role("button", name="What to do with this session"), "Fork")
    await tab_to(page, page.get_by_label("Id of the new session"))
    await page.keyboard.press("Control+A")
    await page.keyboard.type("forked")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{visit.address}#/sessions/forked")
    await expect(bubble(visit, "First answer")).to_be_visible()
    await pick(page, page.get_by_role("button", name="What to do with this session"), "Delete")
    await answer(page, "Delete for good")
    await expect(page.get_by_role("heading", name="Deleted")).to_be_visible()
    assert (await visit.client.get("/memory/v1/sessions/forked")).status_code == 404
    assert (await visit.client.get("/memory/v1/sessions/talk")).status_code == 200


async def test_the_inspector_is_walked_with_arrows(visit: Console) -> None:
    await visit.chat("talk", "I live in Kiel", user="kim")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    tabs = page.locator(".talk-side").get_by_role("tab")
    await tab_to(page, tabs.first)
    for number in (1, 2, 3, 0):
        await page.keyboard.press("ArrowRight")
        await expect(tabs.nth(number)).to_be_focused()
        await expect(tabs.nth(number)).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowRight")
    panel = page.locator(".talk-side").get_by_role("tabpanel")
    await tab_to(page, panel.locator("textarea"))
    await page.keyboard.type("Where do I live?")
    await push(page, panel.get_by_role("button", name="Show the prompt"))
    await expect(panel.get_by_text("Where do I live?").last).to_be_visible()


async def test_a_fact_is_added_and_a_person_erased(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    await visit.sign_in("#/users")
    page = visit.page
    await page.locator(".users .virtual-item").first.wait_for()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("kim")
    await push(page, page.get_by_role("button", name="Add a fact"))
    await tab_to(page, page.get_by_role("dialog").locator("textarea"))
    await page.keyboard.type("Rides a bicycle")
    await answer(page, "Save")
    await expect(page.get_by_role("article").filter(has_text="Rides a bicycle")).to_be_visible()
    await push(page, page.get_by_role("button", name="Erase…"))
    await tab_to(page, page.get_by_role("dialog").get_by_label("To go on, type kim"))
    await page.keyboard.type("kim")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Erased")).to_be_visible()
    assert (await visit.client.get("/memory/v1/users/kim")).status_code == 404


async def test_what_is_behind_a_dialog_cannot_be_reached(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in()
    page = visit.page
    await push(page, page.get_by_role("button", name="Import"))
    dialog = page.get_by_role("dialog")
    for _ in range(20):
        await page.keyboard.press("Tab")
        assert await dialog.evaluate(INSIDE)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Import")).to_be_focused()


async def test_tab_leads_on_from_a_menu_and_closes_it(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    menu = message_menu(visit, "Hi")
    for key in ("Tab", "Shift+Tab"):
        await push(page, menu)
        opened = page.locator("[popover]:popover-open")
        await expect(opened.locator(":focus")).to_have_count(1)
        await page.keyboard.press(key)
        await expect(opened).to_have_count(0)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


async def test_the_first_link_skips_the_navigation(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in()
    page = visit.page
    await page.locator(".sessions .virtual-item").first.wait_for()
    await page.locator("a.brand").focus()
    await page.keyboard.press("Shift+Tab")
    await expect(page.locator("a.skip")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()


async def test_escape_leaves_a_search_box_and_keeps_what_was_searched(visit: Console) -> None:
    for number in range(3):
        await visit.seed(f"chat-{number}", f"Number {number}", "Certainly.")
    await visit.sign_in()
    page = visit.page
    rows = page.locator(".sessions .virtual-item")
    await page.keyboard.press("/")
    await page.keyboard.type("chat-1")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("Escape")
    box = page.get_by_label("Search id, title or user")
    await expect(box).not_to_be_focused()
    await page.keyboard.press("j")
    await expect(rows.first.get_by_role("link")).to_be_focused()
    await expect(box).to_have_value("chat-1")
    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(keys).to_contain_text("From the search box to its results")


@pytest.mark.parametrize(
    ("address", "name"), [("#/sessions/talk", "Sessions talk"), ("#/users/kim", "Users kim")]
)
async def test_a_heading_is_heard_as_words(visit: Console, address: str, name: str) -> None:
    await visit.seed("talk", "Hello", user="kim")
    await visit.sign_in(address)
    await expect(visit.page.get_by_role("heading", level=1)).to_have_accessible_name(name)
