"""What a model has written into memory: it is forgotten, or made anew, with nothing left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from proxy.background.completion import Assignment
from tests.browser.conftest import Proxies
from tests.browser.keys import asked, back, leave, pick, push
from tests.support.browser.browsing import Console, Locator, expect
from tests.support.browser.inspecting import ask, confirm, inspect
from tests.support.learning.harness import LIVES, ScriptedModel, states
from tests.support.upstream.answers import Script, chat_completion, json_answer
from tests.support.upstream.connection import Request
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_back_end("redis")

WRITER = "writer"
LIKES = states(r"I like (\w+)", "The user likes {}.")
BOSS = states(r"My (?:new )?boss is (\w+)", "The user's boss is {}.")
CONFUSED = states(r"I play (\w+)", "The user plays {}.", subject="likes")
SUMMED_UP = {
    "window": "message_window",
    "max_messages": 2,
    "facts": {"enabled": False},
    "summary": {"enabled": True, "model": WRITER},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def proxies(
    tmp_path_factory: pytest.TempPathFactory, up: ScriptedUpstream
) -> AsyncIterator[Proxies]:
    """Which learn facts, and sum up with a profile for that."""
    facts = {"enabled": True, "model": WRITER, "after_turns": 1}
    more = {"memory__facts": facts, "profiles": {"summed-up": SUMMED_UP}}
    async with AsyncExitStack() as opened:
        yield Proxies(tmp_path_factory.mktemp("learned"), up, opened, **more)


class Writer:
    """A model that learns by plain rules, and sums up as it is told to."""

    def __init__(self) -> None:
        self._learns = ScriptedModel([LIVES, LIKES, BOSS, CONFUSED])
        self.summary = "They asked."

    def __call__(self, request: Request) -> Script:
        return json_answer(chat_completion(self._words(request)))

    def _words(self, request: Request) -> str:
        text = str(request.messages[0]["content"])
        if request.json["model"] != WRITER:
            return "Noted."
        if "running summary" in text:
            return self.summary
        return self._learns._by_rules(Assignment("t", "facts", text))


@pytest.fixture(autouse=True)
def writer(up: ScriptedUpstream) -> Iterator[Writer]:
    one = Writer()
    up.always(one)
    yield one
    up.always(None)


async def facts(console: Console) -> list[str]:
    found = await console.client.get("/memory/v1/users/kim/memories?kind=fact")
    return sorted(each["text"] for each in found.json()["data"])


async def learned_from(console: Console) -> None:
    """Two exchanges of a session, of each of which something was learned."""
    for text in ("I live in Kiel.", "I like tea."):
        await ask(console, text)

    async def learned() -> bool:
        return await facts(console) == ["The user likes tea.", "The user lives in Kiel."]

    await eventually(learned)


def memory(console: Console, text: str) -> Locator:
    return console.page.get_by_role("article").filter(has_text=text)


def bubble(console: Console, text: str) -> Locator:
    return console.page.locator(".conversation .message").filter(has_text=text)


def menu_of(console: Console, text: str) -> Locator:
    return bubble(console, text).get_by_role("button", name="What to do with this message")


async def forget(console: Console, count: str, *texts: str) -> None:
    """Through the dialog, which tells first what goes, and then what has gone."""
    dialog = console.page.get_by_role("dialog", name="Forget what was learned?")
    await expect(dialog).to_contain_text(f"{count} learned from")
    await expect(dialog.locator(".learned li")).to_have_count(len(texts))
    for text in texts:
        await expect(dialog.locator("li").filter(has_text=text)).to_contain_text("goes")
    assert len(await facts(console)) == 2
    await dialog.get_by_role("button", name=f"Forget {len(texts)}").click()
    done = console.page.get_by_role("dialog", name="Forgotten")
    await expect(done).to_contain_text(f"{count} changed or removed:")
    await done.locator("footer").get_by_role("button", name="Close").click()


async def test_what_was_learned_from_an_exchange_is_forgotten(visit: Console) -> None:
    await learned_from(visit)
    await visit.sign_in("#/sessions/talk")
    await bubble(visit, "I live in Kiel.").hover()
    await menu_of(visit, "I live in Kiel.").click()
    await visit.page.get_by_role("menuitem", name="Forget what was learned").click()
    await forget(visit, "1 memory was", "The user lives in Kiel.")
    await visit.go("#/users/kim")
    await expect(memory(visit, "likes tea")).to_be_visible()
    await expect(memory(visit, "lives in Kiel")).to_have_count(0)


async def test_what_was_learned_from_a_session_is_forgotten(visit: Console) -> None:
    await learned_from(visit)
    await visit.sign_in("#/sessions/talk")
    await visit.page.get_by_role("button", name="What to do with this session").click()
    await visit.page.get_by_role("menuitem", name="Forget what was learned").click()
    await forget(visit, "2 memories were", "The user lives in Kiel.", "The user likes tea.")
    await visit.go("#/users/kim")
    await expect(visit.page.get_by_role("tabpanel").locator(".empty")).to_be_visible()
    assert await facts(visit) == []
    assert len((await visit.client.get("/memory/v1/sessions/talk/messages")).json()["data"]) == 4


@pytest.mark.parametrize("tab", ["Why", "Session"])
async def test_the_inspector_forgets_what_was_learned(visit: Console, tab: str) -> None:
    await learned_from(visit)
    panel = await inspect(visit, tab)
    await panel.get_by_role("button", name="Forget what was learned").click()
    if tab == "Why":
        await forget(visit, "1 memory was", "The user likes tea.")
    else:
        await forget(visit, "2 memories were", "The user lives in Kiel.", "The user likes tea.")
    assert await facts(visit) == ["The user lives in Kiel."] * (tab == "Why")


async def test_a_chat_meanwhile_does_not_change_of_which_exchange_it_is_forgotten(
    visit: Console,
) -> None:
    await learned_from(visit)
    panel = await inspect(visit)
    await panel.get_by_role("button", name="Forget what was learned").click()
    dialog = visit.page.get_by_role("dialog")
    await expect(dialog.locator(".learned li")).to_have_count(1)
    newest = await ask(visit, "How are you?")
    await expect(panel).to_contain_text(newest)
    await forget(visit, "1 memory was", "The user likes tea.")
    assert await facts(visit) == ["The user lives in Kiel."]


async def test_what_was_learned_is_forgotten_by_keys_alone(visit: Console) -> None:
    await learned_from(visit)
    await visit.sign_in("#/sessions/talk")
    page = visit.page
    of_session = page.get_by_role("button", name="What to do with this session")
    for menu, left in ((menu_of(visit, "I live in Kiel."), 1), (of_session, 0)):
        await pick(page, menu, "Forget what was learned")
        await leave(page, menu)
        await pick(page, menu, "Forget what was learned")
        dialog = await asked(page)
        await push(page, dialog.get_by_role("button", name="Forget 1"))
        await expect(page.get_by_role("heading", name="Forgotten")).to_be_visible()
        await asked(page)
        await push(page, dialog.locator("footer").get_by_role("button", name="Close"))
        await back(page, menu)
        assert len(await facts(visit)) == left


async def test_what_speaks_against_a_fact_is_told_with_it(visit: Console) -> None:
    """What was said later, and what a model would have in its place though nobody has said so."""
    for text in ("I like tea.", "My boss is Marcus.", "My new boss is Priya.", "I play chess."):
        await ask(visit, text)

    async def learned() -> bool:
        return "The user plays chess." in await facts(visit)

    await eventually(learned)
    found = (await visit.client.get("/memory/v1/users/kim/memories?kind=fact")).json()["data"]
    (chess,) = (each["id"] for each in found if "chess" in each["text"])
    await visit.sign_in("#/users/kim")
    await expect(memory(visit, "boss is Marcus")).to_contain_text("Said later: Priya")
    await expect(memory(visit, "boss is Priya")).not_to_contain_text("Said later")
    await expect(memory(visit, "likes tea")).to_contain_text(f"Doubted by {chess}")


async def summaries(console: Console) -> list[str]:
    """All versions there are."""
    found = await console.client.get("/memory/v1/sessions/talk/summaries")
    return [each["text"] for each in found.json()["data"]]


async def summed_up(console: Console) -> None:
    """A session of which a model has made a summary."""
    for number in range(3):
        await ask(console, f"Question {number}", **{"x-memory-profile": "summed-up"})

    async def made() -> bool:
        return bool(await summaries(console))

    await eventually(made)


async def made_anew(console: Console, shown: Locator) -> None:
    """After a question; what there was before stays in the list of versions."""
    await confirm(console, "Make anew")
    await expect(console.page.get_by_text("The summary is being made anew.")).to_be_visible()
    await expect(shown).to_contain_text("They asked three things.")
    newest, *before = await summaries(console)
    assert newest == "They asked three things." and "They asked." in before


async def test_a_summary_is_made_anew_in_the_conversation(visit: Console, writer: Writer) -> None:
    await summed_up(visit)
    await visit.sign_in("#/sessions/talk")
    card = visit.page.locator(".summary-card")
    await expect(card).to_contain_text("They asked.")
    writer.summary = "They asked three things."
    await card.get_by_role("button", name="What to do with the summary").click()
    await visit.page.get_by_role("menuitem", name="Make anew").click()
    await made_anew(visit, card)


async def test_a_summary_is_made_anew_in_the_inspector(visit: Console, writer: Writer) -> None:
    await summed_up(visit)
    panel = await inspect(visit, "Summary")
    shown = panel.locator(".of-the-summary")
    await expect(shown).to_contain_text("They asked.")
    writer.summary = "They asked three things."
    await panel.get_by_role("button", name="Make anew").click()
    await made_anew(visit, shown)
