"""Ten thousand sessions, and a conversation of five thousand messages: little of it is fetched and
drawn at a time.

What is bounded is the page's work, which is the same on any machine; what was counted is printed.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from proxy.assembly.resources import store_of
from proxy.memory.model import SessionKey
from proxy.tenancy import digest_of
from tests.support.browser.browsing import (
    Browser,
    Console,
    Locator,
    Look,
    console,
    expect,
    own_page,
)
from tests.support.browser.measuring import Scrolled, elements, is_drawn, scrolled, unanswered
from tests.support.processes.running import Running
from tests.support.store.populating import LONG, NEEDLE, long_conversation, populate
from tests.support.upstream.scripted import ScriptedUpstream

pytestmark = [pytest.mark.one_back_end("redis"), pytest.mark.release]

SESSIONS = 10_000
MESSAGES = 5000

LATER_PAGES = "**/memory/v1/sessions?*after=*"
MAX_BLOCKS = 4
"""Of 25 in which the long conversation is fetched."""

MAX_DRAWN = 15
"""Items a step; all that are in the page at a time are twice as many."""

MAX_NODES = 4000


class Crowds:
    """A tenant with much memory on each proxy, and one page of somebody who looks at it in all
    tests: to fill the one and to load what the other shows takes seconds."""

    def __init__(self, browser: Browser, up: ScriptedUpstream, opened: AsyncExitStack) -> None:
        self._browser, self._up, self._opened = browser, up, opened
        self._keys: dict[str, str] = {}
        self._consoles: dict[str, Console] = {}

    async def on(self, proxy: Running) -> Console:
        one = self._consoles.get(proxy.url)
        if one is None or not await is_drawn(one.page):
            page = await self._opened.enter_async_context(own_page(self._browser, Look()))
            opened = console(page, proxy, self._up, await self._key_at(proxy))
            one = self._consoles[proxy.url] = await self._opened.enter_async_context(opened)
        return one

    async def _key_at(self, proxy: Running) -> str:
        if proxy.url not in self._keys:
            key = f"sk-{uuid.uuid4().hex}"
            await _fill(proxy, digest_of(key.encode()))
            self._keys[proxy.url] = key
        return self._keys[proxy.url]


async def _fill(proxy: Running, tenant: str) -> None:
    store = store_of(proxy.settings)
    await store.open()
    try:
        await populate(store, tenant, SESSIONS)
        assert await store.restore(SessionKey(tenant, LONG), long_conversation(MESSAGES))
    finally:
        await store.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowds(browser: Browser, up: ScriptedUpstream) -> AsyncIterator[Crowds]:
    async with AsyncExitStack() as opened:
        yield Crowds(browser, up, opened)


@pytest_asyncio.fixture(loop_scope="session")
async def crowd(proxy: Running, crowds: Crowds) -> AsyncIterator[Console]:
    """The console of somebody with much memory, wherever the last test has left it."""
    one = await crowds.on(proxy)
    yield one
    assert one.complaints == []


async def at_sessions(crowd: Console) -> None:
    """All of them, from the newest; signed in, if nobody is."""
    if await crowd.page.locator(".shell").count():
        await crowd.go("#/sessions")
    else:
        await crowd.sign_in()
    search = crowd.page.get_by_label("Search id, title or user")
    if await search.input_value():
        await search.fill("")
    await search.blur()  # keys are for the list
    await crowd.page.locator(".sessions .virtual").evaluate("list => { list.scrollTop = 0 }")
    await expect(rows(crowd).first).to_be_visible()


async def at_the_long_one(crowd: Console) -> None:
    """Opened anew, at its end."""
    await at_sessions(crowd)
    await crowd.go(f"#/sessions/{LONG}")
    await expect(bubble(crowd, await last_words(crowd))).to_be_in_viewport()


async def sign_in(crowd: Console, path: str) -> None:
    """On a page that is loaded anew."""
    await crowd.page.goto("about:blank")
    await crowd.sign_in(path)


def is_smooth(scroll: Scrolled) -> bool:
    drawn_anew = scroll.drawn > MAX_DRAWN * scroll.steps
    return scroll.blank == 0 and scroll.nodes < MAX_NODES and not drawn_anew


def rows(crowd: Console) -> Locator:
    return crowd.page.locator(".sessions .virtual-item")


def bubble(crowd: Console, text: str) -> Locator:
    return crowd.page.locator(".conversation .message").filter(has_text=text)


async def last_words(crowd: Console) -> str:
    """How the newest answer of the long conversation begins."""
    page = await crowd.client.get(f"/memory/v1/sessions/{LONG}/messages?after={MESSAGES - 3}")
    content: str = page.json()["data"][-1]["message"]["content"]
    return content.partition(":")[0]


async def test_the_first_of_ten_thousand_sessions_wait_for_no_others(crowd: Console) -> None:
    async with unanswered(crowd.page, LATER_PAGES):
        await sign_in(crowd, "#/sessions")
        await expect(rows(crowd).first).to_be_visible()
        assert await elements(crowd.page) < MAX_NODES


async def test_a_chat_comes_to_the_top_of_ten_thousand(crowd: Console) -> None:
    await at_sessions(crowd)
    await crowd.chat("chat-00006", "Out of the deep")
    await expect(rows(crowd).first).to_contain_text("chat-00006")


async def test_ten_thousand_sessions_scroll_smoothly_to_the_last(
    crowd: Console, back_end: str
) -> None:
    await at_sessions(crowd)
    count = crowd.page.locator(".head .tag")
    await expect(count).to_have_text("10,001")
    scroll = await scrolled(crowd.page, ".sessions .virtual", ".row", 400)
    print(f"{back_end}: {scroll}")
    assert is_smooth(scroll)
    await crowd.page.keyboard.press("j")
    await crowd.page.keyboard.press("End")
    last = crowd.page.locator(f".virtual-item[aria-posinset='{SESSIONS + 1}']")
    await expect(last.get_by_role("link")).to_be_focused()
    await expect(last).to_contain_text("chat-00000")


async def test_one_of_ten_thousand_sessions_is_found(crowd: Console) -> None:
    await at_sessions(crowd)
    await crowd.page.get_by_label("Search id, title or user").fill("chat-00042")
    await expect(rows(crowd)).to_have_count(1)
    await expect(rows(crowd)).to_contain_text("(42)")


async def test_of_a_long_conversation_only_the_end_is_fetched_and_drawn(crowd: Console) -> None:
    before = len(crowd.asked)
    await sign_in(crowd, f"#/sessions/{LONG}")
    await expect(bubble(crowd, await last_words(crowd))).to_be_in_viewport()
    blocks = {url for url in crowd.asked[before:] if f"/sessions/{LONG}/messages?" in url}
    print(f"{len(blocks)} blocks")
    assert 0 < len(blocks) <= MAX_BLOCKS
    assert await elements(crowd.page) < MAX_NODES


async def test_a_long_conversation_stays_at_its_end_when_it_is_explained_late(
    crowd: Console,
) -> None:
    async with unanswered(crowd.page, f"**/sessions/{LONG}/exchanges*"):
        await at_the_long_one(crowd)
        await expect(crowd.page.locator(".legend")).to_have_count(0)
    await expect(crowd.page.locator(".legend")).to_be_visible()
    await expect(crowd.page.locator(".conversation [role=listitem]").last).to_be_in_viewport(
        ratio=1
    )


async def test_a_long_conversation_scrolls_smoothly(crowd: Console, back_end: str) -> None:
    await at_the_long_one(crowd)
    scroll = await scrolled(crowd.page, ".conversation", ".virtual-item, .virtual-item *", -300)
    print(f"{back_end}: {scroll}")
    assert is_smooth(scroll)


async def test_one_goes_far_back_in_a_long_conversation(crowd: Console) -> None:
    page = await crowd.client.get(f"/memory/v1/sessions/{LONG}/messages?after=1500&limit=9")
    message = next(one for one in page.json()["data"] if one["message"]["role"] == "user")
    await at_sessions(crowd)
    await crowd.go(f"#/sessions/{LONG}/messages/{message['id']}")
    place = crowd.page.locator(f"[data-id='{message['id']}']")
    await expect(place).to_be_in_viewport()
    assert await elements(crowd.page) < MAX_NODES
    await crowd.page.get_by_role("button", name="To the end").click()
    await expect(bubble(crowd, await last_words(crowd))).to_be_in_viewport()


async def test_words_of_long_ago_are_found(crowd: Console) -> None:
    await at_the_long_one(crowd)
    await crowd.page.get_by_label("Find in conversation").fill(NEEDLE)
    await crowd.page.get_by_role("button", name="Search earlier messages").click()
    await expect(bubble(crowd, NEEDLE).first).to_be_in_viewport()


async def test_a_long_conversation_goes_on_as_one_looks(crowd: Console) -> None:
    await at_the_long_one(crowd)
    await crowd.chat(LONG, "Is anybody listening?", user="user-1")
    await expect(bubble(crowd, "Is anybody listening?").first).to_be_in_viewport()
