"""A walk through all screens of the console, with the tenant of ``showcase``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from tests.support.browser.browsing import Console, expect
from tests.support.browser.showcase import TRIP, USER

Step = Callable[[Console], Awaitable[None]]


async def tour(console: Console) -> AsyncIterator[str]:
    """The name of each screen, as it is seen; begins with nobody signed in."""
    await console.open()
    await console.page.locator("input[name=key]").wait_for()
    yield "sign-in"
    await console.sign_in()
    for name, step in STEPS.items():
        await step(console)
        yield name
        if await console.page.locator("dialog[open]").count():
            await console.page.keyboard.press("Escape")
            await expect(console.page.locator("dialog[open]")).to_have_count(0)


async def _sessions(console: Console) -> None:
    await console.page.locator(".sessions .virtual-item").first.wait_for()


async def _conversation(console: Console) -> None:
    await console.go(f"#/sessions/{TRIP}")
    await console.page.locator(".conversation .message").last.wait_for()
    await console.page.locator(".talk-side [role=tabpanel] .stepper").wait_for(state="attached")


async def _beginning(console: Console) -> None:
    await console.page.locator(".conversation").evaluate("list => list.scrollTo(0, 0)")
    await console.page.locator(".conversation .summary-card").wait_for()


async def _why(console: Console) -> None:
    """On a phone the inspector is a screen of its own."""
    inspect = console.page.locator(".button.inspect")
    if await inspect.is_visible():
        await inspect.click()
    await console.page.locator(".talk-side [role=tabpanel]").wait_for()


def _tab(number: int) -> Step:
    async def show(console: Console) -> None:
        await console.page.locator(".talk-side [role=tab]").nth(number).click()
        await expect(console.page.locator(".talk-side [role=tabpanel]")).not_to_be_empty()

    return show


async def _sent(console: Console) -> None:
    await _tab(1)(console)
    panel = console.page.locator(".talk-side [role=tabpanel]")
    await panel.locator("textarea").fill("And which trams go there?")
    await panel.locator("button[type=submit]").click()
    await panel.locator("ol, .sent, article").first.wait_for()


async def _delete(console: Console) -> None:
    inspect = console.page.locator(".button.inspect[aria-pressed=true]")
    if await inspect.is_visible():
        await inspect.click()
    await console.page.locator(".talk-head .menu > button").click()
    await console.page.locator(".talk-head .menu-item.danger").click()
    await _receipt(console)


async def _receipt(console: Console) -> None:
    await console.page.get_by_role("dialog").get_by_role("row").first.wait_for()


async def _users(console: Console) -> None:
    await console.go("#/users")
    await console.page.locator(".users .virtual-item").first.wait_for()


async def _user(console: Console) -> None:
    await console.go(f"#/users/{USER}")
    await console.page.get_by_role("article").first.wait_for()


def _user_tab(number: int) -> Step:
    async def show(console: Console) -> None:
        await console.page.get_by_role("tab").nth(number).click()
        inside = console.page.get_by_role("tabpanel").locator("article, section, li, .empty")
        await inside.first.wait_for()

    return show


async def _erase(console: Console) -> None:
    await console.page.locator("main .button.danger-quiet").click()
    await _receipt(console)


async def _stats(console: Console) -> None:
    await console.go("#/stats")
    await expect(console.page.locator("canvas")).to_have_count(4)


async def _import(console: Console) -> None:
    await console.go("#/sessions")
    await _sessions(console)
    await console.page.locator(".filters > .button").click()
    await console.page.locator("dialog[open]").wait_for()


async def _help(console: Console) -> None:
    await console.page.keyboard.press("?")
    await console.page.locator("dialog[open]").wait_for()


STEPS: dict[str, Step] = {
    "sessions": _sessions,
    "conversation": _conversation,
    "conversation-summary": _beginning,
    "why": _why,
    "would-be-sent": _sent,
    "summary": _tab(2),
    "session": _tab(3),
    "delete": _delete,
    "users": _users,
    "user": _user,
    "profile": _user_tab(1),
    "erase": _erase,
    "statistics": _stats,
    "import": _import,
    "help": _help,
}
"""By name, in the order in which they are walked."""
