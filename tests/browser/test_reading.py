"""What was said can be read: nothing of it is cut off or torn apart."""

from __future__ import annotations

import pytest

from tests.browser.test_conversation import bubble, put
from tests.support.browsing import DESKTOP, PHONE, Console, expect

CODE = f"Do it like this, in a shell.\n```bash\n{'curl --header x ' * 20}\n```\nThen it is done."

CUT = """list => [...list.querySelectorAll(".bubble *")]
  .filter((one) => getComputedStyle(one).overflowX !== "auto")
  .filter((one) => !one.closest("pre") && one.scrollWidth > one.clientWidth + 1 && one.clientWidth)
  .map((one) => one.outerHTML.slice(0, 80))"""
"""What is wider than it is shown, and cannot be scrolled."""


@pytest.mark.one_back_end
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_long_line_of_code_scrolls_and_the_words_around_it_wrap(
    visit: Console, size: tuple[int, int]
) -> None:
    width, height = size
    await visit.page.set_viewport_size({"width": width, "height": height})
    refused = {"role": "assistant", "content": None, "refusal": CODE.replace("done", "refused")}
    said = [{"role": "user", "content": "How?"}, {"role": "assistant", "content": CODE}]
    await put(visit, "code", *said, {"role": "user", "content": CODE.replace("done", "no")}, refused)
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


@pytest.mark.one_back_end
async def test_pictures_and_words_of_all_scripts_that_join_are_shown_as_one(
    visit: Console,
) -> None:
    await visit.seed("joined", PICTURES, " ".join(JOINED))
    await visit.sign_in("#/sessions/joined")
    said = visit.page.locator(".conversation .bubble")
    await expect(said.first).to_have_text(PICTURES)
    await expect(said.last).to_have_text(" ".join(JOINED))
    await visit.shot("reading-joined")


@pytest.mark.one_back_end
async def test_a_joiner_that_joins_nothing_is_named(visit: Console) -> None:
    await visit.seed("hidden", "pass\u200dword \u200c", "a 👩\u200d b, c\u200d\u200d")
    await visit.sign_in("#/sessions/hidden")
    said = visit.page.locator(".conversation .bubble")
    await expect(said.first).to_contain_text("pass⟨U+200D⟩word ⟨U+200C⟩")
    await expect(said.last).to_contain_text("c⟨U+200D⟩⟨U+200D⟩")
