"""Every screen as people see it, on screens of all kinds: it fits, is legible, and has no barrier.

The pictures of docs/ are made so:

    CONSOLE_PICTURES=docs/images make test PYTEST_ARGS=tests/browser/test_screens.py
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.browser.browsing import (
    LOOKS_RULES,
    PHONE,
    SCREENS,
    Browser,
    Console,
    Look,
    console,
    own_page,
)
from tests.support.browser.showcase import put_up
from tests.support.browser.touring import STEPS, tour
from tests.support.processes.running import Running
from tests.support.upstream.scripted import ScriptedUpstream

pytestmark = pytest.mark.one_back_end("redis")

LOOKS = {
    "light": Look(),
    "dark": Look(dark=True),
    "phone": Look(PHONE),
    "narrow-zh-dark": Look((360, 740), "zh-CN", dark=True),
    "wide": Look((3840, 2160)),
}
ALWAYS = ("light", "narrow-zh-dark")
"""The other looks are looked at before a release, and where pictures are wanted."""

FOLDER = os.environ.get("CONSOLE_PICTURES")

WHOLE: tuple[str, ...] = ()
RULES: dict[str, tuple[str, ...]] = {
    "light": WHOLE,
    "phone": WHOLE,
    "dark": LOOKS_RULES,
    "narrow-zh-dark": LOOKS_RULES,
}
"""Which rules on barriers are looked at: in other looks only those that hang on the look."""

FEW = ("sessions", "conversation-summary", "statistics")
PICTURED: dict[str, Collection[str]] = {
    "wide": (),
    "narrow-zh-dark": (),
    "dark": FEW,
    "phone": (*FEW, "would-be-sent", "user"),
}
"""Which screens there are pictures of, in the looks that do not have them all."""

IN_DOCS = ("conversation-summary", "user", "statistics")
"""Screens that docs/ shows, in the light look."""

MISFIT = """() => ({
  wide: document.documentElement.scrollWidth > innerWidth,
  cut: [...document.querySelectorAll("button, a, input, select, textarea, [tabindex='0']")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .map((one) => [one, one.getBoundingClientRect()])
    .filter(([one, box]) => box.right > innerWidth + 1 && box.left < innerWidth && box.width > 0
      && !one.closest(".tabs, pre, [role=tablist]"))
    .map(([one]) => one.outerHTML.slice(0, 120)),
})"""


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.release] * (name not in ALWAYS)) for name in LOOKS
    ]
)
def look(request: pytest.FixtureRequest) -> Look:
    return LOOKS[request.param]


ENGLISH = """async () => {
  const words = new Set();
  for (const part of ["", ".talk", ".inspector"]) {
    const [en, zh] = await Promise.all(["en", "zh"].map((language) =>
      import(`/memory/console/i18n/${language}${part}.js`).then((module) => module.default)));
    for (const [key, value] of Object.entries(en)) {
      if (typeof value === "string" && value.length > 2 && value !== zh[key]) words.add(value);
    }
  }
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walk.nextNode()) texts.push(walk.currentNode.nodeValue);
  for (const one of document.querySelectorAll("[aria-label], [title], [placeholder]")) {
    texts.push(one.getAttribute("aria-label"), one.title, one.getAttribute("placeholder"));
  }
  return texts.map((text) => text?.trim()).filter((text) => words.has(text))
    .map((text) => `in English: ${text}`);
}"""
"""Words of the English dictionary that are seen, or told to screen readers."""

MAX_BYTES = 200_000


class Shows:
    """The key of a tenant to be shown on each proxy, filled when it is first asked for."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    async def on(self, proxy: Running) -> str:
        if proxy.url not in self._keys:
            key = f"sk-{uuid.uuid4().hex}"
            await put_up(proxy, key)
            self._keys[proxy.url] = key
        return self._keys[proxy.url]


@pytest.fixture(scope="session")
def shows() -> Shows:
    return Shows()


@pytest_asyncio.fixture(loop_scope="session")
async def shown(
    browser: Browser, proxy: Running, up: ScriptedUpstream, look: Look, shows: Shows
) -> AsyncIterator[Console]:
    """The console of somebody with something to show."""
    key = await shows.on(proxy)
    async with own_page(browser, look) as page, console(page, proxy, up, key) as one:
        yield one
        assert one.complaints == []


def name_of(look: Look) -> str:
    return next(name for name, each in LOOKS.items() if each == look)


def is_pictured(name: str, screen: str) -> bool:
    if FOLDER:
        return name == "light" and screen in IN_DOCS
    return screen in PICTURED.get(name, set(STEPS) - {"why"} | {"sign-in"})


async def picture(shown: Console, name: str, screen: str) -> None:
    """Into build/screens, or where CONSOLE_PICTURES says."""
    if not is_pictured(name, screen):
        return
    folder = Path(FOLDER or SCREENS)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"console-{screen}-{name}.png"
    await shown.page.screenshot(path=path, animations="disabled", caret="hide")
    assert not FOLDER or path.stat().st_size < MAX_BYTES


async def barriers(shown: Console, name: str) -> list[str]:
    return await shown.violations(*RULES[name]) if name in RULES else []


async def test_every_screen_fits_and_has_no_serious_barrier(shown: Console, look: Look) -> None:
    wrong: dict[str, list[str]] = {}
    name = name_of(look)
    async for screen in tour(shown):
        await picture(shown, name, screen)
        misfit = await shown.page.evaluate(MISFIT)
        found = ["wider than the window"] * misfit["wide"] + misfit["cut"]
        found += await barriers(shown, name)
        if look.locale == "zh-CN":
            found += await shown.page.evaluate(ENGLISH)
        if found:
            wrong[screen] = found
    assert wrong == {}
