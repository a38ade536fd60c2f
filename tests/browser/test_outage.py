"""What is shown while the proxy does not answer, or refuses; and once it answers again."""

from __future__ import annotations

import pytest

from tests.support.browsing import Console, Look, Route, expect

STALE = "What you see may be out of date."
REFUSED = {"error": {"message": "Too many at once.", "type": "rate_limit", "code": "busy"}}


@pytest.fixture
def look() -> Look:
    return Look(own=True)


async def refuse(route: Route) -> None:
    await route.fulfill(status=429, json=REFUSED)


@pytest.mark.parametrize("path", ["messages", "exchanges"])
async def test_what_could_not_be_fetched_once_is_asked_for_again(visit: Console, path: str) -> None:
    await visit.chat("talk", "First question", user="kim")
    await visit.sign_in("#/sessions/talk")
    messages = visit.page.locator(".conversation .message")
    await expect(messages).to_have_count(2)
    await expect(visit.page.locator(".why")).to_be_visible()
    await visit.page.route(f"**/sessions/talk/{path}?*", refuse, times=1)
    second = await visit.chat("talk", "Second question", user="kim")
    await expect(messages).to_have_count(4)
    exchange = second.headers["x-memory-exchange-id"]
    await expect(visit.page.locator(".why")).to_contain_text(exchange)
    await expect(visit.page.get_by_text(STALE)).to_have_count(0)


@pytest.mark.one_back_end
async def test_older_messages_that_could_not_be_fetched_are_asked_for_again(visit: Console) -> None:
    await visit.seed("long", *(f"Line {n}" for n in range(450)))
    await visit.sign_in("#/sessions/long")
    await expect(visit.page.get_by_text("Line 449", exact=True)).to_be_in_viewport()
    await visit.page.route("**/messages?*after=0&*", refuse, times=1)
    await visit.page.locator(".conversation").evaluate("list => list.scrollTo(0, 0)")
    await expect(visit.page.locator("[aria-setsize='450']").first).to_be_attached()


@pytest.mark.one_back_end
async def test_it_is_said_that_what_is_shown_may_be_old(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    await visit.client.post("/memory/v1/users/kim/memories", json={"text": "Lives in Kiel"})
    await visit.sign_in("#/users/kim")
    page = visit.page
    for tab, there in (("Memories", ".memory"), ("Profile", ".profile"), ("Sessions", ".theirs")):
        await page.get_by_role("tab", name=tab).click()
        await expect(page.locator(there)).to_be_visible()
        await page.route("**/memory/v1/**", refuse)
        await expect(page.get_by_role("tabpanel").get_by_text(STALE)).to_be_visible()
        await expect(page.get_by_text(STALE).filter(visible=True)).to_have_count(1)
        await expect(page.locator(there)).to_be_visible()
        await visit.shot(f"user-stale-{tab.lower()}")
        await page.unroute("**/memory/v1/**", refuse)
        await expect(page.get_by_text(STALE)).to_have_count(0)
    await visit.go("#/users")
    await expect(page.locator(".users .virtual-item")).to_have_count(1)
    people = page.locator(".users .virtual")
    bottom = "list => list.getBoundingClientRect().bottom"
    before = await people.evaluate(bottom)
    await page.route("**/memory/v1/**", refuse)
    await expect(page.get_by_text(STALE)).to_be_visible()
    assert await people.evaluate(bottom) == before
    await visit.shot("users-stale")


@pytest.mark.one_back_end
class TestInChinese:
    @pytest.fixture
    def look(self) -> Look:
        return Look(own=True, locale="zh-CN")

    async def test_silence_is_told_in_the_readers_language(self, visit: Console) -> None:
        await visit.seed("talk", "Hello")
        await visit.sign_in()
        await expect(visit.page.locator(".sessions .virtual-item")).to_have_count(1)
        await visit.page.route("**/memory/v1/**", lambda route: route.abort())
        await expect(visit.page.locator(".live-note")).to_contain_text("代理没有应答。")
        await visit.page.unroute_all(behavior="wait")
        visit.complaints[:] = [said for said in visit.complaints if "Failed to load" not in said]
