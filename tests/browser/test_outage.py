"""What is shown while the proxy does not answer, or refuses; and once it answers again."""

from __future__ import annotations

import asyncio

import pytest

from tests.browser.memories import choose
from tests.support.browser.browsing import ADMIN, Console, Look, Route, expect
from tests.support.talk.filling import fill

pytestmark = pytest.mark.one_back_end

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


async def test_what_is_asked_once_is_asked_again_until_there_is_an_answer(
    visit: Console,
) -> None:
    for text in ("First question", "Second question"):
        await visit.chat("talk", text, user="kim")
    await visit.page.route("**/sessions/talk/exchanges?limit=50*", refuse, times=2)
    await visit.sign_in("#/sessions/talk")
    await visit.page.get_by_role("tab", name="Session").click()
    await expect(visit.page.locator(".charts")).to_be_visible()


async def test_older_messages_that_could_not_be_fetched_are_asked_for_again(visit: Console) -> None:
    await visit.seed("long", *(f"Line {n}" for n in range(450)))
    await visit.sign_in("#/sessions/long")
    await expect(visit.page.get_by_text("Line 449", exact=True)).to_be_in_viewport()
    await visit.page.route("**/messages?*after=0&*", refuse, times=1)
    await visit.page.locator(".conversation").evaluate("list => list.scrollTo(0, 0)")
    await expect(visit.page.locator("[aria-setsize='450']").first).to_be_attached()


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


@pytest.mark.parametrize("many", [120, pytest.param(1100, marks=pytest.mark.release)])
async def test_nothing_is_missing_of_what_came_while_nobody_could_look(
    visit: Console, many: int
) -> None:
    """As after an import, or a night with the lid closed; a few more than are asked for at once,
    and more than are worth to be caught up with."""
    page = visit.page
    await fill(visit.client, 5)
    await visit.sign_in()
    listed = page.locator(".head .tag")
    await expect(listed).to_have_text("5")
    await page.route("**/memory/v1/sessions?*", refuse)
    await expect(page.get_by_text(STALE)).to_be_visible()
    await fill(visit.client, many, "later", 1_770_000_000)
    await page.unroute("**/memory/v1/sessions?*", refuse)
    await expect(listed).to_have_text(f"{many + 5:,}")


HI = b'[{"role": "user", "content": "Hi"}]'


@pytest.mark.parametrize(
    ("file", "how", "told"),
    [
        (HI, "Import", "Imported."),
        (HI, "Only count", "Sessions: 1, messages: 1, memories: 0."),
        (b"{}", "Import", "format"),
    ],
    ids=["done", "counted", "refused"],
)
async def test_an_import_whose_dialog_was_closed_tells_how_it_went(
    visit: Console, file: bytes, how: str, told: str
) -> None:
    page = visit.page
    closed = asyncio.Event()

    async def hold(route: Route) -> None:
        await closed.wait()
        await route.continue_()

    await page.route("**/memory/v1/import?*", hold)
    await visit.sign_in()
    await page.get_by_role("button", name="Import").click()
    brought = {"name": "chat.json", "mimeType": "application/json", "buffer": file}
    await page.get_by_label("Choose a file").set_input_files(brought)  # type: ignore[arg-type]
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Session id").fill("brought-along")
    await dialog.get_by_label("What to do").select_option(how)
    await dialog.get_by_role("button", name="Import").click()
    await dialog.locator("footer").get_by_role("button", name="Close").click()
    await expect(dialog).to_have_count(0)
    closed.set()
    await expect(page.locator(".toast")).to_contain_text(told)


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


async def test_while_it_loads_the_inspector_does_not_say_that_there_is_nothing(
    visit: Console,
) -> None:
    await visit.chat("talk", "First question", user="kim")
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        waiting.set()
        await go_on.wait()
        await route.continue_()

    await visit.page.route("**/sessions/talk/exchanges?*", hold)
    await visit.sign_in("#/sessions/talk")
    await waiting.wait()
    await expect(visit.page.locator(".conversation .message")).to_have_count(2)
    panel = visit.page.locator(".talk-side [role=tabpanel]")
    await expect(panel.get_by_text("Loading…")).to_be_visible()
    await expect(panel.get_by_text("No exchanges yet")).to_have_count(0)
    go_on.set()
    await expect(panel.locator(".why")).to_be_visible()


async def test_that_the_proxy_did_not_answer_is_said_until_it_does(visit: Console) -> None:
    await visit.seed("talk", "Hello", user="kim")
    await visit.client.post("/memory/v1/users/kim/memories", json={"text": "Lives in Kiel"})
    await visit.sign_in("#/users/kim")
    page = visit.page
    await page.route("**/memory/v1/**", lambda route: route.abort())
    await choose(visit, "Lives in Kiel", "Quarantine")
    toast = page.locator(".toast").filter(has_text="The proxy did not answer.")
    await expect(toast).to_be_visible()
    await page.unroute_all(behavior="wait")
    await visit.go("#/users")
    await expect(page.locator(".users .virtual-item")).to_have_count(1)
    await expect(toast).to_have_count(0)
    visit.complaints[:] = [said for said in visit.complaints if "Failed to load" not in said]


BUSY = {"error": {"message": "Try again.", "type": "server_error", "code": "memory_unavailable"}}


async def test_signing_in_waits_for_a_busy_proxy(visit: Console) -> None:
    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, json=BUSY)

    await visit.open()
    await visit.page.locator("input[name=key]").wait_for()
    await visit.page.route("**/memory/v1/whoami*", refuse, times=2)
    await visit.page.route("**/memory/v1/tenants?*", refuse, times=2)
    await visit.sign_in(key=ADMIN)
    await expect(visit.page.get_by_label("Tenant")).to_be_visible()
    visit.complaints[:] = [said for said in visit.complaints if "503" not in said]


async def test_a_proxy_that_stays_busy_is_not_asked_for_ever(visit: Console) -> None:
    asked: list[str] = []

    async def refuse(route: Route) -> None:
        asked.append(route.request.url)
        await route.fulfill(status=503, json=BUSY)

    await visit.open()
    await visit.page.locator("input[name=key]").wait_for()
    await visit.page.route("**/memory/v1/whoami*", refuse)
    await visit.page.get_by_label("API key").fill(visit.key)
    await visit.page.keyboard.press("Enter")
    await expect(visit.page.locator("#signin-problem")).to_have_text("Try again.")
    assert len(asked) == 5
    visit.complaints[:] = [said for said in visit.complaints if "503" not in said]
