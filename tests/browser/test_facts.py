"""Facts about people: added, corrected, held back, forgotten."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.browser.memories import MEMORIES, choose, memory, remember
from tests.support.browser.browsing import Console, Look, Route, expect


async def test_a_fact_is_added(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_role("button", name="Add a fact").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Text").fill("Is allergic to peanuts")
    await dialog.get_by_label("Until (optional)").fill("2099-01-31")
    await dialog.get_by_role("button", name="Save").click()
    await expect(memory(visit, "Is allergic to peanuts")).to_contain_text("31 Jan 2099")
    listed = (await visit.client.get(MEMORIES)).json()["data"]
    assert [each["text"] for each in listed] == ["Is allergic to peanuts"]


async def test_a_fact_whose_answer_was_lost_is_saved_with_other_words(visit: Console) -> None:
    async def lose(route: Route) -> None:
        await route.fetch()
        await route.fulfill(status=429, json={"error": {"message": "Lost.", "code": "lost"}})

    await visit.seed("talk", "Hello", user="kim")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_role("button", name="Add a fact").click()
    dialog = page.get_by_role("dialog")
    await page.route(f"**{MEMORIES}", lose, times=2)
    for _ in range(2):
        await dialog.get_by_label("Text").fill("Lives in Kile")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog.get_by_role("alert")).to_have_text("Lost.")
    await dialog.get_by_label("Text").fill("Lives in Kiel")
    await dialog.get_by_role("button", name="Save").click()
    await expect(memory(visit, "Lives in Kiel")).to_be_visible()
    listed = (await visit.client.get(MEMORIES)).json()["data"]
    assert sorted(each["text"] for each in listed) == ["Lives in Kiel", "Lives in Kile"]


async def test_a_text_is_measured_in_characters(visit: Console) -> None:
    await remember(visit, "🎉" * 500)
    await visit.sign_in("#/users/kim")
    await choose(visit, "🎉", "Edit")
    dialog = visit.page.get_by_role("dialog")
    text, save = dialog.get_by_label("Text"), dialog.get_by_role("button", name="Save")
    await text.press("Control+End")
    await text.press("x")
    await save.click()
    assert await text.evaluate("box => box.validationMessage") == "At most 500 characters."
    await text.press("Backspace")
    await text.press("Backspace")
    await save.click()
    await expect(dialog).to_have_count(0)
    assert (await visit.client.get(MEMORIES)).json()["data"][0]["text"] == "🎉" * 499


async def test_a_fact_is_corrected_held_back_and_released(visit: Console) -> None:
    await remember(visit, "Lives in Kiel")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await choose(visit, "Lives in Kiel", "Edit")
    await page.get_by_role("dialog").get_by_label("Text").fill("Lives in Berlin")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(memory(visit, "Lives in Berlin")).to_contain_text("edited")
    await choose(visit, "Lives in Berlin", "Quarantine")
    await expect(memory(visit, "Lives in Berlin")).to_have_count(0)
    await page.get_by_label("State").select_option("quarantined")
    await choose(visit, "Lives in Berlin", "Release from quarantine")
    await expect(memory(visit, "Lives in Berlin")).to_have_count(0)
    kept = (await visit.client.get(MEMORIES)).json()["data"]
    assert [each["state"] for each in kept] == ["current"]


async def test_who_edits_what_another_has_changed_sees_both(visit: Console) -> None:
    id = await remember(visit, "Lives in Kiel")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await choose(visit, "Lives in Kiel", "Edit")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Text")).to_have_value("Lives in Kiel")
    await visit.client.patch(f"{MEMORIES}/{id}", json={"text": "Lives in Hamburg"})
    await dialog.get_by_label("Text").fill("Lives in Berlin")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert").first).to_contain_text("Lives in Hamburg")
    await expect(dialog.get_by_label("Text")).to_have_value("Lives in Berlin")
    await visit.shot("user-conflict")
    await dialog.get_by_role("button", name="Save mine").click()
    await expect(memory(visit, "Lives in Berlin")).to_be_visible()
    assert (await visit.client.get(f"{MEMORIES}/{id}")).json()["text"] == "Lives in Berlin"


async def found_and_corrected(visit: Console) -> str:
    """The id of a fact that a search shows as it was before somebody corrected it."""
    id = await remember(visit, "Drinks tea")
    await visit.sign_in("#/users/kim")
    await visit.page.get_by_label("Search what is remembered").fill("tea")
    await expect(memory(visit, "Drinks tea").locator("mark")).to_have_text("tea")
    await visit.client.patch(f"{MEMORIES}/{id}", json={"text": "Must not drink tea"})
    return id


async def test_a_fact_is_corrected_as_it_is_and_not_as_it_was_found(visit: Console) -> None:
    await found_and_corrected(visit)
    await choose(visit, "Drinks tea", "Edit")
    text = visit.page.get_by_role("dialog").get_by_label("Text")
    await expect(text).to_have_value("Must not drink tea")


async def test_whoever_corrects_only_the_words_leaves_the_end_as_it_is(visit: Console) -> None:
    id = await remember(visit, "Lives in Kiel", expires_at=4_000_000_000.5)
    await visit.sign_in("#/users/kim")
    await choose(visit, "Lives in Kiel", "Edit")
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Until (optional)")).to_have_value("2096-10-02")
    await dialog.get_by_label("Text").fill("Lives in Berlin")
    await visit.client.patch(f"{MEMORIES}/{id}", json={"text": "Lives in Hamburg"})
    for button in ("Save", "Save mine"):
        await dialog.get_by_role("button", name=button, exact=True).click()
    await expect(memory(visit, "Lives in Berlin")).to_be_visible()
    assert (await visit.client.get(f"{MEMORIES}/{id}")).json()["expires_at"] == 4_000_000_000.5


@pytest.mark.parametrize("end", ["1e15", "1e300"])
async def test_an_end_that_no_calendar_has_is_shown_as_it_is(visit: Console, end: str) -> None:
    id = await remember(visit, "Lives in Kiel", expires_at=4_000_000_000.5)
    await remember(visit, "Rides a bicycle")
    exported = (await visit.client.get("/memory/v1/users/kim/export")).text
    await visit.client.delete(f"{MEMORIES}/{id}")
    changed = exported.replace("4000000000.5", end)
    answer = await visit.client.post("/memory/v1/import", content=changed)
    assert answer.json()["memories"] == 1, answer.text
    await visit.sign_in("#/users/kim")
    await expect(memory(visit, "Rides a bicycle")).to_be_visible()
    await expect(memory(visit, "Lives in Kiel")).to_contain_text("until 1")
    await choose(visit, "Lives in Kiel", "Edit")
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Until (optional)")).to_have_value("")


async def test_an_end_is_typed_with_a_year_of_four_digits(visit: Console) -> None:
    await remember(visit, "Is on holiday", expires_at=4_000_000_000)
    await visit.sign_in("#/users/kim")
    await choose(visit, "Is on holiday", "Edit")
    dialog = visit.page.get_by_role("dialog")
    until = dialog.get_by_label("Until (optional)")
    await until.focus()
    await visit.page.keyboard.type("01012099123")
    await expect(until).to_have_value(re.compile(r"^\d{4}-01-01$"))


async def test_an_end_that_cannot_be_read_is_not_taken_for_none(visit: Console) -> None:
    id = await remember(visit, "Is on holiday", expires_at=4_000_000_000)
    await visit.sign_in("#/users/kim")
    await choose(visit, "Is on holiday", "Edit")
    dialog = visit.page.get_by_role("dialog")
    until = dialog.get_by_label("Until (optional)")
    await until.evaluate("box => box.removeAttribute('max')")
    await until.fill("12099-01-31")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_have_text("This date cannot be read.")
    assert (await visit.client.get(f"{MEMORIES}/{id}")).json()["expires_at"] == 4_000_000_000


class TestInTokyo:
    @pytest.fixture
    def look(self) -> Look:
        return Look(zone="Asia/Tokyo")

    async def test_the_day_that_is_chosen_is_the_day_that_is_shown(self, visit: Console) -> None:
        at_five = datetime(2099, 2, 1, 5, tzinfo=ZoneInfo("Asia/Tokyo")).timestamp()
        await remember(visit, "Lives in Osaka", expires_at=at_five)
        await visit.sign_in("#/users/kim")
        fact = memory(visit, "Lives in Osaka")
        await expect(fact).to_contain_text("until 1 Feb 2099")
        await choose(visit, "Lives in Osaka", "Edit")
        dialog = visit.page.get_by_role("dialog")
        await expect(dialog.get_by_label("Until (optional)")).to_have_value("2099-02-01")
        await dialog.get_by_label("Until (optional)").fill("2099-03-10")
        await dialog.get_by_role("button", name="Save").click()
        await expect(fact).to_contain_text("until 10 Mar 2099")


async def test_forgetting_asks_first(visit: Console) -> None:
    await remember(visit, "To be forgotten")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await choose(visit, "To be forgotten", "Forget")
    dialog = page.get_by_role("dialog", name="Forget this?")
    await dialog.get_by_role("button", name="Cancel").click()
    assert len((await visit.client.get(MEMORIES)).json()["data"]) == 1
    await choose(visit, "To be forgotten", "Forget")
    await dialog.get_by_role("button", name="Forget").click()
    await expect(page.get_by_role("status").get_by_text("Forgotten.")).to_be_visible()
    await expect(memory(visit, "To be forgotten")).to_have_count(0)
    assert (await visit.client.get(MEMORIES)).json()["data"] == []


async def test_a_fact_that_another_changes_meanwhile_is_not_forgotten(visit: Console) -> None:
    id = await found_and_corrected(visit)
    await choose(visit, "Drinks tea", "Forget")
    dialog = visit.page.get_by_role("dialog", name="Forget this?")
    await expect(dialog).to_contain_text("Must not drink tea")
    await visit.client.patch(f"{MEMORIES}/{id}", json={"text": "Is allergic to tea"})
    await dialog.get_by_role("button", name="Forget").click()
    await expect(visit.page.get_by_role("alert")).to_contain_text("Somebody changed this")
    await expect(memory(visit, "Is allergic to tea")).to_be_visible()


async def test_a_fact_that_another_has_changed_is_not_held_back_unseen(visit: Console) -> None:
    id = await found_and_corrected(visit)
    await choose(visit, "Drinks tea", "Quarantine")
    await expect(visit.page.get_by_role("alert")).to_contain_text("Somebody changed this")
    await choose(visit, "Must not drink tea", "Quarantine")
    await expect(memory(visit, "Must not drink tea")).to_have_count(0)
    assert (await visit.client.get(f"{MEMORIES}/{id}")).json()["state"] == "quarantined"


async def test_a_fact_that_is_typed_stays_where_the_person_is_erased_elsewhere(
    visit: Console,
) -> None:
    await remember(visit, "Rides a bicycle")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_role("button", name="Add a fact").click()
    box = page.get_by_role("dialog").get_by_label("Text")
    await box.fill("Lives in Kiel")
    await visit.client.delete("/memory/v1/users/kim")
    await expect(page.get_by_text("Nothing is known of this user")).to_be_attached()
    await expect(box).to_have_value("Lives in Kiel")
