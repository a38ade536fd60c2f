"""The list of sessions: long, searched, live, and by keyboard."""

from __future__ import annotations

import pytest

from tests.support.browser.browsing import Console, Locator, expect
from tests.support.talk.filling import fill
from tests.support.waiting import eventually


def rows(console: Console) -> Locator:
    return console.page.locator(".sessions .virtual-item")


async def test_sessions_are_listed_with_what_they_are_about(visit: Console) -> None:
    await visit.seed("chat-a", "How do I bake bread?", "With flour.", user="kim")
    await visit.client.patch("/memory/v1/sessions/chat-a", json={"title": "Baking"})
    await visit.seed("chat-b", "And cake?", "With eggs.")
    await visit.sign_in()
    first, second = rows(visit).nth(0), rows(visit).nth(1)
    await expect(first).to_contain_text("And cake?")
    await expect(second).to_contain_text("Baking")
    await expect(second).to_contain_text("How do I bake bread?")
    await expect(second).to_contain_text("kim")
    await expect(second.locator(".row-number").first).to_contain_text("2")
    await visit.shot("sessions")


async def test_a_session_that_is_chatted_in_comes_to_the_top_and_is_marked(visit: Console) -> None:
    await visit.chat("old", "The first one")
    await visit.chat("newer", "The second one")
    await visit.sign_in()
    await expect(rows(visit).first).to_contain_text("The second one")
    await visit.chat("old", "Once more")
    await expect(rows(visit).first).to_contain_text("The first one")
    await expect(rows(visit).first.get_by_text("New activity")).to_be_attached()
    await visit.chat("brand-new", "The third one")
    await expect(rows(visit).first).to_contain_text("The third one")


async def test_a_session_that_is_deleted_elsewhere_leaves_the_list(inside: Console) -> None:
    await inside.seed("one", "First")
    await inside.seed("two", "Second")
    await expect(rows(inside)).to_have_count(2)
    await inside.client.delete("/memory/v1/sessions/two")
    await expect(rows(inside)).to_have_count(1)


async def test_the_search_finds_by_id_title_and_user(visit: Console) -> None:
    await visit.seed("needle-by-id", "One")
    await visit.seed("b", "Two", user="needle-user")
    await visit.seed("c", "Three")
    await visit.client.patch("/memory/v1/sessions/c", json={"title": "The NEEDLE title"})
    await visit.seed("d", "Four")
    await visit.sign_in()
    await expect(rows(visit)).to_have_count(4)
    await visit.page.keyboard.press("/")
    await visit.page.keyboard.type("needle")
    await expect(rows(visit)).to_have_count(3)
    await visit.page.get_by_label("Search id, title or user").fill("nothing like it")
    await expect(visit.page.get_by_text("Nothing found")).to_be_visible()


async def test_the_list_can_be_of_one_person(visit: Console) -> None:
    await visit.seed("a", "Of Kim", user="kim")
    await visit.seed("b", "Of Alex", user="alex")
    await visit.sign_in()
    await expect(rows(visit)).to_have_count(2)
    await visit.page.get_by_label("Of user").fill("kim")
    await expect(rows(visit)).to_have_count(1)
    await expect(rows(visit)).to_contain_text("Of Kim")


@pytest.mark.one_back_end
async def test_where_there_is_nothing_it_is_told_how_to_begin(visit: Console) -> None:
    await visit.sign_in()
    page = visit.page
    await expect(page.get_by_role("heading", name="No conversations yet")).to_be_visible()
    await expect(page.locator("pre")).to_contain_text(f"curl {visit.proxy.v1}/chat/completions")
    await page.get_by_role("button", name="Python").click()
    await expect(page.locator("pre")).to_contain_text(f'base_url="{visit.proxy.v1}"')
    await visit.shot("sessions-empty")
    assert await visit.violations() == []


async def test_the_list_works_by_keyboard_alone(visit: Console) -> None:
    for number in range(5):
        await visit.seed(f"chat-{number}", f"Number {number}")
    await visit.sign_in()
    page = visit.page
    await expect(rows(visit)).to_have_count(5)
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(rows(visit).nth(1).get_by_role("link")).to_be_focused()
    await page.keyboard.press("k")
    await expect(rows(visit).nth(0).get_by_role("link")).to_be_focused()
    await page.keyboard.press("End")
    await expect(rows(visit).nth(4).get_by_role("link")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{visit.address}#/sessions/chat-0")
    await expect(page.locator(".sessions")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(page).to_have_url(f"{visit.address}#/sessions")


async def test_what_is_read_does_not_move_while_others_chat(visit: Console) -> None:
    await fill(visit.client, 120)
    await visit.sign_in()
    await expect(rows(visit).first).to_be_visible()
    scroller = visit.page.locator(".sessions .virtual")
    await scroller.evaluate("list => list.scrollTo({ top: 2000 })")
    at = await visit.page.locator("[aria-posinset='40'] a").get_attribute("href")
    reading = visit.page.locator(f"a[href='{at}']")
    await expect(reading).to_be_visible()
    before = await reading.bounding_box()
    await visit.seed("brand-new", "Just now")
    pill = visit.page.get_by_role("button", name="1 session with new activity")
    await expect(pill).to_be_visible()
    assert await reading.bounding_box() == before
    await pill.click()
    await expect(rows(visit).first).to_contain_text("Just now")


async def test_what_is_changed_here_far_down_is_changed_in_the_list(visit: Console) -> None:
    await fill(visit.client, 120)
    await visit.sign_in()
    page = visit.page
    count = page.locator(".head .tag")
    await expect(count).to_have_text("120")
    await visit.go("#/sessions/chat-00002")
    await page.get_by_role("button", name="What to do with this session").click()
    await page.get_by_role("menuitem", name="Delete this session…").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Delete for good").click()
    await expect(dialog.get_by_role("button", name="Download the receipt")).to_be_visible()
    await dialog.get_by_role("button", name="Close").last.click()
    await expect(count).to_have_text("119")
    await visit.go("#/sessions/chat-00004")
    await page.get_by_role("tab", name="Session").click()
    await page.get_by_role("button", name="Edit", exact=True).click()
    await dialog.get_by_label("Title").fill("A new title")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("A new title")
    await visit.go("#/sessions")
    changed = page.locator("a[href='#/sessions/chat-00004']")

    async def at_the_end() -> bool:
        """The list grows while it is loaded again."""
        await page.locator(".sessions .virtual").evaluate("list => list.scrollTo(0, 1e6)")
        return await changed.count() > 0

    await eventually(at_the_end)
    await expect(changed).to_contain_text("A new title")
    await expect(page.locator("a[href='#/sessions/chat-00002']")).to_have_count(0)


async def test_whoever_comes_back_from_a_change_is_where_they_were(visit: Console) -> None:
    await fill(visit.client, 300)
    await visit.sign_in()
    page = visit.page
    await expect(page.locator(".head .tag")).to_have_text("300")
    await page.keyboard.press("j")
    await page.keyboard.press("End")
    reading = page.locator("a[href='#/sessions/chat-00000']")
    await expect(reading).to_be_focused()
    await page.keyboard.press("Enter")
    message = page.locator(".conversation .message").last
    await message.hover()
    await message.get_by_role("button", name="What to do with this message").click()
    await page.get_by_role("menuitem", name="Delete…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.locator(".conversation .message")).to_have_count(1)
    await visit.go("#/sessions")
    await expect(reading.locator(".row-number").first).to_contain_text("1")
    await expect(reading).to_be_in_viewport()
