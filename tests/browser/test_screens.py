"""Every screen as people see it, on screens of all kinds: it fits, is legible, and has no barrier.

With CONSOLE_PICTURES set to a folder the pictures are put there: `make picture` does so.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.browsing import PHONE, SCREENS, Browser, Console, Look, console
from tests.support.running import Running
from tests.support.showcase import put_up
from tests.support.touring import tour
from tests.support.upstream import ScriptedUpstream

LOOKS = {
    "light": Look(),
    "dark": Look(dark=True),
    "phone": Look(PHONE),
    "zh": Look(locale="zh-CN"),
    "narrow-zh-dark": Look((360, 740), "zh-CN", dark=True),
}
PICTURED = ("light", "dark", "phone", "zh")

MISFIT = """() => ({
  wide: document.documentElement.scrollWidth > innerWidth,
  small: [...document.querySelectorAll("button, a, input, select, textarea, [tabindex='0']")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .map((one) => [one, one.getBoundingClientRect()])
    .filter(([one, box]) => box.right > innerWidth + 1 && box.left < innerWidth && box.width > 0
      && !one.closest(".tabs, pre, [role=tablist]"))
    .map(([one]) => one.outerHTML.slice(0, 120)),
})"""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shown_key() -> str:
    return f"sk-{uuid.uuid4().hex}"


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> Look:
    return LOOKS[request.param]


_put_up: set[str] = set()


@pytest_asyncio.fixture(loop_scope="session")
async def shown(
    browser: Browser, proxy: Running, up: ScriptedUpstream, look: Look, shown_key: str
) -> AsyncIterator[Console]:
    if proxy.url not in _put_up:
        await put_up(proxy, shown_key)
        _put_up.add(proxy.url)
    async with console(browser, proxy, up, shown_key, look) as one:
        yield one
        assert one.complaints == []


def name_of(look: Look) -> str:
    return next(name for name, each in LOOKS.items() if each == look)


async def picture(shown: Console, name: str, screen: str) -> None:
    folder = Path(os.environ.get("CONSOLE_PICTURES") or SCREENS)
    folder.mkdir(parents=True, exist_ok=True)
    await shown.page.screenshot(
        path=folder / f"console-{screen}-{name}.png", animations="disabled", caret="hide"
    )


@pytest.mark.timeout(120)
async def test_every_screen_fits_and_has_no_serious_barrier(shown: Console, look: Look) -> None:
    wrong: dict[str, list[str]] = {}
    async for screen in tour(shown):
        if name_of(look) in PICTURED or not os.environ.get("CONSOLE_PICTURES"):
            await picture(shown, name_of(look), screen)
        misfit = await shown.page.evaluate(MISFIT)
        found = ["wider than the window"] * misfit["wide"] + misfit["small"]
        found += await shown.violations()
        if found:
            wrong[screen] = found
    assert wrong == {}
