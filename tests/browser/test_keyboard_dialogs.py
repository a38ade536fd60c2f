"""Every dialog without a pointer: the focus is in it while it is open, and then back again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.keys import answer, asked, back, leave, pick, push, tab_to, write
from tests.support.browser.browsing import Console, Locator, Page, expect
from tests.support.browser.inspecting import SESSION, change, session

pytestmark = pytest.mark.one_back_end("redis")

PERSON = "/memory/v1/users/kim"


async def at_tab(console: Console, list: Locator, name: str) -> Locator:
    """Its panel, gone to with arrows."""
    tab = list.get_by_role("tab", name=name)
    await tab_to(console.page, list.get_by_role("tab", selected=True))
    while not await tab.evaluate("tab => tab === document.activeElement"):
        await console.page.keyboard.press("ArrowRight")
    await expect(tab).to_have_attribute("aria-selected", "true")
    return console.page.get_by_role("tabpanel")


async def inspect(console: Console, tab: str) -> Locator:
    await console.sign_in("#/sessions/talk")
    inspector = console.page.locator(".inspector")
    await expect(inspector).to_be_visible()
    return await at_tab(console, inspector, tab)


async def reopened(page: Page, opener: Locator) -> Locator:
    """The dialog of a button, left with nothing done and opened once more."""
    await push(page, opener)
    await leave(page, opener)
    await push(page, opener)
    return await asked(page)


async def rewrite(page: Page, opener: Locator, text: str) -> None:
    """What a button edits becomes this; the dialog is left once before."""
    await write(page, (await reopened(page, opener)).get_by_role("textbox"), text)
    await answer(page, "Save")
    await back(page, opener)


async def summed_up(console: Console) -> None:
    await console.seed("talk", "Hello", "Hi", user="kim")
    await change(console, summary={"text": "They said hello."})


async def test_a_summary_is_edited_and_forgotten_where_it_stands(visit: Console) -> None:
    await summed_up(visit)
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    menu = page.get_by_role("button", name="What to do with the summary")
    await pick(page, menu, "Edit")
    await leave(page, menu)
    await pick(page, menu, "Edit")
    await write(page, (await asked(page)).get_by_role("textbox"), "They met.")
    await answer(page, "Save")
    await back(page, menu)
    await expect(page.locator(".summary-card")).to_contain_text("They met.")
    await pick(page, menu, "Forget")
    await leave(page, menu)
    await pick(page, menu, "Forget")
    await answer(page, "Forget")
    await expect(page.locator(".summary-card")).to_have_count(0)
    assert (await session(visit))["summary"] is None


async def test_a_summary_is_edited_made_anew_and_forgotten_in_the_inspector(
    visit: Console,
) -> None:
    await summed_up(visit)
    panel = await inspect(visit, "Summary")
    page = visit.page
    edit = panel.get_by_role("button", name="Edit")
    await rewrite(page, edit, "They met.")
    await expect(panel.locator(".of-the-summary")).to_contain_text("They met.")
    for action in ("Make anew", "Forget"):
        button = panel.get_by_role("button", name=action)
        await push(page, button)
        await leave(page, button)
    await push(page, panel.get_by_role("button", name="Forget"))
    await answer(page, "Forget")
    await expect(panel.get_by_text("No summary")).to_be_visible()
    assert (await session(visit))["summary"] is None


async def test_metadata_is_edited_as_json(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    panel = await inspect(visit, "Session")
    page = visit.page
    edit = panel.get_by_role("button", name="Edit the metadata")
    box = (await reopened(page, edit)).get_by_role("textbox")
    await write(page, box, '{"app": ')
    await answer(page, "Save")
    await expect(page.get_by_text("This is not valid JSON.")).to_be_visible()
    await write(page, box, '{"app": "phone"}')
    await answer(page, "Save")
    await back(page, edit)
    assert (await session(visit))["metadata"] == {"app": "phone"}


async def test_a_profile_is_edited_and_put_back(visit: Console) -> None:
    await visit.client.patch(f"{PERSON}/profile", json={"city": "Kiel"})
    await visit.sign_in("#/users/kim")
    page = visit.page
    panel = await at_tab(visit, page.locator(".person"), "Profile")
    edit = panel.get_by_role("button", name="Edit")
    await rewrite(page, edit, '{"city": "Bonn"}')
    await expect(panel.get_by_text("version 2").first).to_be_visible()
    await push(page, panel.locator("summary").filter(has_text="version 1"))
    before = panel.get_by_role("button", name="Go back to this")
    await reopened(page, before)
    await answer(page, "Go back to this")
    await expect(panel.get_by_text("version 3").first).to_be_visible()
    assert (await visit.client.get(f"{PERSON}/profile")).json()["document"] == {"city": "Kiel"}


async def test_a_saved_item_is_changed_and_deleted(visit: Console) -> None:
    item = {"namespace": ["users", "kim", "notes"], "key": "todo", "value": {"text": "milk"}}
    await visit.client.put("/memory/v1/store/items", json=item)
    await visit.client.post(f"{PERSON}/memories", json={"text": "Rides a bicycle"})
    await visit.sign_in("#/users/kim")
    page = visit.page
    panel = await at_tab(visit, page.locator(".person"), "Saved items")
    edit, delete = (panel.get_by_role("button", name=name) for name in ("Edit", "Delete"))
    await rewrite(page, edit, '{"text": "bread"}')
    await expect(panel.get_by_role("article")).to_contain_text("bread")
    await reopened(page, delete)
    await answer(page, "Delete")
    await expect(panel.get_by_text("No saved items")).to_be_visible()


async def test_a_fact_is_corrected_held_back_and_forgotten(visit: Console) -> None:
    await visit.client.post(f"{PERSON}/memories", json={"text": "Lives in Kiel"})
    await visit.sign_in("#/users/kim")
    page = visit.page
    menu = page.get_by_role("article").get_by_role("button", name="More actions")
    await pick(page, menu, "Edit")
    await write(page, (await asked(page)).get_by_label("Text"), "Lives in Bonn")
    await answer(page, "Save")
    await back(page, menu)
    await expect(page.get_by_role("article")).to_contain_text("Lives in Bonn")
    await pick(page, menu, "Quarantine")
    await expect(page.get_by_role("article")).to_have_count(0)
    await tab_to(page, page.get_by_label("State"))
    await page.keyboard.type("Quar")
    await pick(page, menu, "Forget")
    await leave(page, menu)
    await pick(page, menu, "Forget")
    await answer(page, "Forget")
    await expect(page.get_by_role("article")).to_have_count(0)
    assert (await visit.client.get(f"{PERSON}/memories")).json()["data"] == []


async def test_a_file_is_chosen_and_imported(visit: Console, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "From elsewhere"}]), encoding="utf-8")
    await visit.sign_in()
    page = visit.page
    opener = page.get_by_role("button", name="Import")
    dialog = await reopened(page, opener)
    async with page.expect_file_chooser() as choosing:
        await push(page, dialog.locator("button", has_text="Choose a file"))
    await (await choosing.value).set_files(file)
    await write(page, dialog.get_by_label("Session id"), "talk")
    await answer(page, "Import")
    await expect(dialog.get_by_text("Imported.")).to_be_visible()
    await asked(page)
    await push(page, dialog.locator("footer").get_by_role("button", name="Close"))
    await back(page, opener)
    assert (await visit.client.get(SESSION)).status_code == 200


async def test_everything_is_exported(visit: Console) -> None:
    await visit.seed("talk", "I live in Kiel", "How nice")
    await visit.sign_in()
    page = visit.page
    menu = page.get_by_role("button", name="More actions")
    async with page.expect_download() as saving:
        await pick(page, menu, "Export everything")
    path = await (await saving.value).path()
    assert "I live in Kiel" in path.read_text(encoding="utf-8")
    await expect(page.get_by_text("Done. Your browser has saved the file")).to_be_visible()
    await leave(page, menu)
