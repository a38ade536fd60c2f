"""A person and a session are erased: what was counted and seen, and nothing else."""

from __future__ import annotations

import json

from tests.browser.memories import MEMORIES, remember
from tests.support.browser.browsing import Console, Locator, expect
from tests.support.browser.inspecting import SESSION, ask


async def erasing(visit: Console, user: str) -> Locator:
    """The question about a person."""
    await visit.sign_in(f"#/users/{user}")
    await visit.page.get_by_role("button", name="Erase…").click()
    return visit.page.get_by_role("dialog")


async def deleting(visit: Console) -> Locator:
    """The question about the session."""
    await visit.sign_in("#/sessions/talk")
    await visit.page.get_by_role("button", name="What to do with this session").click()
    await visit.page.get_by_role("menuitem", name="Delete this session…").click()
    return visit.page.get_by_role("dialog")


async def test_erasing_shows_what_goes_asks_for_the_name_and_gives_a_receipt(
    visit: Console,
) -> None:
    await visit.chat("talk", "I live in Kiel", user="kim")
    await visit.chat("other", "Of somebody else", user="alex")
    await remember(visit, "Rides a bicycle")
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.get_by_role("button", name="Erase…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("row", name="Sessions")).to_contain_text("1")
    await expect(dialog.get_by_role("row", name="Messages")).to_contain_text("2")
    await visit.shot("erase")
    assert await visit.violations() == []
    erase = dialog.get_by_role("button", name="Erase for good")
    await expect(erase).to_be_disabled()
    await dialog.get_by_label("To go on, type kim").fill("kin")
    await expect(erase).to_be_disabled()
    assert (await visit.client.get("/memory/v1/users/kim")).status_code == 200
    await dialog.get_by_label("To go on, type kim").fill("kim")
    await erase.click()
    await expect(dialog.get_by_role("heading", name="Erased")).to_be_visible()
    async with page.expect_download() as saving:
        await dialog.get_by_role("button", name="Download the receipt").click()
    path = await (await saving.value).path()
    receipt = json.loads(path.read_text(encoding="utf-8"))
    assert (receipt["object"], receipt["user_id"], receipt["dry_run"]) == ("erasure", "kim", False)
    assert receipt["counts"]["sessions"] == 1
    assert (await visit.client.get("/memory/v1/sessions/talk")).status_code == 404
    assert (await visit.client.get("/memory/v1/sessions/other")).status_code == 200
    assert (await visit.client.get(MEMORIES)).json()["data"] == []


async def test_who_becomes_known_better_meanwhile_is_counted_again_and_not_erased(
    visit: Console,
) -> None:
    await remember(visit, "Rides a bicycle")
    dialog = await erasing(visit, "kim")
    facts = dialog.get_by_role("row", name="Facts")
    await expect(facts).to_contain_text("1")
    await remember(visit, "Lives in Kiel")
    await dialog.get_by_label("To go on, type kim").fill("kim")
    await dialog.get_by_role("button", name="Erase for good").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("nothing was erased")
    await expect(facts).to_contain_text("2")
    assert len((await visit.client.get(MEMORIES)).json()["data"]) == 2
    await dialog.get_by_role("button", name="Erase with what comes meanwhile").click()
    await expect(dialog.get_by_role("heading", name="Erased")).to_be_visible()
    assert (await visit.client.get(MEMORIES)).json()["data"] == []


async def test_of_whom_nothing_is_known_nothing_is_erased(visit: Console) -> None:
    dialog = await erasing(visit, "nobody")
    await dialog.get_by_label("To go on, type nobody").fill("nobody")
    await dialog.get_by_role("button", name="Erase for good").click()
    await expect(dialog.get_by_role("heading", name="Erased")).to_be_visible()


async def test_who_becomes_known_meanwhile_is_counted_again_and_not_erased(visit: Console) -> None:
    dialog = await erasing(visit, "kim")
    await dialog.get_by_label("To go on, type kim").fill("kim")
    await remember(visit, "Lives in Kiel")
    await dialog.get_by_role("button", name="Erase for good").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("nothing was erased")
    await expect(dialog.get_by_role("row", name="Facts")).to_contain_text("1")
    assert len((await visit.client.get(MEMORIES)).json()["data"]) == 1


async def test_a_session_that_goes_on_meanwhile_is_counted_again_and_not_deleted(
    visit: Console,
) -> None:
    await ask(visit, "How are you?")
    dialog = await deleting(visit)
    messages = dialog.get_by_role("row", name="Messages")
    await expect(messages).to_contain_text("2")
    await ask(visit, "And now?")
    await dialog.get_by_role("button", name="Delete for good").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("nothing was erased")
    await expect(messages).to_contain_text("4")
    assert (await visit.client.get(SESSION)).status_code == 200
    await dialog.get_by_role("button", name="Erase with what comes meanwhile").click()
    await expect(dialog.get_by_role("button", name="Download the receipt")).to_be_visible()
    assert (await visit.client.get(SESSION)).status_code == 404


async def test_a_session_in_use_is_deleted_with_what_comes_meanwhile(visit: Console) -> None:
    await ask(visit, "How are you?")
    dialog = await deleting(visit)
    await expect(dialog.get_by_role("row", name="Messages")).to_contain_text("2")
    await ask(visit, "And now?")
    await dialog.get_by_role("button", name="Delete for good").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("may still be growing")
    await ask(visit, "And then?")
    await dialog.get_by_role("button", name="Erase with what comes meanwhile").click()
    await expect(dialog.get_by_role("row", name="Messages")).to_contain_text("6")
    await expect(dialog.get_by_role("button", name="Download the receipt")).to_be_visible()
    assert (await visit.client.get(SESSION)).status_code == 404


async def test_a_person_who_is_active_is_erased_with_what_comes_meanwhile(visit: Console) -> None:
    dialog = await erasing(visit, "kim")
    await dialog.get_by_label("To go on, type kim").fill("kim")
    await remember(visit, "Lives in Kiel")
    await dialog.get_by_role("button", name="Erase for good").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("may still be growing")
    await remember(visit, "Rides a bicycle")
    await dialog.get_by_label("To go on, type kim").fill("kin")
    erase = dialog.get_by_role("button", name="Erase with what comes meanwhile")
    await expect(erase).to_be_disabled()
    await dialog.get_by_label("To go on, type kim").fill("kim")
    await erase.click()
    await expect(dialog.get_by_role("heading", name="Erased")).to_be_visible()
    assert (await visit.client.get(MEMORIES)).json()["data"] == []
