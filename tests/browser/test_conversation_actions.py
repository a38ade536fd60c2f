"""What can be done with a conversation, each after a question: changed, forked, erased."""

from __future__ import annotations

from typing import Any

from tests.support.browser.browsing import Console, Locator, expect

SESSIONS = "/memory/v1/sessions"


async def messages(console: Console, session: str, state: str = "active") -> list[dict[str, Any]]:
    answer = await console.client.get(f"{SESSIONS}/{session}/messages?state={state}")
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def texts(console: Console, session: str) -> list[str]:
    return [each["message"]["content"] for each in await messages(console, session)]


def bubble(console: Console, text: str) -> Locator:
    return console.page.locator(".conversation .message").filter(has_text=text)


async def choose(console: Console, text: str, action: str) -> None:
    """From the menu of the message with this text."""
    one = bubble(console, text)
    await one.hover()
    await one.get_by_role("button", name="What to do with this message").click()
    await console.page.get_by_role("menuitem", name=action).click()


async def seeded(visit: Console) -> None:
    await visit.seed("s", "First", "Second", "Third", "Fourth", user="kim")
    await visit.sign_in("#/sessions/s")
    await expect(bubble(visit, "Fourth")).to_be_visible()


async def test_a_message_is_edited_in_place(visit: Console) -> None:
    await seeded(visit)
    await choose(visit, "Second", "Edit…")
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("The old text is not kept.")
    await dialog.get_by_role("textbox").fill("Another second")
    await dialog.get_by_role("button", name="Save").click()
    await expect(bubble(visit, "Another second")).to_be_visible()
    assert (await texts(visit, "s"))[1] == "Another second"


async def test_whoever_edited_meanwhile_is_not_overruled(visit: Console) -> None:
    await seeded(visit)
    await choose(visit, "Second", "Edit…")
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill("Mine")
    second = (await messages(visit, "s"))[1]["id"]
    await visit.client.patch(f"{SESSIONS}/s/messages/{second}", json={"content": "Theirs"})
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.locator(".conflict")).to_contain_text("Theirs")
    assert (await texts(visit, "s"))[1] == "Theirs"
    await dialog.get_by_role("button", name="Save mine").click()
    await expect(bubble(visit, "Mine")).to_be_visible()
    assert (await texts(visit, "s"))[1] == "Mine"


async def test_a_message_is_deleted_after_a_question(visit: Console) -> None:
    await seeded(visit)
    await choose(visit, "Second", "Delete…")
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Second")
    await dialog.get_by_role("button", name="Cancel").click()
    assert len(await texts(visit, "s")) == 4
    await choose(visit, "Second", "Delete…")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(bubble(visit, "Second")).to_have_count(0)
    assert await texts(visit, "s") == ["First", "Third", "Fourth"]


async def test_a_message_that_another_changes_meanwhile_is_not_deleted(visit: Console) -> None:
    await seeded(visit)
    await choose(visit, "Second", "Delete…")
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Second")
    second = (await messages(visit, "s"))[1]["id"]
    await visit.client.patch(f"{SESSIONS}/s/messages/{second}", json={"content": "Theirs"})
    await dialog.get_by_role("button", name="Delete").click()
    await expect(visit.page.get_by_role("alert")).to_contain_text("nothing was done")
    assert (await texts(visit, "s"))[1] == "Theirs"
    await choose(visit, "Theirs", "Delete…")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(bubble(visit, "Theirs")).to_have_count(0)


async def test_a_call_is_deleted_with_its_results_and_that_is_said(visit: Console) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Nothing"},
        {"role": "assistant", "content": "There is nothing."},
    ]
    await visit.client.post(f"{SESSIONS}/s/messages", json={"messages": said})
    await visit.sign_in("#/sessions/s")
    calling = visit.page.locator(".message").filter(has=visit.page.locator(".call"))
    await calling.hover()
    await calling.locator(".message-foot").get_by_role("button", name="What to do").click()
    await visit.page.get_by_role("menuitem", name="Delete…").click()
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("1 result of its calls goes along.")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(calling).to_have_count(0)
    assert await texts(visit, "s") == ["Look", "There is nothing."]


async def test_rewinding_keeps_what_was_said_as_a_branch(visit: Console) -> None:
    await seeded(visit)
    await choose(visit, "Third", "Rewind to here…")
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("2 in all")
    await dialog.get_by_role("button", name="Rewind").click()
    await expect(bubble(visit, "Third")).to_have_count(0)
    assert await texts(visit, "s") == ["First", "Second"]
    await expect(visit.page.get_by_text("What followed here was taken back.")).to_be_visible()
    await visit.page.get_by_role("button", name="Previous branch").click()
    await expect(bubble(visit, "Fourth")).to_be_visible()
    await choose(visit, "Fourth", "Make this branch active")
    await dialog.get_by_role("button", name="Make this branch active").click()
    await expect(bubble(visit, "Superseded")).to_have_count(0)
    assert await texts(visit, "s") == ["First", "Second", "Third", "Fourth"]


async def test_a_fork_has_everything_up_to_the_message(visit: Console) -> None:
    await seeded(visit)
    await choose(visit, "Second", "Fork from here…")
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_label("Id of the new session").fill("forked")
    await dialog.get_by_label("Title (optional)").fill("Another way")
    await dialog.get_by_role("button", name="Fork").click()
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions/forked")
    await expect(visit.page.get_by_role("heading", level=1)).to_contain_text("Another way")
    await expect(bubble(visit, "Second")).to_be_visible()
    assert await texts(visit, "forked") == ["First", "Second"]
    assert len(await texts(visit, "s")) == 4


async def test_a_session_is_deleted_after_its_receipt_was_seen(visit: Console) -> None:
    await seeded(visit)
    await visit.page.get_by_role("button", name="What to do with this session").click()
    await visit.page.get_by_role("menuitem", name="Delete this session…").click()
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog.get_by_role("row", name="Messages")).to_contain_text("4")
    await visit.shot("talk-delete")
    assert len(await texts(visit, "s")) == 4
    await dialog.get_by_role("button", name="Delete for good").click()
    await expect(dialog.get_by_role("button", name="Download the receipt")).to_be_visible()
    assert (await visit.client.get(f"{SESSIONS}/s")).status_code == 404
    await dialog.get_by_role("button", name="Close").last.click()
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions")


async def test_a_session_is_exported(visit: Console) -> None:
    await seeded(visit)
    await visit.page.get_by_role("button", name="What to do with this session").click()
    async with visit.page.expect_download() as coming:
        await visit.page.get_by_role("menuitem", name="Export").click()
    path = await (await coming.value).path()
    assert "Fourth" in path.read_text(encoding="utf-8")


async def test_it_is_said_when_nothing_was_learned(visit: Console) -> None:
    await seeded(visit)
    await choose(visit, "Second", "Forget what was learned from here…")
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Nothing was learned from here.")


async def test_the_summary_stands_where_it_covers_until_and_can_be_edited(visit: Console) -> None:
    await seeded(visit)
    await visit.client.patch(f"{SESSIONS}/s", json={"summary": {"text": "They counted."}})
    card = visit.page.locator(".summary-card")
    await expect(card).to_contain_text("They counted.")
    await card.get_by_role("button", name="What to do with the summary").click()
    await visit.page.get_by_role("menuitem", name="Edit…").click()
    dialog = visit.page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill("They counted to four.")
    await dialog.get_by_role("button", name="Save").click()
    await expect(card).to_contain_text("They counted to four.")
    await expect(card).to_contain_text("version 2")
    await card.get_by_role("button", name="What to do with the summary").click()
    await visit.page.get_by_role("menuitem", name="Forget").click()
    await dialog.get_by_role("button", name="Forget").click()
    await expect(card).to_have_count(0)
    assert (await visit.client.get(f"{SESSIONS}/s")).json()["summary"] is None
