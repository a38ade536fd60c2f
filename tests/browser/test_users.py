"""People and what is remembered of them: found, corrected, forgotten, erased."""

from __future__ import annotations

import pytest

from tests.browser.memories import MEMORIES, memory, remember
from tests.support.browser.browsing import PHONE, Console, expect


async def test_users_are_listed_and_found(visit: Console) -> None:
    for name in ("kim", "alex", "kimberley"):
        await visit.seed(f"of-{name}", "Hello", "Hi", user=name)
    await visit.sign_in("#/users")
    page = visit.page
    rows = page.locator(".users .virtual-item")
    await expect(rows).to_have_count(3)
    await page.keyboard.press("/")
    await page.keyboard.type("kim")
    await expect(rows).to_have_count(2)
    await page.get_by_label("Search or open a user").fill("alex")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("alex")


async def test_a_user_who_is_not_in_the_list_can_be_opened(visit: Console) -> None:
    await remember(visit, "Known only by a fact")
    await visit.sign_in("#/users")
    await visit.page.get_by_label("Search or open a user").fill("kim")
    await visit.page.get_by_role("button", name="Open kim").click()
    await expect(memory(visit, "Known only by a fact")).to_be_visible()


async def test_the_very_id_is_opened_before_one_that_holds_it(visit: Console) -> None:
    await visit.seed("of-kimberley", "Hello", user="kimberley")
    await remember(visit, "Known only by a fact")
    await visit.sign_in("#/users")
    heading = visit.page.get_by_role("heading", level=1)
    for typed, opened in (("kim", "Users / kim"), ("kimb", "Users / kimberley")):
        await expect(visit.page.locator(".users .virtual-item").first).to_be_visible()
        await visit.page.get_by_label("Search or open a user").fill(typed)
        await visit.page.keyboard.press("Enter")
        await expect(heading).to_have_text(opened)
        await visit.go("#/users")


async def test_a_users_page_tells_how_much_there_is(visit: Console) -> None:
    await visit.chat("talk", "I live in Kiel", user="kim")
    await remember(visit, "Rides a bicycle")
    await visit.sign_in("#/users/kim")
    tiles = visit.page.locator(".tile")
    await expect(tiles.filter(has_text="Sessions")).to_contain_text("1")
    await expect(tiles.filter(has_text="Messages")).to_contain_text("2")
    await expect(memory(visit, "Rides a bicycle")).to_contain_text("added by hand")
    await visit.shot("user")


async def test_memories_are_counted_as_they_are_listed(visit: Console) -> None:
    await remember(visit, "Rides a bicycle")
    await visit.client.patch("/memory/v1/users/kim/profile", json={"city": "Kiel"})
    item = {"namespace": ["users", "kim", "notes"], "key": "todo", "value": {"text": "milk"}}
    await visit.client.put("/memory/v1/store/items", json=item)
    await visit.sign_in("#/users/kim")
    await expect(visit.page.locator(".tile").filter(has_text="Memories")).to_have_text("Memories1")


async def test_a_user_who_is_erased_elsewhere_is_shown_no_longer(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    await remember(visit, "Rides a bicycle")
    await visit.sign_in("#/users/kim")
    await expect(memory(visit, "Rides a bicycle")).to_be_visible()
    assert (await visit.client.delete("/memory/v1/users/kim")).status_code == 200
    await expect(visit.page.get_by_text("Nothing is known of this user")).to_be_visible()
    await expect(visit.page.locator(".tile")).to_have_count(0)


async def test_memories_are_listed_by_kind_and_state(visit: Console) -> None:
    await remember(visit, "In force")
    held = await remember(visit, "Doubtful")
    await visit.client.patch(f"{MEMORIES}/{held}", json={"state": "quarantined"})
    await visit.chat("talk", "Please always answer in German.", user="kim")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await expect(memory(visit, "In force")).to_be_visible()
    await expect(memory(visit, "Doubtful")).to_have_count(0)
    await page.get_by_label("State").select_option("quarantined")
    await expect(memory(visit, "Doubtful")).to_be_visible()
    await expect(memory(visit, "In force")).to_have_count(0)
    await page.get_by_label("State").select_option("current")
    await page.get_by_role("button", name="Instructions").click()
    await expect(memory(visit, "always answer in German")).to_be_visible()
    await expect(memory(visit, "In force")).to_have_count(0)


async def test_the_search_finds_passages_and_leads_to_the_message(visit: Console) -> None:
    await visit.chat("talk", "My sister Maren keeps bees near Flensburg", user="kim")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_label("Search what is remembered").fill("who keeps bees")
    found = memory(visit, "Maren keeps bees")
    await expect(found.first).to_contain_text("Passage")
    link = found.first.get_by_role("link", name="talk")
    messages = await visit.client.get("/memory/v1/sessions/talk/messages")
    id = messages.json()["data"][0]["id"]
    await expect(link).to_have_attribute("href", f"#/sessions/talk/messages/{id}")


async def test_the_profile_is_edited_and_put_back(visit: Console) -> None:
    path = "/memory/v1/users/kim/profile"
    await visit.client.patch(path, json={"city": "Kiel", "name": "Kim"})
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_role("tab", name="Profile").click()
    await page.get_by_role("button", name="Edit").click()
    box = page.get_by_label("Edit the profile").locator("textarea")
    await box.fill('{"city": ')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("This is not valid JSON.")).to_be_visible()
    await box.fill('{"city": "Bonn"}')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("version 2").first).to_be_visible()
    assert (await visit.client.get(path)).json()["document"] == {"city": "Bonn"}
    await page.get_by_text("version 1").click()
    await page.get_by_role("button", name="Go back to this").click()
    await page.get_by_role("dialog").get_by_role("button", name="Go back to this").click()
    await expect(page.get_by_text("version 3").first).to_be_visible()
    assert (await visit.client.get(path)).json()["document"] == {"city": "Kiel", "name": "Kim"}


async def test_who_edits_a_profile_that_another_has_changed_sees_both(visit: Console) -> None:
    path = "/memory/v1/users/kim/profile"
    await visit.client.patch(path, json={"city": "Kiel"})
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_role("tab", name="Profile").click()
    await page.get_by_role("button", name="Edit").click()
    await visit.client.patch(path, json={"city": "Hamburg", "name": "Kim"})
    dialog = page.get_by_role("dialog")
    await dialog.locator("textarea").fill('{"city": "Bonn"}')
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_text("Hamburg")).to_be_visible()
    assert (await visit.client.get(path)).json()["document"] == {"city": "Hamburg", "name": "Kim"}
    await dialog.get_by_role("button", name="Save mine").click()
    await expect(dialog).to_have_count(0)
    assert (await visit.client.get(path)).json()["document"] == {"city": "Bonn"}


async def test_saved_items_are_shown_changed_and_deleted(visit: Console) -> None:
    item = {"namespace": ["users", "kim", "notes"], "key": "todo", "value": {"text": "milk"}}
    await visit.client.put("/memory/v1/store/items", json=item)
    await remember(visit, "A fact is no saved item")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_role("tab", name="Saved items").click()
    await expect(page.get_by_role("article")).to_have_count(1)
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_role("dialog").locator("textarea").fill('{"text": "bread"}')
    await page.get_by_role("button", name="Save").click()
    await expect(memory(visit, "todo")).to_contain_text("bread")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No saved items")).to_be_visible()


async def test_saved_items_are_found_behind_more_facts_than_a_page_has(visit: Console) -> None:
    for n in range(101):
        await remember(visit, f"Fact number {n}")
    item = {"namespace": ["users", "kim", "notes"], "key": "todo", "value": {"text": "milk"}}
    await visit.client.put("/memory/v1/store/items", json=item)
    await visit.sign_in("#/users/kim/tabs/saved")
    await expect(memory(visit, "todo")).to_contain_text("milk")
    await expect(visit.page.get_by_text("No saved items")).to_have_count(0)


async def test_a_saved_item_that_another_changes_meanwhile_is_not_deleted(visit: Console) -> None:
    path = "/memory/v1/store/items"
    item = {"namespace": ["users", "kim", "notes"], "key": "todo", "value": {"text": "milk"}}
    await visit.client.put(path, json=item)
    await visit.sign_in("#/users/kim/tabs/saved")
    page = visit.page
    await page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("milk")
    await visit.client.put(path, json={**item, "value": {"text": "bread"}})
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("alert")).to_contain_text("Somebody changed this")
    await expect(memory(visit, "todo")).to_contain_text("bread")


async def test_a_profile_that_another_has_changed_is_not_put_back(visit: Console) -> None:
    path = "/memory/v1/users/kim/profile"
    for city in ("Kiel", "Bonn"):
        await visit.client.patch(path, json={"city": city})
    await visit.sign_in("#/users/kim/tabs/profile")
    page = visit.page
    await page.locator(".versions summary").filter(has_text="version 1").click()
    await page.get_by_role("button", name="Go back to this").click()
    await visit.client.patch(path, json={"allergy": "peanuts"})
    await expect(page.locator(".versions summary").filter(has_text="version 3")).to_be_attached()
    await page.get_by_role("dialog").get_by_role("button", name="Go back to this").click()
    await expect(page.locator(".toast")).to_contain_text("Somebody changed this")
    document = (await visit.client.get(path)).json()["document"]
    assert document == {"city": "Bonn", "allergy": "peanuts"}


async def test_hostile_memories_are_shown_and_do_nothing(visit: Console) -> None:
    await remember(visit, "<img src=x onerror='window.hurt = 1'> \u202eevil")
    await visit.sign_in("#/users/kim")
    await expect(memory(visit, "<img src=x")).to_contain_text("⟨U+202E⟩evil")
    assert await visit.page.evaluate("window.hurt") is None


@pytest.mark.one_back_end
async def test_a_users_page_fits_a_phone(visit: Console) -> None:
    await visit.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    await remember(visit, "A long fact about somebody who " * 10)
    await visit.sign_in("#/users/kim")
    await expect(visit.page.get_by_role("article")).to_be_visible()
    assert not await visit.page.evaluate("document.documentElement.scrollWidth > innerWidth")
