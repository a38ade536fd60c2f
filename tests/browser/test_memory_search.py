"""What is remembered of a person: searched, filtered and told in true words."""

from __future__ import annotations

import pytest

from tests.browser.memories import MEMORIES, choose, memory, remember
from tests.support.browser.browsing import Console, expect


async def test_the_exact_fact_is_first_and_its_words_are_marked(visit: Console) -> None:
    await remember(visit, "The user is allergic to peanuts.")
    for text in ("Please always answer in short sentences.", "I prefer metric units, please."):
        await visit.chat("talk", text, user="kim")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_label("Search what is remembered").fill("peanuts")
    await expect(page.locator("mark").first).to_have_text("peanuts")
    await expect(page.locator(".memory").first).to_contain_text("allergic to peanuts")
    await visit.shot("search-marked")
    assert await visit.violations() == []


# Types when the box is in the page, before anything else happens there.
QUICK = """new MutationObserver(() => {
  const box = document.querySelector('input[type=search]');
  if (!box || window.typed) return;
  window.typed = new MessageChannel();
  typed.port1.onmessage = () => {
    box.value = 'peanuts';
    box.dispatchEvent(new Event('input', { bubbles: true }));
  };
  typed.port2.postMessage('');
}).observe(document, { childList: true, subtree: true })"""


@pytest.mark.one_back_end
async def test_what_is_typed_at_first_sight_of_a_box_stays(visit: Console) -> None:
    await remember(visit, "The user is allergic to peanuts.")
    await visit.page.evaluate(QUICK)
    await visit.sign_in("#/users/kim")
    await expect(visit.page.locator("mark").first).to_have_text("peanuts")
    await expect(visit.page.get_by_label("Search what is remembered")).to_have_value("peanuts")


async def test_kind_and_state_go_on_filtering_while_one_searches(visit: Console) -> None:
    held = await remember(visit, "Keeps bees in Berlin")
    await visit.client.patch(f"{MEMORIES}/{held}", json={"state": "quarantined"})
    await remember(visit, "Keeps bees in Kiel")
    await visit.chat("talk", "My sister Maren keeps bees near Flensburg", user="kim")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_label("Search what is remembered").fill("who keeps bees")
    await expect(memory(visit, "near Flensburg").first).to_be_visible()
    await page.get_by_role("button", name="Facts").click()
    await expect(memory(visit, "near Flensburg")).to_have_count(0)
    await expect(memory(visit, "in Kiel")).to_be_visible()
    await page.get_by_label("State").select_option("quarantined")
    await expect(memory(visit, "in Berlin")).to_be_visible()
    await expect(memory(visit, "in Kiel")).to_have_count(0)
    await page.get_by_label("State").select_option("current")
    await page.get_by_role("button", name="Passages").click()
    await expect(memory(visit, "near Flensburg").first).to_be_visible()
    await page.get_by_label("Search what is remembered").fill("")
    await expect(memory(visit, "in Kiel")).to_be_visible()


@pytest.mark.one_back_end
async def test_where_nothing_has_a_state_it_is_said_what_would_be_there(visit: Console) -> None:
    await remember(visit, "In force")
    await visit.sign_in("#/users/kim")
    page = visit.page
    for state, told in (
        ("quarantined", "No fact is held back."),
        ("superseded", "No fact has been replaced"),
        ("expired", "No fact has passed its day."),
    ):
        await page.get_by_label("State").select_option(state)
        await expect(page.locator(".empty")).to_contain_text(told)


@pytest.mark.one_back_end
async def test_kinds_are_counted_only_beside_a_list_of_every_state(visit: Console) -> None:
    await remember(visit, "In force")
    held = await remember(visit, "Doubtful")
    await visit.client.patch(f"{MEMORIES}/{held}", json={"state": "quarantined"})
    await visit.sign_in("#/users/kim")
    facts = visit.page.get_by_role("group", name="Kind").get_by_role("button", name="Facts")
    await expect(visit.page.locator(".tile").filter(has_text="Memories")).to_contain_text("2")
    await expect(facts).to_have_text("Facts")
    await visit.page.get_by_label("State").select_option(label="Any state")
    await expect(facts).to_have_text("Facts 2")


@pytest.mark.one_back_end
async def test_of_a_fact_that_was_added_no_message_is_said_to_stay(visit: Console) -> None:
    await remember(visit, "Added by hand")
    await visit.sign_in("#/users/kim")
    await choose(visit, "Added by hand", "Forget")
    dialog = visit.page.get_by_role("dialog", name="Forget this?")
    await expect(dialog).to_contain_text("It was learned from no message")
    await expect(dialog).not_to_contain_text("stays")


@pytest.mark.one_back_end
async def test_a_fact_that_was_released_is_not_called_edited(visit: Console) -> None:
    held = await remember(visit, "Doubtful")
    for state in ("quarantined", "current"):
        await visit.client.patch(f"{MEMORIES}/{held}", json={"state": state})
    await visit.sign_in("#/users/kim")
    await expect(memory(visit, "Doubtful")).to_be_visible()
    await expect(memory(visit, "Doubtful")).not_to_contain_text("edited")


@pytest.mark.one_back_end
async def test_a_profile_that_went_back_says_to_which_version(visit: Console) -> None:
    path = "/memory/v1/users/kim/profile"
    await visit.client.patch(path, json={"city": "Kiel"})
    await visit.client.patch(path, json={"city": "Bonn"})
    await visit.client.post(f"{path}/rollback", json={"version": 1})
    await visit.sign_in("#/users/kim/tabs/profile")
    newest = visit.page.locator(".versions summary").first
    await expect(newest).to_contain_text("back to version 1")
    await expect(newest).not_to_contain_text("edited")
