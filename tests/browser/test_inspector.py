"""The inspector: why a prompt was what it was, what would be sent, the summary, the session."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.browser.conftest import Proxies
from tests.support.browser.browsing import Console, Route, expect
from tests.support.browser.inspecting import (
    SESSION,
    ask,
    change,
    confirm,
    inspect,
    section,
    session,
    told,
)
from tests.support.upstream.scripted import ScriptedUpstream

pytestmark = pytest.mark.one_back_end("redis")

SHORT = {"window": "message_window", "max_messages": 2, "summary": {"enabled": False}}
NO_TEXT = "<img src=x onerror='window.hurt = 1'> \u202eevil"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def proxies(
    tmp_path_factory: pytest.TempPathFactory, up: ScriptedUpstream
) -> AsyncIterator[Proxies]:
    """With summaries, and with another profile to choose."""
    more = {"memory__summary__enabled": True, "profiles": {"short": SHORT}}
    async with AsyncExitStack() as opened:
        yield Proxies(tmp_path_factory.mktemp("inspector"), up, opened, **more)


async def test_why_tells_what_was_recalled_and_what_for(visit: Console) -> None:
    [asked, _] = await told(visit, "My sister Maren keeps bees")
    await ask(visit, "Which animals does my sister Maren keep?")
    panel = await inspect(visit)
    await expect(panel.get_by_text("Memory applied")).to_be_visible()
    passage = panel.locator(".passage").filter(has_text="My sister Maren keeps bees")
    await expect(passage).to_contain_text("older")
    await passage.get_by_text("What the score is made of").click()
    await expect(passage.get_by_text("Shared words")).to_be_visible()
    await expect(section(panel, "Tokens of the prompt").locator(".spent-legend")).to_contain_text(
        "Recalled"
    )
    await expect(panel.locator(".pairs").filter(has_text="Memory took")).to_contain_text("ms")
    await visit.shot("inspector-why")
    await passage.get_by_role("button", name="Open").click()
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions/older/messages/{asked}")


async def test_what_was_left_out_is_told_with_the_reason(visit: Console) -> None:
    await visit.seed("talk", *(f"Line {n}" for n in range(8)), user="kim")
    await ask(visit, "And now?", **{"x-memory-profile": "short"})
    panel = await inspect(visit)
    left = section(panel, "Left out")
    await expect(left).to_contain_text("6 messages")
    await expect(left).to_contain_text("the window was full")
    await expect(panel.locator(".pairs").filter(has_text="Profile")).to_contain_text("short")


async def test_tokens_of_the_cache_are_told(visit: Console) -> None:
    await ask(visit, "How are you?")
    told = (await visit.client.get(f"{SESSION}/exchanges")).json()["data"][0]["usage"]
    facts = (await inspect(visit)).locator(".pairs").last
    await expect(facts).to_contain_text(f"Prompt{told['prompt_tokens']}")
    await expect(facts).to_contain_text(f"Completion{told['completion_tokens']}")


async def test_tokens_of_a_prompt_that_nobody_counted_are_said_to_be_those_of_memory(
    visit: Console,
) -> None:
    await ask(visit, "How are you?")
    said = [{"role": "user", "content": "And how is your sister?"}]
    body = {"model": "scripted-1", "messages": said, "stream": True}
    headers = {"x-session-id": "talk", "x-user-id": "kim"}
    await visit.client.post("/v1/chat/completions", json=body, headers=headers)
    spent = section(await inspect(visit), "Tokens from memory")
    await expect(spent).to_contain_text("The upstream has not said how many tokens")
    await expect(spent.locator(".spent-legend")).to_contain_text("100 %")


async def test_one_steps_from_exchange_to_exchange(visit: Console) -> None:
    ids = [await ask(visit, f"Question {n}") for n in range(3)]
    panel = await inspect(visit)
    older, newer = (
        panel.get_by_role("button", name=f"{way} exchange") for way in ("Older", "Newer")
    )
    await expect(newer).to_be_disabled()
    await older.click()
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions/talk/exchanges/{ids[1]}")
    await older.click()
    await expect(panel.get_by_text(ids[0])).to_be_visible()
    await expect(panel.get_by_text("Memory put nothing into this prompt.")).to_have_count(0)
    await older.click()
    await expect(older).to_be_disabled()
    await newer.click()
    await expect(panel.get_by_text(ids[1])).to_be_visible()


async def test_one_steps_back_behind_what_is_loaded(visit: Console) -> None:
    ids = [await ask(visit, f"Question {n}") for n in range(22)]
    panel = await inspect(visit, path=f"/exchanges/{ids[2]}")
    await expect(panel.get_by_text(ids[2])).to_be_visible()
    for id in (ids[1], ids[0]):
        await panel.get_by_role("button", name="Older exchange").click()
        await expect(panel.get_by_text(id)).to_be_visible()


async def test_an_exchange_that_is_not_there_is_said_to_be_none(visit: Console) -> None:
    exchange = await ask(visit, "How are you?")
    panel = await inspect(visit, path="/exchanges/ex_unknown")
    await expect(panel.get_by_text("There is no such exchange here.")).to_be_visible()
    await expect(visit.page.locator(".toast")).to_have_count(0)
    await panel.get_by_role("button", name="Newest exchange").click()
    await expect(panel.get_by_text(exchange)).to_be_visible()


async def test_an_exchange_that_goes_while_it_is_looked_at_is_said_to_be_gone(
    visit: Console,
) -> None:
    ids = [await ask(visit, f"Question {n}") for n in range(2)]
    panel = await inspect(visit, path=f"/exchanges/{ids[1]}")
    await expect(panel.get_by_text(ids[1])).to_be_visible()
    for message in (await visit.client.get(f"{SESSION}/messages")).json()["data"][2:]:
        await visit.client.delete(f"{SESSION}/messages/{message['id']}")
    await expect(panel.get_by_text("There is no such exchange here.")).to_be_visible()
    await panel.get_by_role("button", name="Newest exchange").click()
    await expect(panel.get_by_text(ids[0])).to_be_visible()


async def test_escape_leaves_the_box_and_not_the_conversation(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    panel = await inspect(visit, "Would be sent")
    box = panel.get_by_label("Next message")
    await box.fill("A long thought")
    await box.press("Escape")
    await expect(box).not_to_be_focused()
    await expect(box).to_have_value("A long thought")
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions/talk")
    await visit.page.keyboard.press("Escape")
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions")


async def test_what_stood_in_the_prompt_leads_to_the_messages(visit: Console) -> None:
    await visit.seed("talk", *(f"Line {n}\n" * 4 for n in range(60)), user="kim")
    await ask(visit, "And now?")
    panel = await inspect(visit)
    prompt = section(panel, "In the prompt, in order")
    await prompt.get_by_text("60 messages").click()
    await prompt.get_by_role("button", name="Line 3 Line 3").click()
    bubble = visit.page.locator(".message").filter(has_text=re.compile(r"Line 3\b"))
    await expect(bubble).to_be_in_viewport()


async def test_an_import_has_nothing_to_tell_but_that_it_is_one(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    panel = await inspect(visit)
    await expect(panel.get_by_text("Memory off")).to_be_visible()
    await expect(panel.get_by_text("imported")).to_be_visible()
    await expect(panel.get_by_text("Memory put nothing into this prompt.")).to_be_visible()


async def test_what_would_be_sent_is_what_is_sent(visit: Console) -> None:
    await told(visit, "My sister Maren keeps bees")
    await visit.client.post(
        f"{SESSION}/messages",
        json={
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hi"},
            ],
            "user": "kim",
        },
    )
    before = await session(visit)
    panel = await inspect(visit, "Would be sent")
    question = "Which animals does my sister Maren keep?"
    await panel.get_by_label("Next message").fill(question)
    async with visit.page.expect_response(lambda got: got.url.endswith("/context")) as answering:
        await panel.get_by_role("button", name="Show the prompt").click()
    preview = await (await answering.value).json()
    sent = panel.locator(".sent-message")
    await expect(sent).to_have_count(4)
    await expect(sent.first).to_contain_text("Be brief.")
    await expect(sent.first).to_contain_text("remembered")
    await expect(sent.nth(1)).to_contain_text("from history")
    await expect(sent.last.locator(".memory-block")).to_contain_text("My sister Maren keeps bees")
    await expect(sent.last).to_contain_text(question)
    await visit.shot("inspector-sent")
    assert await session(visit) == before
    await ask(visit, question)
    assert visit.up.requests[-1].json["messages"] == preview["messages"]
    await expect(panel.get_by_text("The session has changed since.")).to_be_visible()


async def test_another_profile_would_send_something_else(visit: Console) -> None:
    await visit.seed("talk", *(f"Line {n}" for n in range(8)), user="kim")
    panel = await inspect(visit, "Would be sent")
    await panel.get_by_label("Next message").fill("And now?")
    await panel.get_by_role("button", name="Show the prompt").click()
    await expect(panel.locator(".sent-message")).to_have_count(9)
    await panel.get_by_label("Profile").select_option("short")
    await visit.page.keyboard.press("Tab")
    await panel.get_by_label("Next message").press("Control+Enter")
    await expect(panel.locator(".sent-message")).to_have_count(3)
    await expect(section(panel, "Left out")).to_contain_text("the window was full")
    for tab in ("Why", "Would be sent"):
        await visit.page.locator(".inspector").get_by_role("tab", name=tab).click()
    await expect(panel.get_by_label("Next message")).to_have_value("And now?")
    await expect(panel.locator(".sent-message")).to_have_count(3)


async def test_a_summary_is_made_anew_after_a_question(visit: Console) -> None:
    await visit.seed("talk", "Hello", "Hi", user="kim")
    await change(visit, summary={"text": "They said hello."})
    panel = await inspect(visit, "Summary")
    await panel.get_by_role("button", name="Make anew").click()
    await confirm(visit, "Make anew")
    await expect(visit.page.get_by_text("The summary is being made anew.")).to_be_visible()
    await expect(panel.get_by_text("They said hello.").first).to_be_visible()


@pytest.mark.parametrize("tab", ["Why", "Session"])
async def test_forgetting_what_was_learned_is_only_told_first(visit: Console, tab: str) -> None:
    exchange = await ask(visit, "I live in Kiel")
    panel = await inspect(visit, tab)
    async with visit.page.expect_request(lambda made: made.url.endswith("/forget")) as asking:
        await panel.get_by_role("button", name="Forget what was learned").click()
    body = json.loads((await asking.value).post_data or "")
    assert body == {"dry_run": True, **({"exchange_id": exchange} if tab == "Why" else {})}
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog.get_by_text("Nothing was learned from here.")).to_be_visible()


async def test_tokens_and_times_of_the_exchanges_are_drawn(visit: Console) -> None:
    for n in range(3):
        await ask(visit, f"Question {n}")
    panel = await inspect(visit, "Session")
    await expect(panel.locator("canvas")).to_have_count(2)
    tokens = panel.locator("figure").first
    await tokens.get_by_text("Show as a table").click()
    await expect(tokens.locator("tbody tr")).to_have_count(3)
    await ask(visit, "One more")
    await expect(tokens.locator("tbody tr")).to_have_count(4)
    await visit.shot("inspector-session")


async def test_hostile_words_are_shown_and_do_nothing(visit: Console) -> None:
    await told(visit, f"My sister Maren keeps bees {NO_TEXT}")
    await ask(visit, "Which animals does my sister Maren keep?")
    await change(visit, title=NO_TEXT, metadata={NO_TEXT: NO_TEXT}, summary={"text": NO_TEXT})
    panel = await inspect(visit)
    await expect(panel.locator(".passage").first).to_contain_text("<img src=x")
    await expect(panel.locator(".passage").first).to_contain_text("⟨U+202E⟩evil")
    for tab in ("Summary", "Session"):
        await visit.page.locator(".inspector").get_by_role("tab", name=tab).click()
        await expect(panel.get_by_text("⟨U+202E⟩evil").first).to_be_visible()
    assert await visit.page.evaluate("window.hurt") is None
    assert await panel.locator("img").count() == 0


async def test_an_exchange_whose_messages_are_deleted_is_not_the_newest(visit: Console) -> None:
    first, last = await ask(visit, "First question"), await ask(visit, "Second question")
    panel = await inspect(visit)
    await expect(panel.locator(".pairs")).to_contain_text(last)
    listed = await visit.client.get(f"{SESSION}/messages")
    for each in listed.json()["data"][-2:]:
        await visit.client.delete(f"{SESSION}/messages/{each['id']}")
    await expect(panel.locator(".pairs")).to_contain_text(first)
    await expect(panel.locator(".stepper")).to_contain_text("Newest exchange")
    await expect(panel.get_by_role("button", name="Newer exchange")).to_be_disabled()


async def test_a_profile_in_a_prompt_is_named_and_leads_to_the_profile(visit: Console) -> None:
    await ask(visit, "How are you?")

    async def known(route: Route) -> None:
        answer = await route.fetch()
        page = await answer.json()
        page["data"][0]["memory"]["recalled"] = [
            {
                "kind": "profile",
                "score": 0.0,
                "parts": {},
                "tokens": 7,
                "message_id": None,
                "session_id": None,
                "memory_id": None,
            }
        ]
        await route.fulfill(response=answer, json=page)

    await visit.page.route("**/exchanges?*", known)
    panel = await inspect(visit)
    piece = panel.locator(".passage")
    await expect(piece.locator(".tag").first).to_have_text("Profile")
    await piece.get_by_role("link", name="Profile").click()
    tab = visit.page.get_by_role("tab", name="Profile")
    await expect(tab).to_have_attribute("aria-selected", "true")
    await visit.page.unroute_all(behavior="wait")


async def test_headings_skip_no_level(visit: Console) -> None:
    await ask(visit, "How are you?")
    await inspect(visit)
    await expect(visit.page.locator(".why h3").first).to_be_visible()
    levels = "all => all.map((one) => Number(one.tagName.slice(1)))"
    found = await visit.page.locator("h1, h2, h3, h4").evaluate_all(levels)
    assert all(after - before <= 1 for before, after in itertools.pairwise([0, *found])), found
