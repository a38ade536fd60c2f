"""The conversation: what was said, what the model saw of it, and what can be done with it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.browsing import Console, Locator, expect

pytestmark = pytest.mark.one_back_end


def bubbles(console: Console) -> Locator:
    return console.page.locator(".conversation .message")


def bubble(console: Console, text: str) -> Locator:
    return bubbles(console).filter(has_text=text)


async def put(console: Console, session: str, *messages: dict[str, Any]) -> list[str]:
    """Import messages as they are; their ids."""
    path = f"/memory/v1/sessions/{session}/messages"
    answer = await console.client.post(path, json={"messages": messages})
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["data"]]


async def test_a_conversation_is_shown_and_opens_at_its_end(visit: Console) -> None:
    said = [f"Line {n}\nwith a second one" for n in range(120)]
    await visit.seed("long", *said, user="kim")
    await visit.sign_in("#/sessions/long")
    await expect(bubble(visit, "Line 119")).to_be_in_viewport()
    await visit.page.locator(".conversation").evaluate("list => list.scrollTo(0, 0)")
    await expect(bubbles(visit).first).to_contain_text("Line 0")
    await visit.shot("talk-first")


CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Lisbon", "days": 3}'},
        },
        {
            "id": "call_2",
            "type": "function",
            "function": {"name": "broken", "arguments": '{"city": "Lis'},
        },
    ],
}
RESULTS = (
    {"role": "tool", "tool_call_id": "call_1", "content": '{"degrees": 21}'},
    {"role": "tool", "tool_call_id": "call_2", "content": "no such city"},
)
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)


async def test_calls_are_folded_with_their_results_and_media_is_not_fetched(
    visit: Console,
) -> None:
    pictures = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
        {"type": "image_url", "image_url": {"url": "https://example.org/spy.png"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ]
    await put(
        visit,
        "tools",
        {"role": "user", "content": "How is the weather?"},
        CALLS,
        *RESULTS,
        {
            "role": "assistant",
            "content": "Fine.\n```python\nprint('sun')\n```\nhttps://example.org/x.",
        },
        {"role": "user", "content": pictures},
    )
    await visit.sign_in("#/sessions/tools")
    calling = bubble(visit, "weather").filter(has_text="Result").last
    await calling.get_by_role("button", name="weather").click()
    await expect(calling.locator(".json-string")).to_have_text("Lisbon")
    await calling.get_by_role("button", name="broken").click()
    await expect(calling).to_contain_text("This is not valid JSON; shown as it came.")
    await expect(calling.get_by_role("button", name="Result")).to_have_count(2)
    await expect(visit.page.locator("pre code")).to_have_text("print('sun')")
    link = visit.page.get_by_role("link", name="https://example.org/x")
    await expect(link).to_have_attribute("href", "https://example.org/x")
    await expect(visit.page.locator("img.thumbnail")).to_have_count(1)
    await expect(visit.page.locator(".chip").first).to_contain_text("https://example.org/spy.png")
    assert not [url for url in visit.asked if "example.org" in url]
    await visit.shot("talk-tools")
    assert await visit.violations() == []


async def test_a_chat_comes_in_live_and_whoever_reads_above_is_not_moved(visit: Console) -> None:
    await visit.seed("live", *[f"Line {n}\n{'more ' * 60}" for n in range(60)])
    await visit.sign_in("#/sessions/live")
    await expect(bubble(visit, "Line 59")).to_be_in_viewport()
    await visit.chat("live", "A question while one looks")
    await expect(bubble(visit, "reply").last).to_be_in_viewport()
    scroller = visit.page.locator(".conversation")
    await scroller.evaluate("list => list.scrollBy(0, -3000)")
    reading = await at_rest(visit)
    await visit.chat("live", "Another one")
    pill = visit.page.get_by_role("button", name="2 new messages")
    await expect(pill).to_be_visible()
    assert await visit.page.evaluate(MIDDLE) == reading
    await pill.click()
    await expect(bubble(visit, "Another one").last).to_be_in_viewport()


async def at_rest(console: Console) -> object:
    """Which message one reads, and where it stands, once all heights are measured."""
    before: object = None
    while (now := await console.page.evaluate(MIDDLE)) != before:
        before = now
        await console.page.evaluate("() => new Promise(done => setTimeout(done, 100))")
    return now


MIDDLE = """() => {
  const { top, height } = document.querySelector(".conversation").getBoundingClientRect();
  const one = [...document.querySelectorAll(".message")].find(
    (each) => each.getBoundingClientRect().top > top + height / 3);
  return [one.dataset.id, Math.round(one.getBoundingClientRect().top)];
}"""


async def chat(console: Console, session: str, *texts: str, **headers: str) -> None:
    """A request with these messages, user and assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    named = {"x-session-id": session, **{k.replace("_", "-"): v for k, v in headers.items()}}
    body = {"model": "scripted-1", "messages": messages}
    answer = await console.client.post("/v1/chat/completions", json=body, headers=named)
    assert answer.status_code == 200, answer.text


async def answers(console: Console, session: str) -> list[str]:
    found = await console.client.get(f"/memory/v1/sessions/{session}/messages?limit=1000")
    return [
        each["message"]["content"]
        for each in found.json()["data"]
        if each["message"]["role"] == "assistant"
    ]


async def test_what_was_said_another_way_is_a_branch_that_can_be_made_active(
    visit: Console,
) -> None:
    await chat(visit, "fork", "One")
    (first,) = await answers(visit, "fork")
    await chat(visit, "fork", "One", first, "Two")
    second = (await answers(visit, "fork"))[-1]
    await chat(visit, "fork", "One", first, "Two", second, "Three")
    await chat(visit, "fork", "One", first, "Two, edited")
    await chat(visit, "fork", "One", first, "Two, edited again")
    await visit.sign_in("#/sessions/fork")
    await expect(bubbles(visit)).to_have_count(4)
    switch = visit.page.get_by_role("group", name="Branches")
    await expect(switch).to_contain_text("3/3")
    await visit.page.get_by_role("button", name="Previous branch").click()
    await expect(switch).to_contain_text("2/3")
    await visit.page.get_by_role("button", name="Previous branch").click()
    await expect(bubbles(visit)).to_have_count(6)
    await expect(bubble(visit, "Three").first).to_be_visible()
    await visit.shot("talk-branches")
    await visit.page.get_by_role("button", name="Make this branch active").click()
    await (
        visit.page.get_by_role("dialog")
        .get_by_role("button", name="Make this branch active")
        .click()
    )
    await expect(visit.page.get_by_text("This branch is active now.")).to_be_visible()
    await expect(bubble(visit, "Superseded")).to_have_count(0)
    assert len(await answers(visit, "fork")) == 3


async def test_other_choices_of_an_answer_are_branches(visit: Console) -> None:
    body = {"model": "scripted-1", "n": 3, "messages": [{"role": "user", "content": "Choose"}]}
    headers = {"x-session-id": "choices"}
    await visit.client.post("/v1/chat/completions", json=body, headers=headers)
    await visit.sign_in("#/sessions/choices")
    switch = visit.page.get_by_role("group", name="Branches")
    await expect(switch).to_contain_text("1/3")
    await visit.page.get_by_role("button", name="Next branch").click()
    await expect(switch).to_contain_text("2/3")
    await expect(bubbles(visit)).to_have_count(2)


async def test_what_is_not_plainly_said_is_marked_or_folded(visit: Console) -> None:
    odd = {"role": "assistant", "content": None, "refusal": "I will not.", "reasoning": "Hm."}
    await put(visit, "odd", {"role": "user", "content": "Do it"}, odd)
    await visit.sign_in("#/sessions/odd")
    answer = bubbles(visit).last
    await expect(answer).to_contain_text("Refusal")
    await expect(answer).to_contain_text("I will not.")
    await expect(answer.get_by_text("Hm.")).to_have_count(0)
    await answer.get_by_role("button", name="Reasoning").click()
    await expect(answer.get_by_text("Hm.")).to_be_visible()


async def test_what_the_model_saw_is_drawn_onto_the_conversation(visit: Console) -> None:
    await visit.seed("seen", *[f"Number {n}: {'words ' * 9}" for n in range(8)], user="kim")
    await visit.client.patch(
        "/memory/v1/sessions/seen", json={"system": {"role": "system", "content": "Be kind."}}
    )
    await chat(visit, "seen", "What do you see?", X_Memory_Max_Tokens="60")
    await chat(visit, "seen", "And now?")
    await visit.sign_in("#/sessions/seen")
    await expect(visit.page.locator(".sight-seen.message")).to_have_count(10)
    await visit.page.keyboard.press("[")
    cut = visit.page.get_by_text("Cut here: the request asked for less memory")
    await expect(cut).to_be_visible()
    await expect(visit.page.locator(".sight-later.message")).to_have_count(2)
    assert await visit.page.locator(".sight-evicted.message").count() > 3
    assert await visit.page.locator(".sight-seen.message").count() > 0
    await visit.shot("talk-seen")
    assert await visit.violations() == []
