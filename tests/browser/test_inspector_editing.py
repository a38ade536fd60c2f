"""What the inspector changes: the summary, the session; and what others have changed meanwhile."""

from __future__ import annotations

import json

import pytest

from tests.support.browser.browsing import Console, expect
from tests.support.browser.inspecting import SESSION, ask, change, confirm, inspect, session

pytestmark = pytest.mark.one_back_end("redis")


async def test_a_summary_is_written_edited_and_forgotten(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    panel = await inspect(visit, "Summary")
    dialog = visit.page.get_by_role("dialog")
    for words, button in (("They said hello.", "Write one"), ("They met.", "Edit")):
        await panel.get_by_role("button", name=button).click()
        await dialog.get_by_role("textbox").fill(words)
        await dialog.get_by_role("button", name="Save").click()
        await expect(panel.locator(".of-the-summary")).to_contain_text(words)
        assert (await session(visit))["summary"]["text"] == words
    await expect(panel.locator(".of-the-summary")).to_contain_text("edited")
    versions = panel.locator(".summaries > li")
    await expect(versions).to_have_count(2)
    await versions.last.locator("summary").click()
    await expect(versions.last).to_contain_text("They said hello.")
    await visit.shot("inspector-summary")
    await panel.get_by_role("button", name="Forget").click()
    await confirm(visit, "Forget")
    await expect(panel.get_by_text("No summary")).to_be_visible()
    assert (await session(visit))["summary"] is None


async def test_who_edits_a_summary_that_another_has_changed_sees_both(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    await change(visit, summary={"text": "They said hello."})
    panel = await inspect(visit, "Summary")
    await panel.get_by_role("button", name="Edit").click()
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill("Mine.")
    await change(visit, summary={"text": "Theirs."})
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_text("Theirs.")).to_be_visible()
    assert (await session(visit))["summary"]["text"] == "Theirs."
    await dialog.get_by_role("button", name="Save mine").click()
    await expect(panel.locator(".of-the-summary")).to_contain_text("Mine.")


async def test_a_summary_that_another_has_changed_is_not_forgotten(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    await change(visit, summary={"text": "They said hello."})
    panel = await inspect(visit, "Summary")
    await panel.get_by_role("button", name="Forget").click()
    await change(visit, summary={"text": "Theirs."})
    await confirm(visit, "Forget")
    await expect(visit.page.get_by_text("has changed in the meantime")).to_be_visible()
    assert (await session(visit))["summary"]["text"] == "Theirs."


async def test_title_and_lifetime_are_changed(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    panel = await inspect(visit, "Session")
    await panel.get_by_role("button", name="Edit", exact=True).click()
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_label("Title").fill("A weekend in Lisbon")
    await dialog.get_by_label("How long").fill("30")
    await dialog.get_by_label("Unit").select_option("days")
    await dialog.get_by_role("button", name="Save").click()
    await expect(panel.locator(".pairs")).to_contain_text("A weekend in Lisbon")
    await expect(panel.locator(".pairs")).to_contain_text("30 days without activity")
    now = await session(visit)
    assert (now["title"], now["ttl"]) == ("A weekend in Lisbon", 30 * 86_400)
    await expect(panel.get_by_role("link", name="kim")).to_have_attribute("href", "#/users/kim")


async def test_who_edits_a_title_that_another_has_changed_sees_both(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    panel = await inspect(visit, "Session")
    await panel.get_by_role("button", name="Edit", exact=True).click()
    await change(visit, title="Theirs")
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_label("Title").fill("Mine")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert").first).to_contain_text("Theirs")
    assert (await session(visit))["title"] == "Theirs"
    await visit.shot("inspector-conflict")
    await dialog.get_by_role("button", name="Save mine").click()
    await expect(panel.locator(".pairs")).to_contain_text("Mine")
    assert (await session(visit))["title"] == "Mine"


async def test_a_chat_meanwhile_does_not_stand_in_the_way_of_an_edit(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    panel = await inspect(visit, "Session")
    await panel.get_by_role("button", name="Edit", exact=True).click()
    await ask(visit, "How are you?")
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_label("Title").fill("Mine")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    assert (await session(visit))["title"] == "Mine"


@pytest.mark.parametrize("name", ["Edit", "Edit the metadata"])
async def test_what_is_typed_stays_where_the_session_is_deleted_elsewhere(
    visit: Console, name: str
) -> None:
    await visit.seed("talk", "Hello", user="kim")
    panel = await inspect(visit, "Session")
    await panel.get_by_role("button", name=name, exact=True).click()
    dialog = visit.page.get_by_role("dialog")
    box = dialog.get_by_role("textbox").first
    await box.fill('{"app": "web"}')
    assert (await visit.client.delete(SESSION)).status_code == 200
    await expect(visit.page.get_by_text("There is no such session")).to_be_attached()
    await expect(box).to_have_value('{"app": "web"}')
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.locator(".problem")).to_contain_text("no such session")


async def test_metadata_is_edited_as_json(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    await change(visit, metadata={"app": "web"})
    panel = await inspect(visit, "Session")
    await expect(panel.locator(".json")).to_contain_text("web")
    await panel.get_by_role("button", name="Edit the metadata").click()
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill('{"app": ')
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_text("This is not valid JSON.")).to_be_visible()
    await dialog.get_by_role("textbox").fill('{"app": "phone", "n": [1, 2]}')
    await change(visit, metadata={"app": "theirs"})
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_text("theirs").first).to_be_visible()
    await dialog.get_by_role("button", name="Save mine").click()
    await expect(dialog).to_have_count(0)
    await expect(panel.locator(".json")).to_contain_text("phone")
    assert (await session(visit))["metadata"] == {"app": "phone", "n": [1, 2]}


async def test_the_system_message_is_edited_and_forgotten(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    await change(visit, system={"role": "developer", "content": "Be brief."})
    panel = await inspect(visit, "Session")
    await panel.get_by_role("button", name="Edit the system message").click()
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill("Be kind.")
    await dialog.get_by_role("button", name="Save").click()
    await expect(panel.locator(".system-words")).to_have_text("Be kind.")
    assert (await session(visit))["system_messages"] == [
        {"role": "developer", "content": "Be kind."}
    ]
    await panel.get_by_role("button", name="Forget", exact=True).click()
    await confirm(visit, "Forget")
    await expect(panel.get_by_text("None is remembered.")).to_be_visible()
    assert (await session(visit))["system_messages"] == []


async def test_several_system_messages_are_edited_as_json(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    both = [{"role": "system", "content": "Be brief."}, {"role": "system", "content": "Be kind."}]
    await change(visit, system=both)
    panel = await inspect(visit, "Session")
    await panel.get_by_role("button", name="Edit the system message").click()
    box = visit.page.get_by_role("dialog").get_by_role("textbox")
    assert json.loads(await box.input_value()) == both
    await box.fill(json.dumps(both[1:]))
    await visit.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(panel.locator(".system-words")).to_have_text(["Be kind."])
    assert (await session(visit))["system_messages"] == both[1:]
