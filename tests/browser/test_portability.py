"""Memory taken out and brought in, by people."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from tests.support.browser.browsing import Console, Page, expect


async def exported(page: Page) -> Path:
    """The file that "Export everything" saves."""
    async with page.expect_download() as saving:
        await page.get_by_role("button", name="More actions").click()
        await page.get_by_role("menuitem", name="Export everything").click()
    await expect(page.get_by_text("Done. Your browser has saved the file")).to_be_visible()
    await page.keyboard.press("Escape")
    return Path(await (await saving.value).path())


async def test_what_is_exported_can_be_imported_again(visit: Console, tmp_path: Path) -> None:
    await visit.chat("talk", "I live in Kiel", user="kim")
    await visit.seed("imported", "Hello", "Hi")
    before = (await visit.client.get("/memory/v1/sessions/talk/messages")).json()
    await visit.sign_in()
    page = visit.page
    file = tmp_path / "memory.ndjson"
    file.write_bytes((await exported(page)).read_bytes())
    for session in ("talk", "imported"):
        await visit.client.delete(f"/memory/v1/sessions/{session}")
    await expect(page.get_by_text("No conversations yet")).to_be_visible()
    await page.get_by_role("button", name="Import").click()
    await page.get_by_label("Choose a file").set_input_files(file)
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Import").click()
    await expect(dialog.get_by_text("Imported.")).to_be_visible()
    await expect(dialog.get_by_role("row", name="Sessions").first).to_contain_text("2")
    await visit.shot("import")
    await dialog.locator("footer").get_by_role("button", name="Close").click()
    await expect(page.locator(".sessions .virtual-item")).to_have_count(2)
    assert (await visit.client.get("/memory/v1/sessions/talk/messages")).json() == before


async def test_importing_twice_changes_nothing_and_says_so(visit: Console, tmp_path: Path) -> None:
    await visit.seed("talk", "Hello", "Hi")
    await visit.sign_in()
    page = visit.page
    file = tmp_path / "memory.ndjson"
    file.write_bytes((await exported(page)).read_bytes())
    await page.get_by_role("button", name="Import").click()
    await page.get_by_label("Choose a file").set_input_files(file)
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Import").click()
    skipped = dialog.get_by_role("row", name="Sessions left as they are")
    await expect(skipped).to_contain_text("1")
    assert await visit.violations() == []


async def test_a_dropped_file_of_another_program_is_recognised(inside: Console) -> None:
    page = inside.page
    told = [{"role": "user", "content": "From elsewhere"}, {"role": "assistant", "content": "Hi"}]
    await page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.items.add(new File([text], "chat.json", { type: "application/json" }));
          const target = document.querySelector(".dropping");
          for (const kind of ["dragover", "drop"]) {
            const how = { dataTransfer: data, bubbles: true, cancelable: true };
            target.dispatchEvent(new DragEvent(kind, how));
          }
        }""",
        json.dumps(told),
    )
    dialog = page.get_by_role("dialog", name="Import memory")
    await expect(dialog.get_by_text("chat.json")).to_be_visible()
    await dialog.get_by_label("Session id").fill("brought-along")
    await dialog.get_by_role("button", name="Import").click()
    await expect(dialog.get_by_text("Imported.")).to_be_visible()
    await expect(dialog.get_by_text("openai", exact=True)).to_be_visible()
    found = await inside.client.get("/memory/v1/sessions/brought-along/messages")
    assert [each["message"]["content"] for each in found.json()["data"]] == ["From elsewhere", "Hi"]


async def test_a_file_that_is_dropped_elsewhere_is_not_opened(inside: Console) -> None:
    await inside.go("#/users")
    await expect(inside.page.get_by_role("heading", name="Users", exact=True)).to_be_visible()
    kept = await inside.page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["{}"], "chat.json", { type: "application/json" }));
          return ["dragover", "drop"].map((kind) => {
            const how = { dataTransfer: data, bubbles: true, cancelable: true };
            return !document.querySelector("h1").dispatchEvent(new DragEvent(kind, how));
          });
        }"""
    )
    assert kept == [True, True]


async def test_a_broken_file_is_refused_in_words(inside: Console, tmp_path: Path) -> None:
    page = inside.page
    file = tmp_path / "broken.json"
    file.write_text("this is no memory", encoding="utf-8")
    await page.get_by_role("button", name="Import").click()
    await page.get_by_label("Choose a file").set_input_files(file)
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Import").click()
    await expect(dialog.get_by_role("alert")).not_to_be_empty()
    assert (await inside.client.get("/memory/v1/sessions")).json()["data"] == []


async def test_a_person_is_exported_alone(visit: Console) -> None:
    await visit.chat("of-kim", "I live in Kiel", user="kim")
    await visit.chat("of-alex", "I live in Bonn", user="alex")
    await visit.sign_in("#/users/kim")
    async with visit.page.expect_download() as saving:
        await visit.page.get_by_role("button", name="Export").click()
    saved = await saving.value
    assert saved.suggested_filename.startswith("kim-")
    text = Path(await saved.path()).read_text(encoding="utf-8")
    assert "I live in Kiel" in text
    assert "I live in Bonn" not in text


async def test_what_was_said_long_ago_is_no_new_activity_when_it_is_imported(
    visit: Console,
) -> None:
    for number in range(3):
        await visit.seed(f"old-{number}", "Long ago", "Indeed")
    exported = (await visit.client.get("/memory/v1/export")).text
    for number in range(3):
        await visit.client.delete(f"/memory/v1/sessions/old-{number}")
    await visit.seed("mine", "Hello", "Hi")
    await visit.sign_in()
    rows = visit.page.locator(".sessions .virtual-item")
    await expect(rows).to_have_count(1)
    ago = f'"last_active_at":{time.time() - 9000}'
    long_ago, count = re.subn(r'"last_active_at":[0-9.]+', ago, exported)
    assert count == 3
    answer = await visit.client.post("/memory/v1/import", content=long_ago)
    assert answer.json()["sessions"] == 3, answer.text
    await expect(rows).to_have_count(4)
    await visit.chat("now", "What is new?")
    await expect(rows).to_have_count(5)
    await expect(visit.page.get_by_text("New activity")).to_have_count(1)
