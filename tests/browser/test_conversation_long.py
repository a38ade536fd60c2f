"""A conversation of any length and of any content: found, read, and harmless."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.browser.browsing import Console, Locator, expect
from tests.support.browser.measuring import elements
from tests.support.talk.filling import AT_ONCE

pytestmark = pytest.mark.one_back_end

SESSIONS = "/memory/v1/sessions"
MANY = 1500
MEGABYTE = 1 << 20
FOLDED = 20_000
DEEP = "[" * 2000 + "]" * 2000

HOSTILE: tuple[Any, ...] = (
    "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>",
    "bidi \u202egpj.exe\u202c and \u0000 nothing \u001b[31m",
    "z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f" * 200,
    "w" * 20_000,
    "javascript:alert(1) data:text/html,x https://user:pass@example.org/\u202ex",
    "```\n<b>open fence</b>",
    [{"type": "text", "text": "<i>part</i>"}, {"type": "unheard_of", "x": {"y": "<u>"}}],
    [{"type": "image_url", "image_url": {"url": "data:text/html,<script>window.hurt=1</script>"}}],
)


def bubbles(console: Console) -> Locator:
    return console.page.locator(".conversation .message")


def bubble(console: Console, text: str) -> Locator:
    return bubbles(console).filter(has_text=text)


async def put(console: Console, session: str, *contents: Any) -> list[str]:
    """Import contents, user and assistant in turn; the ids."""
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": content} for n, content in enumerate(contents)]
    answer = await console.client.post(f"{SESSIONS}/{session}/messages", json={"messages": said})
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["data"]]


async def remove(console: Console, session: str, ids: Sequence[str]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(id: str) -> None:
        async with gate:
            answer = await console.client.delete(f"{SESSIONS}/{session}/messages/{id}")
        assert answer.status_code == 200, answer.text

    await asyncio.gather(*map(one, ids))


async def no_wider(console: Console) -> bool:
    return not await console.page.evaluate("document.documentElement.scrollWidth > innerWidth")


async def test_hostile_messages_are_legible_and_do_nothing(visit: Console) -> None:
    await put(visit, "hostile", *HOSTILE)
    await visit.sign_in("#/sessions/hostile")
    await expect(bubbles(visit).last).to_be_visible()
    scroller = visit.page.locator(".conversation")
    for text in ("<script>window.hurt = 1</script>", "⟨U+202E⟩gpj.exe", "␀ nothing ␛[31m"):
        await scroller.evaluate("list => list.scrollTo(0, 0)")
        await expect(visit.page.get_by_text(text).first).to_be_visible()
    assert await visit.page.evaluate("window.hurt") is None
    assert await no_wider(visit)
    hrefs = await visit.page.eval_on_selector_all(
        ".conversation a", "links => links.map(link => link.protocol)"
    )
    assert set(hrefs) <= {"https:", "http:"}
    await visit.shot("talk-hostile")
    assert await visit.violations() == []


async def test_broken_and_deep_json_of_calls_is_shown_as_it_came(visit: Console) -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": f"tool{n}", "arguments": text}}
        for n, text in enumerate(("{'no': json", DEEP, "", "null"))
    ]
    said = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
    ]
    await visit.client.post(f"{SESSIONS}/json/messages", json={"messages": said})
    await visit.sign_in("#/sessions/json")
    for n in range(4):
        await visit.page.get_by_role("button", name=f"tool{n}").click()
    await expect(
        visit.page.get_by_text("This is not valid JSON; shown as it came.")
    ).to_be_visible()
    await expect(visit.page.get_by_text("{'no': json").last).to_be_visible()
    assert await no_wider(visit)


async def test_a_megabyte_is_folded_and_unfolded_in_a_few_elements(visit: Console) -> None:
    lines = "\n".join(f"line {n}" for n in range(10_000))
    await put(visit, "huge", "Go on", "word " * (MEGABYTE // 5) + "THEEND", lines)
    await visit.sign_in("#/sessions/huge")
    huge = bubble(visit, "word word")
    more = huge.get_by_role("button", name="characters")
    await more.scroll_into_view_if_needed()
    await expect(more).to_have_text("Show all 1,048,581 characters")
    assert await visit.page.locator("body").evaluate("one => one.textContent.length") < FOLDED
    folded = await elements(visit.page)
    await more.click()
    await expect(huge.get_by_text("THEEND")).to_be_attached()
    # Not one a word or a line, which would be laid out for seconds.
    assert await elements(visit.page) < 10 * folded
    await huge.get_by_role("button", name="Show less").click()
    await expect(huge.get_by_text("THEEND")).to_have_count(0)
    assert await no_wider(visit)


async def test_one_jumps_far_back_and_reads_on_from_there(visit: Console) -> None:
    said = [f"Message {n}: {'words ' * (n % 60)}" for n in range(MANY)]
    ids = await put(visit, "many", *said)
    await visit.sign_in("#/sessions/many")
    await expect(bubble(visit, f"Message {MANY - 1}:")).to_be_in_viewport()
    await visit.go(f"#/sessions/many/messages/{ids[77]}")
    await expect(bubble(visit, "Message 77:")).to_be_in_viewport()
    assert await bubbles(visit).count() < 60
    await visit.page.keyboard.press("j")
    await visit.page.keyboard.press("End")  # of what is loaded by now
    await expect(bubble(visit, f"Message {MANY - 1}:")).to_have_count(0)
    await visit.page.get_by_role("button", name="To the end").click()
    await expect(bubble(visit, f"Message {MANY - 1}:")).to_be_in_viewport()


async def test_who_reads_further_down_is_not_taken_to_the_end_when_it_is_loaded(
    visit: Console,
) -> None:
    ids = await put(visit, "many", *(f"Message {n}:" for n in range(MANY)))
    await visit.sign_in("#/sessions/many")
    await expect(bubble(visit, f"Message {MANY - 1}:")).to_be_in_viewport()
    for far in (100, 1300):
        await visit.go(f"#/sessions/many/messages/{ids[far]}")
        await expect(bubble(visit, f"Message {far}:")).to_be_in_viewport()
    await visit.page.locator(".conversation").evaluate("list => list.scrollTo(0, 1e9)")
    loaded = visit.page.locator(f".conversation [aria-setsize='{MANY - 1200 + 1}']")
    await expect(loaded.first).to_be_attached()
    await expect(bubble(visit, "Message 1399:")).to_be_in_viewport()


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param((range(130), range(0)), marks=pytest.mark.release),
        (range(130), range(810, 850)),
    ],
)
async def test_where_most_was_deleted_one_reads_on_to_what_is_left(
    visit: Console, kept: tuple[range, range]
) -> None:
    ids = await put(visit, "few", *(f"Message {n}:" for n in range(850)))
    await remove(visit, "few", [id for n, id in enumerate(ids) if not any(n in k for k in kept)])
    await visit.sign_in("#/sessions/few")
    await expect(bubbles(visit).last).to_be_in_viewport()
    scroller = visit.page.locator(".conversation")
    left = visit.page.locator(f".conversation [aria-setsize='{sum(map(len, kept))}']").first
    await scroller.evaluate("list => list.scrollTo(0, 0)")
    await expect(left).to_be_attached()
    await visit.go("#/sessions")
    await visit.go(f"#/sessions/few/messages/{ids[20]}")
    await expect(bubble(visit, "Message 20:")).to_be_in_viewport()
    await scroller.evaluate("list => list.scrollTo(0, 1e9)")
    await expect(left).to_be_attached()


async def test_what_stands_before_hundreds_of_messages_that_were_taken_back_is_seen(
    visit: Console,
) -> None:
    ids = await put(visit, "back", *(f"Message {n}:" for n in range(900)))
    await visit.client.post(f"{SESSIONS}/back/rewind", json={"to": ids[100]})
    await visit.sign_in("#/sessions/back")
    await expect(bubble(visit, "Message 99:")).to_be_in_viewport()


async def test_words_are_found_in_what_is_loaded_and_before(visit: Console) -> None:
    said = [f"Message {n}" for n in range(700)]
    said[30] = "The NEEDLE of old"
    said[690] = "A needle"
    await put(visit, "find", *said)
    await visit.sign_in("#/sessions/find")
    await expect(bubble(visit, "Message 699")).to_be_in_viewport()
    await visit.page.keyboard.press("/")
    await visit.page.keyboard.type("needle")
    await expect(bubble(visit, "A needle")).to_be_in_viewport()
    await expect(visit.page.locator(".find-hits")).to_have_text("1/1")
    await visit.page.get_by_role("button", name="Search earlier messages").click()
    await expect(bubble(visit, "The NEEDLE of old")).to_be_in_viewport()
    await expect(visit.page.locator(".find-hits")).to_have_text("1/2")
    await visit.page.get_by_role("button", name="Next hit").click()
    await expect(bubble(visit, "A needle")).to_be_in_viewport()
    await visit.shot("talk-find")


async def test_a_link_leads_to_the_message_even_on_another_branch(visit: Console) -> None:
    ids = await put(visit, "linked", *[f"Message {n}\n{'more ' * 80}" for n in range(60)])
    await visit.client.post(f"{SESSIONS}/linked/rewind", json={"to": ids[30]})
    await visit.sign_in(f"#/sessions/linked/messages/{ids[45]}")
    await expect(bubble(visit, "Message 45")).to_be_in_viewport()
    await expect(bubble(visit, "Message 45")).to_contain_text("Superseded")


async def test_the_conversation_is_read_by_keyboard(visit: Console) -> None:
    await put(visit, "keys", *[f"Message {n}" for n in range(6)])
    await visit.sign_in("#/sessions/keys")
    await expect(bubble(visit, "Message 5")).to_be_visible()
    for key in ("j", "j", "k", "j"):
        await visit.page.keyboard.press(key)
    await expect(bubbles(visit).nth(1)).to_be_focused()
    await visit.page.keyboard.press("Enter")
    await expect(visit.page).to_have_url(
        f"{visit.address}#/sessions/keys/exchanges/{await exchange(visit)}"
    )
    await visit.page.keyboard.press("Escape")
    await expect(visit.page).to_have_url(f"{visit.address}#/sessions")


async def exchange(console: Console) -> str:
    answer = await console.client.get(f"{SESSIONS}/keys/exchanges")
    return str(answer.json()["data"][0]["id"])


async def test_an_unknown_session_is_said_to_be_none(visit: Console) -> None:
    await visit.sign_in("#/sessions/none")
    await expect(visit.page.get_by_role("heading", name="There is no such session")).to_be_visible()
