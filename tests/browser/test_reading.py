"""What was said can be read: nothing of it is cut off or torn apart."""

from __future__ import annotations

import re

import pytest

from tests.browser.test_conversation import answers, bubble, bubbles, chat, put
from tests.support.browser.browsing import DESKTOP, PHONE, Console, expect

pytestmark = pytest.mark.one_back_end

CODE = f"Do it like this, in a shell.\n```bash\n{'curl --header x ' * 20}\n```\nThen it is done."

CUT = """list => [...list.querySelectorAll(".bubble *")]
  .filter((one) => getComputedStyle(one).overflowX !== "auto")
  .filter((one) => !one.closest("pre") && one.scrollWidth > one.clientWidth + 1 && one.clientWidth)
  .map((one) => one.outerHTML.slice(0, 80))"""
"""What is wider than it is shown, and cannot be scrolled."""


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_long_line_of_code_scrolls_and_the_words_around_it_wrap(
    visit: Console, size: tuple[int, int]
) -> None:
    width, height = size
    await visit.page.set_viewport_size({"width": width, "height": height})
    refused = {"role": "assistant", "content": None, "refusal": CODE.replace("done", "refused")}
    said = [{"role": "user", "content": "How?"}, {"role": "assistant", "content": CODE}]
    question = {"role": "user", "content": CODE.replace("done", "no")}
    await put(visit, "code", *said, question, refused)
    await visit.sign_in("#/sessions/code")
    await expect(bubble(visit, "Then it is refused.")).to_be_in_viewport()
    message = bubble(visit, "Then it is done.")
    await message.scroll_into_view_if_needed()
    await expect(message.locator("p").last).to_be_in_viewport(ratio=1)
    wide = "pre => [pre.scrollWidth > pre.clientWidth, getComputedStyle(pre).overflowX]"
    assert await message.locator("pre").evaluate(wide) == [True, "auto"]
    assert await visit.page.locator(".conversation").evaluate(CUT) == []
    await visit.shot(f"reading-code-{width}")


PICTURES = "Team: 👩\u200d💻 👨\u200d👩\u200d👧 👩🏽\u200d🚀 🏳️\u200d🌈 ❤️\u200d🔥"
JOINED = (
    "क्\u200dष",  # Devanagari
    "র\u200d্য",  # Bengali
    "க்\u200cஷ",  # Tamil
    "ಕ್\u200dಷ",  # Kannada
    "ක්\u200dෂ",  # Sinhala
    "ന്\u200d",  # Malayalam
    "می\u200cخواهم",  # Persian
)


async def test_pictures_and_words_of_all_scripts_that_join_are_shown_as_one(
    visit: Console,
) -> None:
    await visit.seed("joined", PICTURES, " ".join(JOINED))
    await visit.sign_in("#/sessions/joined")
    said = visit.page.locator(".conversation .bubble")
    await expect(said.first).to_have_text(PICTURES)
    await expect(said.last).to_have_text(" ".join(JOINED))
    await visit.shot("reading-joined")


async def test_a_joiner_that_joins_nothing_is_named(visit: Console) -> None:
    await visit.seed("hidden", "pass\u200dword \u200c", "a 👩\u200d b, c\u200d\u200d")
    await visit.sign_in("#/sessions/hidden")
    said = visit.page.locator(".conversation .bubble")
    await expect(said.first).to_contain_text("pass⟨U+200D⟩word ⟨U+200C⟩")
    await expect(said.last).to_contain_text("c⟨U+200D⟩⟨U+200D⟩")


async def test_what_the_client_sent_again_is_marked_as_seen_and_the_stripes_are_explained(
    visit: Console,
) -> None:
    said: list[str] = []
    for number in range(4):
        said.append(f"Question {number}")
        await chat(visit, "resent", *said)
        said.append((await answers(visit, "resent"))[-1])
    await visit.sign_in("#/sessions/resent")
    legend = visit.page.locator(".legend")
    await expect(legend).to_contain_text("Sent again by the client")
    await expect(legend).to_contain_text("This exchange")
    await expect(legend).not_to_contain_text("Not in it")
    for number in range(3):
        question = bubble(visit, f"Question {number}").first
        await expect(question).to_have_class(re.compile("sight-resent"))
    await expect(bubbles(visit).locator(".band").first).to_have_attribute(
        "title", "Seen: sent again by the client itself"
    )
    await visit.shot("reading-resent")
    assert await visit.violations() == []
    await visit.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    await expect(legend).to_be_visible()
    await visit.shot("reading-resent-phone")


async def test_of_a_client_that_sends_only_what_is_new_the_legend_says_from_where_it_is(
    visit: Console,
) -> None:
    await visit.chat("new", "One?")
    await visit.chat("new", "Two?")
    await visit.sign_in("#/sessions/new")
    await expect(visit.page.locator(".legend")).to_have_text(
        re.compile(r"In the prompt of this answer:\s*From history\s*This exchange\s*")
    )
